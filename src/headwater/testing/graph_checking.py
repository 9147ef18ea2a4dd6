"""A checker of live graphs, independent of what builds them.

It is given what each batch added to a graph, and what the batches were, and says what is wrong:
Ananke's requirements on vertices (R-V), edges (R-E) and labels (R-L), labels that come too early
or too late, and any difference from what the reference interpreter gives.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from headwater.flow import nodes
from headwater.testing.evaluate import EPOCH
from headwater.testing.graph_reach import (
    NEVER,
    UNSAID,
    Arrival,
    Expiry,
    Reaches,
    Stepped,
    arrivals,
    batches,
)
from headwater.testing.interpreter import first

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from headwater.testing.interpreter import Input
    from headwater.testing.operators import Choose

Record = tuple[str, int]
"""A source's name and a record's id; or a sink's and a result's."""
Edge = tuple[str, int, str, int]


class Change(Protocol):
    """What one batch added to a graph, as `store.follow()` gives it."""

    @property
    def batch(self) -> int:
        """The batch's number."""

    @property
    def watermark(self) -> datetime | None:
        """The batch's watermark; None before there is one."""

    @property
    def vertices(self) -> pa.Table:
        """kind, name, id, event_time, delivered, batch."""

    @property
    def edges(self) -> pa.Table:
        """source, source_id, sink, result_id, delivered, batch."""

    @property
    def labels(self) -> pa.Table:
        """kind, name, id, delivered, batch."""


@dataclass(slots=True)
class Checked:
    """What a checker found: nothing is wrong when `violations` is empty."""

    violations: list[str] = field(default_factory=list)
    records: int = 0
    """Vertices of source records."""
    results: int = 0
    edges: int = 0
    labels: int = 0
    """Labels of source records."""
    alive: int = 0
    """Records without a label at the end."""
    shared: int = 0
    """Records with edges to several sinks."""
    held: int = 0
    """Times that a step held a record between two batches."""
    came_again: int = 0
    """Edges to labelled records, allowed because their source delivered them again."""

    def __str__(self) -> str:
        return "\n".join(self.violations) or "nothing is wrong"


@dataclass(frozen=True, slots=True)
class _Mark:
    """Where something was delivered."""

    batch: int
    watermark: datetime | None
    time: datetime | None = None

    def before(self, other: _Mark) -> bool:
        """Whether it came earlier than another."""
        mine, others = _ordered(self.watermark), _ordered(other.watermark)
        return self.batch < other.batch or mine < others


@dataclass(slots=True)
class _Graph:
    """A graph put together from changes, where everything keeps its first delivery."""

    records: dict[Record, _Mark] = field(default_factory=dict)
    results: dict[Record, _Mark] = field(default_factory=dict)
    edges: dict[Edge, _Mark] = field(default_factory=dict)
    labels: dict[Record, _Mark] = field(default_factory=dict)
    result_labels: dict[Record, _Mark] = field(default_factory=dict)

    def of_records(self) -> dict[Record, list[tuple[Edge, _Mark]]]:
        """The edges of each record."""
        found: dict[Record, list[tuple[Edge, _Mark]]] = {}
        for edge, mark in self.edges.items():
            found.setdefault(edge[:2], []).append((edge, mark))
        return found


def check_graph(
    changes: Iterable[Change],
    sinks: Sequence[nodes.Sink],
    given: Input,
    *,
    expiry: Expiry = "tight",
    choose: Mapping[str, Choose] | None = None,
    finished: bool = False,
) -> Checked:
    """Check the graph of some sinks, all those that provenance is captured of.

    `choose` has the choices of deduplications by sink. With `finished` the last batch ended the
    flow, and every record must have its label.
    """
    checked = Checked()
    say = checked.violations.append
    graph = _Graph()
    marks = []
    for change in changes:
        marks.append(_Mark(change.batch, change.watermark))
        for line in _take(graph, change):
            say(line)
    for line in _same_batches(marks, given):
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
    checked.violations += [*_vertices(graph, came), *_edges(graph)]
    checked.violations += _labels(graph, came, checked)
    checked.violations += _run(graph, sinks, given, came, checked, expiry, choose or {}, finished)
    checked.records, checked.results = len(graph.records), len(graph.results)
    checked.edges, checked.labels = len(graph.edges), len(graph.labels)
    checked.alive = len(graph.records.keys() - graph.labels.keys())
    reached = {(*edge[:2], edge[2]) for edge in graph.edges}
    checked.shared = sum(n > 1 for n in Counter(r[:2] for r in reached).values())
    return checked


