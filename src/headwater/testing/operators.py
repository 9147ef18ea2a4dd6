"""What every operator of the reference interpreter is, and the stateless ones.

An operator takes each micro-batch's input and gives its output rows; it also says which
watermark it passes on, as Spark's watermark propagation computes it for every stateful
operator of a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from headwater.testing.evaluate import EPOCH, interval
from headwater.testing.rows import Column, Ids, InterpreterError, Place, Row, Schema, Struct

if TYPE_CHECKING:
    from headwater.flow import nodes

Choose = Callable[[str, int, tuple[Any, ...], Sequence[Row]], int]
"""Which of several rows with one key a deduplication keeps: (step, batch, key, rows) -> index."""


@dataclass(slots=True)
class Counters:
    """What happened on the way, so that tests can tell whether they tested anything."""

    late_rows: int = 0
    late_windows: int = 0
    duplicates: int = 0
    choices: int = 0
    unmatched: int = 0
    sessions_merged: int = 0
    late_ids: set[tuple[str, int]] = field(default_factory=set)
    kept_ids: set[tuple[str, int]] = field(default_factory=set)

    def dropped(self, ids: Ids) -> None:
        """A row was late for a stateful operator, with everything that it stands for."""
        self.late_rows += 1
        self.late_ids |= ids

    def never_counted(self) -> set[tuple[str, int]]:
        """Records that every stateful operator that saw them dropped as late."""
        return self.late_ids - self.kept_ids


@dataclass(frozen=True, slots=True)
class Batch:
    """One micro-batch: its input rows, its watermark and the one before, in milliseconds.

    `places` says where a source has its rows; without it they are in the order given.
    """

    number: int
    rows: Mapping[str, Sequence[tuple[Any, ...]]]
    watermark: int
    previous: int
    places: Mapping[str, Sequence[int]] = field(default_factory=dict)


class Operator:
    """A step at work: a schema, a state where it needs one, and rows per batch."""

    schema: Schema

    def __init__(self, node: nodes.Node, inputs: Sequence[Operator]) -> None:
        self.node = node
        self.inputs = inputs
        self.required: set[int] = set()

    def require(self, columns: set[int]) -> None:
        """Tell the operators which of their columns are of use.

        Spark prunes the others, and this matters: a deduplication whose event-time column is
        of no further use drops no late rows.
        """
        self.required = columns
        for above, needed in zip(self.inputs, self.needs(columns), strict=True):
            above.require(needed)

    def needs(self, columns: set[int]) -> Sequence[set[int]]:
        """The columns of each input that some of the own columns are made from."""
        return [columns for _ in self.inputs]

    @property
    def depth(self) -> int:
        """The number of parts in the places of this step's rows."""
        return max((above.depth for above in self.inputs), default=1)

    def run(self, batch: Batch) -> list[Row]:
        """The rows that this step gives in a batch."""
        raise NotImplementedError

    def passes_on(self, watermark: int) -> int | None:
        """The watermark (ms) after this step; None where nothing above has a watermark."""
        return self.input_watermark(watermark)

    def input_watermark(self, watermark: int) -> int | None:
        """The least of the watermarks that the inputs pass on."""
        known = [w for above in self.inputs if (w := above.passes_on(watermark)) is not None]
        return min(known, default=None)

    def boundary(self, watermark: int) -> datetime:
        """The time up to which a stateful step regards rows or state as past."""
        # Spark propagates nothing while the global watermark is 0, and never a negative one.
        mine = self.input_watermark(watermark) if watermark else 0
        return EPOCH + timedelta(milliseconds=max(mine or 0, 0))


def is_past(value: Any, boundary: datetime) -> bool:
    """Spark's test for late rows and for old state: a window counts by its end; null never."""
    if isinstance(value, Struct):
        value = value.get("end")
    return value is not None and value <= boundary


class Source(Operator):
    """Records as they arrive, each its own provenance."""

    node: nodes.Source

    def __init__(self, node: nodes.Source, identify: Callable[[nodes.Source, Any], int]) -> None:
        super().__init__(node, ())
        self.identify = identify
        names = node.schema.fieldNames()
        self.schema = Schema(tuple(Column(name) for name in names))
        if node.watermark and node.event_time and node.streaming:
            delay = milliseconds(interval(node.watermark))
            self.schema = _marked(self.schema, node.event_time, delay)
        self.at = names.index(node.event_time) if node.event_time else None

    def run(self, batch: Batch) -> list[Row]:
        given = batch.rows.get(self.node.name, ())
        places = batch.places.get(self.node.name, range(len(given)))
        rows = []
        for values, place in zip(given, places, strict=True):
            time = None if self.at is None else values[self.at]
            rows.append(Row(values, time, frozenset({self._id(values)}), (place,)))
        return rows

    def _id(self, values: tuple[Any, ...]) -> tuple[str, int]:
        return self.node.name, self.identify(self.node, values)

    def passes_on(self, watermark: int) -> int | None:
        return watermark if self.node.watermark and self.node.streaming else None


