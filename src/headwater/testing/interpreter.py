"""The reference interpreter: what a flow must give, in pure Python, batch by batch.

Every sink's steps run on their own, as Spark runs them, with the batches and watermarks that
Spark recorded. The provenance of a result is the set of source records behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater.flow import nodes
from headwater.testing import stateless, user_functions
from headwater.testing.deduplicate import Deduplicate
from headwater.testing.joins import StaticJoin, StreamJoin
from headwater.testing.operators import (
    Batch,
    Choose,
    Counters,
    Operator,
    Source,
    Static,
    Union,
    Watermark,
)
from headwater.testing.ordered import ordered_step
from headwater.testing.ordered_joins import ordered_join
from headwater.testing.rows import InterpreterError, Row
from headwater.testing.stateful import grouping

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Input:
    """What a run's micro-batches were: rows per source, and each batch's watermark in ms.

    `static` has the rows of sources and steps that do not stream; every batch sees them.
    `places` says, row by row, where a source has its records; by default, in the order given.
    """

    batches: Sequence[Mapping[str, Sequence[Values]]]
    watermarks: Sequence[int]
    static: Mapping[str, Sequence[Values]]
    places: Sequence[Mapping[str, Sequence[int]]] | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """One result of a sink: when it came out, what it says, and which records it is from."""

    batch: int
    values: Values
    event_time: datetime | None
    provenance: frozenset[tuple[str, int]]


def first(place: str, batch: int, key: Values, rows: Sequence[Row]) -> int:
    """The default choice of a deduplication: the row that came first."""
    return 0


def record_id(source: nodes.Source, values: Values) -> int:
    """A record's id where a column holds it."""
    if source.identity.how != "column":
        raise InterpreterError(
            f"source {source.name!r}: give identify= for ids by content or place"
        )
    return int(values[source.schema.fieldNames().index(source.identity.columns[0])])


def interpret(
    sink: nodes.Sink,
    given: Input,
    *,
    choose: Choose = first,
    identify: Callable[[nodes.Source, Values], int] = record_id,
    counters: Counters | None = None,
) -> list[Result]:
    """The results of a sink over a run's batches."""
    ordered = any(isinstance(node, nodes.Ordered) for node in sink.upstream())
    counted = counters if counters is not None else Counters()
    builder = _Builder(choose, identify, counted, ordered)
    top = builder.build(sink.input)
    shown = top.schema.visible()
    top.require(set(shown))
    results = []
    previous = 0
    for number, (rows, watermark) in enumerate(zip(given.batches, given.watermarks, strict=True)):
        places = given.places[number] if given.places is not None else {}
        batch = Batch(number, {**given.static, **rows}, watermark, previous, places)
        for row in top.run(batch):
            values = tuple(row.values[i] for i in shown)
            results.append(Result(number, values, row.time, row.ids))
        previous = watermark
    return results


@dataclass(slots=True)
class _Builder:
    """Operators for the nodes above a sink, each occurrence of a node with a state of its own."""

    choose: Choose
    identify: Callable[[nodes.Source, Values], int]
    counters: Counters
    ordered: bool
    """Whether some step sees the order of rows."""

    def build(self, node: nodes.Node, place: str = "") -> Operator:
        """The operator of a node; `place` tells the occurrences of one node apart."""
        inputs = [self.build(above, f"{place}/{i}") for i, above in enumerate(node.inputs)]
        match node:
            case nodes.Source():
                return Source(node, self.identify)
            case nodes.Static():
                return Static(node)
            case nodes.Filter():
                return stateless.filter_(node, inputs[0])
            case nodes.Project():
                return stateless.project(node, inputs[0])
            case nodes.WithColumns():
                return stateless.with_columns(node, inputs[0])
            case nodes.Rename():
                return stateless.rename(node, inputs[0])
            case nodes.Drop():
                return stateless.drop(node, inputs[0])
            case nodes.Alias():
                return stateless.alias(node, inputs[0])
            case nodes.Watermark():
                return Watermark(node, inputs)
            case nodes.Explode():
                return stateless.explode(node, inputs[0])
            case nodes.FlatMap():
                return stateless.flat_map(node, inputs[0])
            case nodes.Map():
                return user_functions.map_(node, inputs[0])
            case nodes.Service():
                return user_functions.service(node, inputs[0])
            case nodes.Union():
                missing = node.allow_missing
                return Union(node, inputs, by_name=node.by_name, allow_missing=missing)
            case nodes.Merge():
                return Union(node, inputs, by_name=True)
            case nodes.GroupFunction():
                return user_functions.GroupFunctions(node, inputs, self.counters)
            case nodes.Aggregate():
                return grouping(node, inputs, self.counters)
            case nodes.Join():
                streams = all(_streams(above) for above in node.inputs)
                return (StreamJoin if streams else StaticJoin)(node, inputs, self.counters)
            case nodes.Deduplicate():
                at = f"{place}:{node.step}"
                return Deduplicate(node, inputs, self.counters, self.choose, at, self.ordered)
            case nodes.OrderedJoin():
                return ordered_join(node, inputs, self.counters)
            case nodes.Ordered():
                return ordered_step(node, inputs, self.counters)
        raise InterpreterError(f"the reference interpreter does not know {node.kind} steps")


def _streams(node: nodes.Node) -> bool:
    return any(isinstance(n, nodes.Source) and n.streaming for n in node.upstream())