# --- what was delivered -------------------------------------------------------------------------


def _take(graph: _Graph, change: Change) -> Iterator[str]:
    """Add a change; what is delivered a second time is wrong."""

    def new(known: dict[Any, _Mark], key: Any, what: str, row: dict[str, Any]) -> Iterator[str]:
        mark = _Mark(row["batch"], row["delivered"], row.get("event_time"))
        if (mark.batch, mark.watermark) != (change.batch, change.watermark):
            yield (
                f"batch {change.batch}: {what} says that it is of batch {mark.batch} "
                f"at {_shown(mark.watermark)}"
            )
        if key in known:
            yield f"batch {change.batch}: {what} was already delivered in batch {known[key].batch}"
        else:
            known[key] = mark

    for row in change.vertices.to_pylist():
        record = (row["name"], row["id"])
        known = graph.records if row["kind"] == "source" else graph.results
        yield from new(known, record, f"R-V: the vertex of {_name(record, row['kind'])}", row)
    for row in change.edges.to_pylist():
        edge = (row["source"], row["source_id"], row["sink"], row["result_id"])
        yield from new(graph.edges, edge, f"R-E: {_edge(edge)}", row)
    for row in change.labels.to_pylist():
        record = (row["name"], row["id"])
        known = graph.labels if row["kind"] == "source" else graph.result_labels
        yield from new(known, record, f"R-L: the label of {_name(record, row['kind'])}", row)


def _same_batches(marks: list[_Mark], given: Input) -> Iterator[str]:
    if [mark.batch for mark in marks] != list(range(len(given.watermarks))):
        yield (
            f"the graph has changes of batches {[m.batch for m in marks]}, the run had "
            f"{len(given.watermarks)} batches"
        )
        return
    for mark, watermark in zip(marks, given.watermarks, strict=True):
        if mark.watermark != (_moment(watermark) if watermark else None):
            yield (
                f"batch {mark.batch}: its changes are at {_shown(mark.watermark)}, its watermark "
                f"was {_shown(_moment(watermark))}"
            )


def _vertices(graph: _Graph, came: Mapping[Record, Arrival]) -> Iterator[str]:
    """R-V, beyond that there is one of each: none without reason, none missing."""
    edges = graph.of_records()
    with_edges = {edge[2:] for edge in graph.edges}
    for record, mark in graph.records.items():
        what = f"batch {mark.batch}: R-V: the vertex of {_name(record)}"
        if record not in edges:
            yield f"{what} has no edge"
            continue
        first_edge = min(edge.batch for _, edge in edges[record])
        if first_edge != mark.batch:
            yield f"{what} does not come with its first edge, of batch {first_edge}"
        if record not in came:
            yield f"{what} is of no record that came"
            continue
        if min(came[record].batches) > mark.batch:
            yield f"{what} comes before the record, in batch {min(came[record].batches)}"
        if mark.time is not None and mark.time != came[record].time:
            yield f"{what} is at {_shown(mark.time)}, the record at {_shown(came[record].time)}"
    for record in sorted(edges.keys() - graph.records.keys()):
        yield f"R-V: {_name(record)} has edges, and no vertex"
    for result in sorted(with_edges - graph.results.keys()):
        yield f"R-V: {_name(result, 'result')} has edges, and no vertex"


def _edges(graph: _Graph) -> Iterator[str]:
    """R-E: no edge before its vertices."""
    for edge, mark in graph.edges.items():
        for kind, known, end in (
            ("source", graph.records, edge[:2]),
            ("result", graph.results, edge[2:]),
        ):
            vertex = known.get(end)
            if vertex is not None and mark.before(vertex):
                yield (
                    f"batch {mark.batch}: R-E: {_edge(edge)} comes before the vertex of "
                    f"{_name(end, kind)}, in batch {vertex.batch}"
                )
        result = graph.results.get(edge[2:])
        if result is not None and result.batch < mark.batch:
            yield (
                f"batch {mark.batch}: R-E: {_edge(edge)} comes after its result, of batch "
                f"{result.batch}"
            )


