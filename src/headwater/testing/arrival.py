"""Rows in the order of their arrival, for the steps that see it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from headwater.flow import nodes
from headwater.testing.evaluate import EPOCH, evaluate
from headwater.testing.operators import Batch, Counters, Operator
from headwater.testing.rows import MICROSECOND, NOWHERE, InterpreterError, Row, Schema, Struct
from headwater.testing.selecting import positions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headwater.flow.expressions import Expr
    from headwater.flow.terms import Term

Key = tuple[Any, ...]


class TiedError(InterpreterError):
    """Two rows of which nothing but chance says which comes first: no test may depend on it."""


def ascending(value: Any) -> tuple[Any, ...]:
    """What to sort a value by: nulls first, NaN last, structs and arrays part by part."""
    match value:
        case None:
            return (0,)
        case float() if math.isnan(value):
            return (2,)
        case Struct(fields=fields):
            return (1, tuple(ascending(v) for _, v in fields))
        case tuple():
            return (1, tuple(ascending(v) for v in value))
    return (1, value)


def measure(value: Any) -> Any:
    """A number, or a time in microseconds; None for what has no value (null, NaN)."""
    if isinstance(value, datetime):
        return (value - EPOCH) // MICROSECOND
    return None if value is None or math.isnan(value) else value


@dataclass(frozen=True, slots=True)
class Arrival:
    """A row that comes to a step: by which input, for which key, and when in its batch."""

    side: int
    key: Key
    row: Row
    when: tuple[Any, ...]


class InOrder(Operator):
    """A step that takes its inputs' rows one by one; nothing is late for it."""

    node: nodes.Ordered

    def __init__(self, node: nodes.Ordered, inputs: Sequence[Operator], counters: Counters) -> None:
        super().__init__(node, inputs)
        self.counters = counters

    @property
    def depth(self) -> int:
        given = (len(self.order_by(side)) for side in range(len(self.inputs)))
        return max(a.depth + g for a, g in zip(self.inputs, given, strict=True))

    def keys(self, side: int) -> Sequence[Term]:
        """What the rows of an input have in common that belong together."""
        raise NotImplementedError

    def order_by(self, side: int) -> Sequence[Expr]:
        """What an input's rows are sorted by before their places count."""
        if side == 1 and isinstance(self.node, nodes.OrderedJoin):
            return self.node.right_order_by
        return self.node.order_by

    def take(self, arrival: Arrival) -> Iterable[Row]:
        """The rows that come out when one arrives."""
        raise NotImplementedError

    def run(self, batch: Batch) -> list[Row]:
        return [row for arrival in self.arrivals(batch) for row in self.take(arrival)]

    def arrivals(self, batch: Batch) -> list[Arrival]:
        """A batch's rows of all inputs, in order."""
        arrivals = [
            self._arrival(side, row)
            for side, above in enumerate(self.inputs)
            for row in above.run(batch)
        ]
        self._refuse_ties(arrivals)
        try:
            return sorted(arrivals, key=lambda arrival: (arrival.when, arrival.side))
        except TypeError as error:
            raise TiedError(f"{self.node.step}: some rows were ordered otherwise") from error

    def reads(self, side: int, terms: Iterable[Term]) -> set[int]:
        """The columns of an input that its order, its keys and some terms are made from."""
        order = (expr.term for expr in self.order_by(side))
        return positions([*order, *self.keys(side), *terms], self.inputs[side].schema)

    def _arrival(self, side: int, row: Row) -> Arrival:
        given = self.order_by(side)
        if not given and row.place[0] is NOWHERE[0]:
            raise InterpreterError(f"{self.node.step}: the rows above have no order: use order_by")
        self.counters.kept_ids |= row.ids
        schema = self.inputs[side].schema
        # What it is ordered by here stays with it: a step behind sees the same order.
        order = (ascending(evaluate(expr.term, schema, row)) for expr in given)
        placed = row.at(*order, *row.place)
        when = tuple(ascending(part) for part in placed.place)
        return Arrival(side, values_of(self.keys(side), schema, row), placed, when)

    def _refuse_ties(self, arrivals: Iterable[Arrival]) -> None:
        seen: dict[tuple[Any, ...], Row] = {}
        for arrival in arrivals:
            other = seen.setdefault((arrival.side, arrival.key, arrival.when), arrival.row)
            if other != arrival.row:
                pair = f"{other.values} and {arrival.row.values}"
                raise TiedError(f"{self.node.step}: {pair} arrive at the same place")


def values_of(terms: Iterable[Term], schema: Schema, row: Row) -> Key:
    """The values of some terms over a row."""
    return tuple(evaluate(term, schema, row) for term in terms)