class Static(Operator):
    """Rows of a plain DataFrame: joined, never traced."""

    node: nodes.Static

    def __init__(self, node: nodes.Static) -> None:
        super().__init__(node, ())
        self.schema = Schema(tuple(Column(n) for n in node.df.columns))

    def run(self, batch: Batch) -> list[Row]:
        return [Row(values, None, frozenset()) for values in batch.rows.get(self.node.step, ())]


class Watermark(Operator):
    """The same rows; the named column becomes the event time."""

    node: nodes.Watermark

    def __init__(self, node: nodes.Watermark, inputs: Sequence[Operator]) -> None:
        super().__init__(node, inputs)
        self.schema = _marked(inputs[0].schema, node.column, milliseconds(interval(node.delay)))

        self.at, _ = self.schema.find((node.column,))

    def needs(self, columns: set[int]) -> Sequence[set[int]]:
        return [columns | {self.at}]

    def run(self, batch: Batch) -> list[Row]:
        return [replace(row, time=row.values[self.at]) for row in self.inputs[0].run(batch)]

    def passes_on(self, watermark: int) -> int | None:
        return watermark


def milliseconds(length: timedelta) -> int:
    """A length as Spark keeps watermarks: whole milliseconds."""
    return length // timedelta(milliseconds=1)


def _marked(schema: Schema, name: str, delay: int) -> Schema:
    at, _ = schema.find((name,))
    return Schema(
        tuple(replace(c, mark=delay if i == at else None) for i, c in enumerate(schema.columns))
    )


def padded(place: Place, depth: int) -> Place:
    """A place with as many parts as others have; those that are missing come first in order."""
    return (*place, *([None] * (depth - len(place))))


class Mapped(Operator):
    """A stateless step: each input row gives some output rows.

    Where that may be several (`many`), the number of each becomes a part of its place.
    """

    def __init__(
        self,
        node: nodes.Node,
        inputs: Sequence[Operator],
        schema: Schema,
        rows: Callable[[Row], Iterable[Row]],
        uses: Callable[[set[int]], set[int]],
        many: bool = False,
    ) -> None:
        super().__init__(node, inputs)
        self.schema = schema
        self.rows = rows
        self.uses = uses
        self.many = many

    def needs(self, columns: set[int]) -> Sequence[set[int]]:
        return [self.uses(columns)]

    @property
    def depth(self) -> int:
        return self.inputs[0].depth + self.many

    def run(self, batch: Batch) -> list[Row]:
        return [
            out.at(*row.place, number) if self.many else out
            for row in self.inputs[0].run(batch)
            for number, out in enumerate(self.rows(row))
        ]


class Union(Operator):
    """The rows of all inputs under the first one's columns (and marks).

    The branch becomes the last part of a row's place.
    """

    def __init__(
        self,
        node: nodes.Union | nodes.Merge,
        inputs: Sequence[Operator],
        *,
        by_name: bool,
        allow_missing: bool = False,
    ) -> None:
        super().__init__(node, inputs)
        first = inputs[0].schema
        kept = first.visible()
        columns = [first.columns[i] for i in kept]
        self.places: list[list[int | None]] = [list(kept)]
        for other in inputs[1:]:
            there = other.schema.visible()
            if not by_name:
                if len(there) != len(columns):
                    raise InterpreterError(f"{node.step}: inputs of {node.kind} differ in width")
                self.places.append(list(there))
                continue
            names = {other.schema.columns[i].name.lower(): i for i in there}
            places = [names.pop(c.name.lower(), None) for c in columns]
            if (names or None in places) and not allow_missing:
                raise InterpreterError(f"{node.step}: inputs of {node.kind} differ in columns")
            columns += [Column(other.schema.columns[i].name) for i in names.values()]
            self.places.append([*places, *names.values()])
        self.width = len(columns)
        # Fresh identities: in Spark a union's output is none of its inputs' columns.
        self.schema = Schema(tuple(Column(c.name, c.qualifier, c.mark, c.session) for c in columns))

        self.places = [[*p, *([None] * (self.width - len(p)))] for p in self.places]

    def needs(self, columns: set[int]) -> Sequence[set[int]]:
        return [{p for i in columns if (p := places[i]) is not None} for places in self.places]

    @property
    def depth(self) -> int:
        return super().depth + 1

    def run(self, batch: Batch) -> list[Row]:
        return [
            row.with_values(None if p is None else row.values[p] for p in places).at(
                *padded(row.place, self.depth - 1), branch
            )
            for branch, (above, places) in enumerate(zip(self.inputs, self.places, strict=True))
            for row in above.run(batch)
        ]
