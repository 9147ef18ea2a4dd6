"""Patterns as a step of the reference interpreter: a naive matcher for each key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.testing.arrival import Arrival, InOrder, Key, measure
from headwater.testing.evaluate import EPOCH
from headwater.testing.patterns import Matcher
from headwater.testing.patterns import measure as measured
from headwater.testing.rows import MICROSECOND, Column, Row, Schema, latest, united
from headwater.testing.selecting import output_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.flow import nodes
    from headwater.flow.terms import Term
    from headwater.testing.operators import Batch, Counters, Operator

TIME = "__time"


class Match(InOrder):
    """Each key's rows go to a matcher of its own; then the watermark closes what it has passed."""

    node: nodes.Match

    def __init__(self, node: nodes.Match, inputs: Sequence[Operator], counters: Counters) -> None:
        super().__init__(node, inputs, counters)
        self.input = inputs[0].schema
        keys = [output_column(expr.term, self.input) for expr in node.by]
        self.schema = Schema(
            (
                *(column.renamed(column.name) for column in keys),
                *(Column(name, mark=self._mark(text)) for name, text in node.pattern.measures),
            )
        )
        self.matchers: dict[Key, Matcher] = {}
        self.rows: dict[Key, list[Row]] = {}

    @property
    def depth(self) -> int:
        return super().depth + 1

    def _mark(self, text: str) -> int | None:
        """The latest event time of a match is an event time again."""
        for column in self.input:
            if column.mark is not None and text.replace(" ", "") == f"max({column.name})":
                return column.mark
        return None

    def keys(self, side: int) -> Sequence[Term]:
        return [expr.term for expr in self.node.by]

    def needs(self, columns: set[int]) -> Sequence[set[int]]:
        return [set(range(len(self.input)))]

    def run(self, batch: Batch) -> list[Row]:
        arrivals: dict[Key, list[Arrival]] = {}
        for arrival in self.arrivals(batch):
            arrivals.setdefault(arrival.key, []).append(arrival)
        watermark = (self.boundary(batch.watermark) - EPOCH) // MICROSECOND
        out: list[Row] = []
        for key in dict.fromkeys((*arrivals, *self.matchers)):
            matcher = self.matchers.setdefault(key, self._matcher())
            mine = self.rows.setdefault(key, [])
            new = [arrival.row for arrival in arrivals.get(key, ())]
            before = len(matcher.found)
            mine.extend(new)
            matcher.batch(batch.number, [self._seen(row) for row in new], watermark)
            numbers = range(before, len(matcher.found))
            out.extend(self._result(key, matcher, number, mine) for number in numbers)
        return out

    def _matcher(self) -> Matcher:
        pattern = self.node.pattern
        return Matcher(
            pattern.text,
            dict(pattern.define),
            pattern.within,
            pattern.after_match,
            pattern.select,
            TIME,
        )

    def _seen(self, row: Row) -> dict[str, Any]:
        named = {column.name: row.values[i] for i, column in enumerate(self.input)}
        return {**named, TIME: None if row.time is None else measure(row.time)}

    def _result(self, key: Key, matcher: Matcher, number: int, rows: list[Row]) -> Row:
        found = matcher.found[number]
        bound = tuple(zip(found.variables, found.rows, strict=True))
        made = (
            measured(text, matcher.rows, bound, number) for _, text in self.node.pattern.measures
        )
        mine = [rows[i] for i in found.rows]
        values = (tuple(v) if isinstance(v, list) else v for v in made)
        place = (*rows[found.place].place, number)
        return Row((*key, *values), latest(row.time for row in mine), united(mine), place)
