"""What a live graph delivered, against Ananke's requirements.

Vertices (R-V), edges (R-E) and labels (R-L): each once, none without reason, in their order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from headwater.testing.graph_words import Edge, Record, edge_named, moment, named, ordered, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    import pyarrow as pa

    from headwater.testing.graph_reach import Arrival
    from headwater.testing.interpreter import Input


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
class Mark:
    """Where something was delivered."""

    batch: int
    watermark: datetime | None
    time: datetime | None = None

    def before(self, other: Mark) -> bool:
        """Whether it came earlier than another."""
        mine, others = ordered(self.watermark), ordered(other.watermark)
        return self.batch < other.batch or mine < others


@dataclass(slots=True)
class Graph:
    """A graph put together from changes, where everything keeps its first delivery."""

    records: dict[Record, Mark] = field(default_factory=dict)
    results: dict[Record, Mark] = field(default_factory=dict)
    edges: dict[Edge, Mark] = field(default_factory=dict)
    labels: dict[Record, Mark] = field(default_factory=dict)
    result_labels: dict[Record, Mark] = field(default_factory=dict)

    def of_records(self) -> dict[Record, list[tuple[Edge, Mark]]]:
        """The edges of each record."""
        found: dict[Record, list[tuple[Edge, Mark]]] = {}
        for edge, mark in self.edges.items():
            found.setdefault(edge[:2], []).append((edge, mark))
        return found


def take(graph: Graph, change: Change) -> Iterator[str]:
    """Add a change; what is delivered a second time is wrong."""

    def new(known: dict[Any, Mark], key: Any, what: str, row: dict[str, Any]) -> Iterator[str]:
        mark = Mark(row["batch"], row["delivered"], row.get("event_time"))
        if (mark.batch, mark.watermark) != (change.batch, change.watermark):
            yield (
                f"batch {change.batch}: {what} says that it is of batch {mark.batch} "
                f"at {shown(mark.watermark)}"
            )
        if key in known:
            yield f"batch {change.batch}: {what} was already delivered in batch {known[key].batch}"
        else:
            known[key] = mark

    for row in change.vertices.to_pylist():
        record = (row["name"], row["id"])
        known = graph.records if row["kind"] == "source" else graph.results
        yield from new(known, record, f"R-V: the vertex of {named(record, row['kind'])}", row)
    for row in change.edges.to_pylist():
        edge = (row["source"], row["source_id"], row["sink"], row["result_id"])
        yield from new(graph.edges, edge, f"R-E: {edge_named(edge)}", row)
    for row in change.labels.to_pylist():
        record = (row["name"], row["id"])
        known = graph.labels if row["kind"] == "source" else graph.result_labels
        yield from new(known, record, f"R-L: the label of {named(record, row['kind'])}", row)


def same_batches(marks: list[Mark], given: Input) -> Iterator[str]:
    """The changes are of the batches that there were, at their watermarks."""
    if [mark.batch for mark in marks] != list(range(len(given.watermarks))):
        yield (
            f"the graph has changes of batches {[m.batch for m in marks]}, the run had "
            f"{len(given.watermarks)} batches"
        )
        return
    for mark, watermark in zip(marks, given.watermarks, strict=True):
        if mark.watermark != (moment(watermark) if watermark else None):
            yield (
                f"batch {mark.batch}: its changes are at {shown(mark.watermark)}, its watermark "
                f"was {shown(moment(watermark))}"
            )


def wrong_vertices(graph: Graph, came: Mapping[Record, Arrival]) -> Iterator[str]:
    """R-V, beyond that there is one of each: none without reason, none missing."""
    edges = graph.of_records()
    with_edges = {edge[2:] for edge in graph.edges}
    for record, mark in graph.records.items():
        what = f"batch {mark.batch}: R-V: the vertex of {named(record)}"
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
            yield f"{what} is at {shown(mark.time)}, the record at {shown(came[record].time)}"
    for record in sorted(edges.keys() - graph.records.keys()):
        yield f"R-V: {named(record)} has edges, and no vertex"
    for result in sorted(with_edges - graph.results.keys()):
        yield f"R-V: {named(result, 'result')} has edges, and no vertex"


def wrong_edges(graph: Graph) -> Iterator[str]:
    """R-E: no edge before its vertices."""
    for edge, mark in graph.edges.items():
        for kind, known, end in (
            ("source", graph.records, edge[:2]),
            ("result", graph.results, edge[2:]),
        ):
            vertex = known.get(end)
            if vertex is not None and mark.before(vertex):
                yield (
                    f"batch {mark.batch}: R-E: {edge_named(edge)} comes before the vertex of "
                    f"{named(end, kind)}, in batch {vertex.batch}"
                )
        result = graph.results.get(edge[2:])
        if result is not None and result.batch < mark.batch:
            yield (
                f"batch {mark.batch}: R-E: {edge_named(edge)} comes after its result, of batch "
                f"{result.batch}"
            )


def wrong_labels(graph: Graph, came: Mapping[Record, Arrival], checked: Checked) -> Iterator[str]:
    """R-L: results at once, records after their last edge."""
    for result, mark in graph.results.items():
        label = graph.result_labels.get(result)
        if label is None or label.batch != mark.batch:
            when = "never" if label is None else f"in batch {label.batch}"
            yield (
                f"batch {mark.batch}: R-L: {named(result, 'result')} is labelled {when}, "
                "not at its delivery"
            )
    for result in sorted(graph.result_labels.keys() - graph.results.keys()):
        yield f"R-L: {named(result, 'result')} has a label, and no vertex"
    edges = graph.of_records()
    for record, label in graph.labels.items():
        what = f"batch {label.batch}: R-L: {named(record)} is labelled"
        vertex = graph.records.get(record)
        if vertex is None:
            yield f"{what}, and has no vertex"
        elif label.before(vertex):
            yield f"{what} before its vertex, of batch {vertex.batch}"
        for edge, mark in edges.get(record, ()):
            if not label.before(mark) or mark.batch == label.batch:
                continue
            if came_again(came, record, label.batch, mark.batch):
                checked.came_again += 1
            else:
                yield f"{what} before {edge_named(edge)}, of batch {mark.batch}"


def came_again(came: Mapping[Record, Arrival], record: Record, after: int, until: int) -> bool:
    """Whether a source delivered a record again after one batch and up to another."""
    arrival = came.get(record)
    return arrival is not None and any(after < batch <= until for batch in arrival.batches)
