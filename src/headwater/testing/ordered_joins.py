"""Joins by what has arrived before: with the latest row, the last rows, a range of values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from headwater.flow import nodes
from headwater.flow.terms import Ref, Term
from headwater.testing.arrival import Arrival, InOrder, Key, measure
from headwater.testing.evaluate import evaluate
from headwater.testing.operators import padded
from headwater.testing.rows import (
    MICROSECOND,
    Column,
    InterpreterError,
    Place,
    Row,
    Schema,
    latest,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from headwater.testing.operators import Counters, Operator

LEFT, RIGHT = 0, 1


def ordered_join(
    node: nodes.OrderedJoin, inputs: Sequence[Operator], counters: Counters
) -> Operator:
    """The operator of a join over arrival order."""
    match node:
        case nodes.JoinLatest():
            return JoinLatest(node, inputs, counters)
        case nodes.JoinLast():
            return JoinLast(node, inputs, counters)
        case nodes.JoinValue():
            return JoinValue(node, inputs, counters)
    raise InterpreterError(f"the reference interpreter does not know {node.kind} steps")


class InOrderJoin(InOrder):
    """What these joins share: the pair's columns, provenance, event time and place."""

    node: nodes.OrderedJoin
    clock = LEFT
    """The side whose event-time column stays one."""

    def __init__(
        self, node: nodes.OrderedJoin, inputs: Sequence[Operator], counters: Counters
    ) -> None:
        super().__init__(node, inputs, counters)
        schemas = [above.schema for above in inputs]
        self.on = [[schema.find((name,))[0] for name in node.on] for schema in schemas]
        self.rest = [
            [i for i in schema.visible() if i not in on]
            for schema, on in zip(schemas, self.on, strict=True)
        ]
        shared = [
            schemas[self.clock].columns[there].renamed(schemas[LEFT].columns[at].name)
            for at, there in zip(self.on[LEFT], self.on[self.clock], strict=True)
        ]
        others = [
            self._passing(side, schema.columns[i])
            for side, schema in enumerate(schemas)
            for i in self.rest[side]
        ]
        self.schema = Schema((*shared, *others))

    def _passing(self, side: int, column: Column) -> Column:
        passing = column.renamed(column.name)
        return passing if side == self.clock else replace(passing, mark=None)

    def keys(self, side: int) -> Sequence[Term]:
        return [Ref((name,)) for name in self.node.on]

    def values(self, side: int) -> Sequence[Term]:
        """What else the join reads of a side's rows."""
        return ()

    def needs(self, columns: set[int]) -> Sequence[set[int]]:
        keys, width = len(self.node.on), len(self.rest[LEFT])
        passing: list[set[int]] = [set(), set()]
        for at in (i - keys for i in columns if i >= keys):
            side = LEFT if at < width else RIGHT
            passing[side].add(self.rest[side][at - side * width])
        return [passing[side] | self.reads(side, self.values(side)) for side in (LEFT, RIGHT)]

    def pair(self, left: Row, right: Row | None, place: Place) -> Row:
        """Both rows as one, or the left row alone beside nulls."""
        mine = [left.values[i] for i in (*self.on[LEFT], *self.rest[LEFT])]
        if right is None:
            nulls = [None] * len(self.rest[RIGHT])
            return Row((*mine, *nulls), left.time, left.ids, place)
        theirs = [right.values[i] for i in self.rest[RIGHT]]
        time = latest((left.time, right.time))
        return Row((*mine, *theirs), time, left.ids | right.ids, place)


class JoinLatest(InOrderJoin):
    """Each row of the clock with the other side's row that came last before it."""

    node: nodes.JoinLatest

    def __init__(
        self, node: nodes.JoinLatest, inputs: Sequence[Operator], counters: Counters
    ) -> None:
        self.clock = LEFT if node.clock == "left" else RIGHT
        super().__init__(node, inputs, counters)
        self.latest: dict[Key, Row] = {}

    @property
    def depth(self) -> int:
        return self.inputs[self.clock].depth + len(self.order_by(self.clock))

    def take(self, arrival: Arrival) -> Iterator[Row]:
        row = arrival.row
        if arrival.side != self.clock:
            self.latest[arrival.key] = row
            return
        partner = self.latest.get(arrival.key)
        if partner is not None:
            left, right = (row, partner) if self.clock == LEFT else (partner, row)
            yield self.pair(left, right, row.place)
        elif self.node.how == "left_outer":
            self.counters.unmatched += 1
            yield self.pair(row, None, row.place)