def _labels(graph: _Graph, came: Mapping[Record, Arrival], checked: Checked) -> Iterator[str]:
    """R-L: results at once, records after their last edge."""
    for result, mark in graph.results.items():
        label = graph.result_labels.get(result)
        if label is None or label.batch != mark.batch:
            when = "never" if label is None else f"in batch {label.batch}"
            yield (
                f"batch {mark.batch}: R-L: {_name(result, 'result')} is labelled {when}, "
                "not at its delivery"
            )
    for result in sorted(graph.result_labels.keys() - graph.results.keys()):
        yield f"R-L: {_name(result, 'result')} has a label, and no vertex"
    edges = graph.of_records()
    for record, label in graph.labels.items():
        what = f"batch {label.batch}: R-L: {_name(record)} is labelled"
        vertex = graph.records.get(record)
        if vertex is None:
            yield f"{what}, and has no vertex"
        elif label.before(vertex):
            yield f"{what} before its vertex, of batch {vertex.batch}"
        for edge, mark in edges.get(record, ()):
            if not label.before(mark) or mark.batch == label.batch:
                continue
            if _came_again(came, record, label.batch, mark.batch):
                checked.came_again += 1
            else:
                yield f"{what} before {_edge(edge)}, of batch {mark.batch}"


def _came_again(came: Mapping[Record, Arrival], record: Record, after: int, until: int) -> bool:
    """Whether a source delivered a record again after one batch and up to another."""
    arrival = came.get(record)
    return arrival is not None and any(after < batch <= until for batch in arrival.batches)


# --- beside the interpreter ---------------------------------------------------------------------


def _run(
    graph: _Graph,
    sinks: Sequence[nodes.Sink],
    given: Input,
    came: Mapping[Record, Arrival],
    checked: Checked,
    expiry: Expiry,
    choose: Mapping[str, Choose],
    finished: bool,
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
            for result in sink.run(batch):
                expected[(sink.sink.name, _utc(result.event_time), result.provenance)] += 1
        reaches.advance()
        actual = Counter(
            (result[0], _utc(mark.time), frozenset(sets[result]))
            for result, mark in graph.results.items()
            if mark.batch == batch.number
        )
        for only, found in (("interpreter", expected - actual), ("graph", actual - expected)):
            for (name, time, ids), count in found.items():
                yield (
                    f"batch {batch.number}: only the {only} has a result of {name} at "
                    f"{_shown(time)} from {_set(ids)}" + (f" ({count} times)" if count > 1 else "")
                )
        yield from _too_early(graph, stepped, came, batch.number, checked)
        ends = finished and batch.number == last
        yield from _too_late(graph, reaches, came, batch.number, batch.watermark, late, ends)
    yield from _kept(graph, reaches, last if finished else last + 1)


def _too_early(
    graph: _Graph,
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
                if not _came_again(came, record, label.batch, batch):
                    said.add((record, step))
                    yield (
                        f"batch {batch}: {_name(record)} is labelled since batch {label.batch}, "
                        f"and step {step!r} of sink {sink.sink.name!r} holds it"
                    )


def _too_late(
    graph: _Graph,
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
            since = "the flow was finished" if ends else f"its reach, {_reach(reach)}, was reached"
            yield (
                f"batch {batch}: {_name(record)} at {_shown(came[record].time)} is labelled {when} "
                f"though {since} at {_shown(_moment(watermark))}"
            )


def _kept(graph: _Graph, reaches: Reaches, last: int) -> Iterator[str]:
    """What a step keeps for as long as the flow runs has no label before its end."""
    keeping = {source for source, _ in graph.records if reaches.keeps(source)}
    for record, label in graph.labels.items():
        if record[0] in keeping and label.batch < last:
            yield (
                f"batch {label.batch}: {_name(record)} is labelled, and a step keeps the records "
                f"of {record[0]!r} until the flow is finished"
            )


# --- in words -----------------------------------------------------------------------------------


def _name(record: Record, kind: str = "source") -> str:
    return f"{'record' if kind == 'source' else 'result'} {record[0]}:{record[1]}"


def _edge(edge: Edge) -> str:
    return f"the edge {edge[0]}:{edge[1]} -> {edge[2]}:{edge[3]}"


def _set(ids: Iterable[Record]) -> str:
    return "{" + ", ".join(f"{source}:{id_}" for source, id_ in sorted(ids)) + "}"


def _shown(time: datetime | None) -> str:
    if time is None:
        return "no time"
    return f"{time:%Y-%m-%d %H:%M:%S.%f}".removesuffix("000").removesuffix(".000")


def _reach(reach: int) -> str:
    if reach <= -1:
        return "its own batch"
    if reach >= UNSAID:
        return "the end" if reach >= NEVER else "some time"
    return _shown(EPOCH + timedelta(microseconds=reach))


def _moment(watermark: int) -> datetime:
    return EPOCH + timedelta(milliseconds=watermark)


def _ordered(watermark: datetime | None) -> datetime:
    return EPOCH if watermark is None else watermark


def _utc(time: Any) -> Any:
    if isinstance(time, datetime):
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    return time
