"""A checker of live graphs, independent of what builds them.

It is given what each batch added to a graph, and what the batches were, and says what is wrong:
Ananke's requirements on vertices (R-V), edges (R-E) and labels (R-L), labels that come too early
or too late, and any difference from what the reference interpreter gives.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from headwater.flow import nodes
from headwater.testing.graph_delivered import (
    Change,
    Checked,
    Graph,
    Mark,
    came_again,
    same_batches,
    take,
    wrong_edges,
    wrong_labels,
    wrong_vertices,
)
from headwater.testing.graph_reach import (
    Arrival,
    Expiry,
    Reaches,
    Stepped,
    arrivals,
    batches,
)
from headwater.testing.graph_words import Record, moment, named, reach_shown, set_named, shown, utc
from headwater.testing.interpreter import first

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from headwater.testing.interpreter import Input
    from headwater.testing.operators import Choose


def check_graph(
    changes: Iterable[Change],
    sinks: Sequence[nodes.Sink],
    given: Input,
    *,
    expiry: Expiry = "tight",
    choose: Mapping[str, Choose] | None = None,
    finished: bool = False,
    muted: Callable[[str, int], bool] | None = None,
) -> Checked:
    """Check the graph of some sinks, all those that provenance is captured of.

    `choose` has the choices of deduplications by sink. With `finished` the last batch ended the
    flow, and every record must have its label. What a sink gives in a `muted` batch is no result.
    """
    checked = Checked()
    say = checked.violations.append
    graph = Graph()
    marks = []
    for change in changes:
        marks.append(Mark(change.batch, change.watermark))
        for line in take(graph, change):
            say(line)
    for line in same_batches(marks, given):
        say(line)
    if checked.violations and len(marks) != len(given.watermarks):
        return checked
    sources = {
        node.name: node
        for sink in sinks
        for node in sink.upstream()
        if isinstance(node, nodes.Source)
    }
    came = arrivals(given, sources.values())
    checked.violations += [*wrong_vertices(graph, came), *wrong_edges(graph)]
    checked.violations += wrong_labels(graph, came, checked)
    checked.violations += _run(
        graph, sinks, given, came, checked, expiry, choose or {}, finished, muted
    )
    checked.records, checked.results = len(graph.records), len(graph.results)
    checked.edges, checked.labels = len(graph.edges), len(graph.labels)
    checked.alive = len(graph.records.keys() - graph.labels.keys())
    reached = {(*edge[:2], edge[2]) for edge in graph.edges}
    checked.shared = sum(n > 1 for n in Counter(r[:2] for r in reached).values())
    return checked


# --- beside the interpreter ---------------------------------------------------------------------


def _run(
    graph: Graph,
    sinks: Sequence[nodes.Sink],
    given: Input,
    came: Mapping[Record, Arrival],
    checked: Checked,
    expiry: Expiry,
    choose: Mapping[str, Choose],
    finished: bool,
    muted: Callable[[str, int], bool] | None,
) -> Iterator[str]:
    """Labels too early or too late, and results that differ, batch by batch."""
    stepped = [Stepped(sink, choose.get(sink.name, first)) for sink in sinks]
    reaches = Reaches(stepped, expiry)
    sets: dict[Record, set[Record]] = {result: set() for result in graph.results}
    for edge in graph.edges:
        sets.setdefault(edge[2:], set()).add(edge[:2])
    late: set[Record] = set()
    last = len(given.watermarks) - 1
    for batch in batches(given):
        expected: Counter[Any] = Counter()
        for sink in stepped:
            given_out = sink.run(batch)
            if muted is not None and muted(sink.sink.name, batch.number):
                continue
            for result in given_out:
                expected[(sink.sink.name, utc(result.event_time), result.provenance)] += 1
        reaches.advance()
        actual = Counter(
            (result[0], utc(mark.time), frozenset(sets[result]))
            for result, mark in graph.results.items()
            if mark.batch == batch.number
        )
        for only, found in (("interpreter", expected - actual), ("graph", actual - expected)):
            for (name, time, ids), count in found.items():
                yield (
                    f"batch {batch.number}: only the {only} has a result of {name} at "
                    f"{shown(time)} from {set_named(ids)}"
                    + (f" ({count} times)" if count > 1 else "")
                )
        yield from _too_early(graph, stepped, came, batch.number, checked)
        ends = finished and batch.number == last
        yield from _too_late(graph, reaches, came, batch.number, batch.watermark, late, ends)
    yield from _kept(graph, reaches, last if finished else last + 1)


def _too_early(
    graph: Graph,
    stepped: Sequence[Stepped],
    came: Mapping[Record, Arrival],
    batch: int,
    checked: Checked,
) -> Iterator[str]:
    """No step may hold a record that is labelled."""
    said = set()
    for sink in stepped:
        for step, ids in sink.held():
            checked.held += len(ids)
            for record in ids:
                label = graph.labels.get(record)
                if label is None or label.batch > batch or (record, step) in said:
                    continue
                if not came_again(came, record, label.batch, batch):
                    said.add((record, step))
                    yield (
                        f"batch {batch}: {named(record)} is labelled since batch {label.batch}, "
                        f"and step {step!r} of sink {sink.sink.name!r} holds it"
                    )


def _too_late(
    graph: Graph,
    reaches: Reaches,
    came: Mapping[Record, Arrival],
    batch: int,
    watermark: int,
    late: set[Record],
    ends: bool,
) -> Iterator[str]:
    """Every vertex has its label once the watermark has reached the record's reach."""
    for record, vertex in graph.records.items():
        label = graph.labels.get(record)
        if record in late or record not in came or vertex.batch > batch:
            continue
        if label is not None and label.batch <= batch:
            continue
        reach = reaches.of(record, came[record].time)
        if ends or reach <= (watermark * 1000 if watermark else -1):
            late.add(record)
            when = "never" if label is None else f"in batch {label.batch}"
            since = (
                "the flow was finished" if ends else f"its reach, {reach_shown(reach)}, was reached"
            )
            yield (
                f"batch {batch}: {named(record)} at {shown(came[record].time)} is labelled {when} "
                f"though {since} at {shown(moment(watermark))}"
            )


def _kept(graph: Graph, reaches: Reaches, last: int) -> Iterator[str]:
    """What a step keeps for as long as the flow runs has no label before its end."""
    keeping = {source for source, _ in graph.records if reaches.keeps(source)}
    for record, label in graph.labels.items():
        if record[0] in keeping and label.batch < last:
            yield (
                f"batch {label.batch}: {named(record)} is labelled, and a step keeps the records "
                f"of {record[0]!r} until the flow is finished"
            )