class PairJoin(InOrderJoin):
    """Joins in which a row of either side may meet several of the other, oldest first."""

    @property
    def depth(self) -> int:
        return super().depth + 1

    def pairs(self, arrival: Arrival, others: Iterable[Row]) -> Iterator[Row]:
        """The row that arrived with each of the others; the pairs are numbered in its place."""
        place = padded(arrival.row.place, self.depth - 1)
        for number, other in enumerate(others):
            left, right = (arrival.row, other) if arrival.side == LEFT else (other, arrival.row)
            yield self.pair(left, right, (*place, number))


@dataclass(slots=True)
class _Seen:
    """What a key has seen: each side's rows as they came, and the latest event time."""

    rows: tuple[list[Row], list[Row]] = field(default_factory=lambda: ([], []))
    clock: datetime | None = None


class JoinLast(PairJoin):
    """Each row with the rows in the other side's window."""

    node: nodes.JoinLast

    def __init__(
        self, node: nodes.JoinLast, inputs: Sequence[Operator], counters: Counters
    ) -> None:
        super().__init__(node, inputs, counters)
        self.seen: dict[Key, _Seen] = {}

    def take(self, arrival: Arrival) -> Iterator[Row]:
        seen = self.seen.setdefault(arrival.key, _Seen())
        seen.clock = latest((seen.clock, arrival.row.time))
        yield from self.pairs(arrival, self._window(seen, 1 - arrival.side))
        seen.rows[arrival.side].append(arrival.row)

    def _window(self, seen: _Seen, side: int) -> list[Row]:
        rows = seen.rows[side]
        holds = self.node.left if side == LEFT else self.node.right
        if holds.rows is not None:
            return rows[max(len(rows) - holds.rows, 0) :]
        if seen.clock is None or holds.time is None:
            return []
        since = seen.clock - holds.time * MICROSECOND
        return [row for row in rows if row.time is not None and row.time >= since]


@dataclass(slots=True)
class _Remembered:
    """What a key remembers: each side's rows with their values, and its greatest value so far."""

    rows: tuple[list[tuple[Any, Row]], list[tuple[Any, Row]]] = field(
        default_factory=lambda: ([], [])
    )
    greatest: list[Any] = field(default_factory=lambda: [None, None])


class JoinValue(PairJoin):
    """Each left row with the right rows whose value is above its own, by less than the size."""

    node: nodes.JoinValue

    def __init__(
        self, node: nodes.JoinValue, inputs: Sequence[Operator], counters: Counters
    ) -> None:
        super().__init__(node, inputs, counters)
        self.remembered: dict[Key, _Remembered] = {}

    def values(self, side: int) -> Sequence[Term]:
        return [(self.node.left_on if side == LEFT else self.node.right_on).term]

    def take(self, arrival: Arrival) -> Iterator[Row]:
        side, other = arrival.side, 1 - arrival.side
        (term,) = self.values(side)
        value = measure(evaluate(term, self.inputs[side].schema, arrival.row))
        if value is None:
            return
        memory = self.remembered.setdefault(arrival.key, _Remembered())
        partners = [row for theirs, row in memory.rows[other] if self._meet(side, value, theirs)]
        yield from self.pairs(arrival, partners)
        greatest = memory.greatest
        greatest[side] = value if greatest[side] is None else max(greatest[side], value)
        memory.rows[other][:] = [
            remembered
            for remembered in memory.rows[other]
            if not self._past(other, remembered[0], value)
        ]
        if greatest[other] is None or not self._past(side, value, greatest[other]):
            memory.rows[side].append((value, arrival.row))

    def _meet(self, side: int, value: Any, other: Any) -> bool:
        left, right = (value, other) if side == LEFT else (other, value)
        return bool(left < right < left + self.node.size)

    def _past(self, side: int, value: Any, other: Any) -> bool:
        """Whether a value of the other side means that a row of this side is forgotten."""
        return bool(other >= (value + self.node.size if side == LEFT else value))
