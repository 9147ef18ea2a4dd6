"""Joins: a stream with a static side, and two streams that remember each other's rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any

from headwater.flow.expressions import Expr
from headwater.flow.terms import Call, Ref, Term
from headwater.testing.bounds import Sides, conjuncts
from headwater.testing.evaluate import EPOCH, evaluate
from headwater.testing.operators import Batch, Counters, Operator, is_past
from headwater.testing.rows import NOWHERE, Row, Schema, latest
from headwater.testing.selecting import positions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from headwater.flow import nodes


class Pairing(Operator):
    """What joins of both kinds share: the pair's columns, condition and provenance."""

    node: nodes.Join

    def __init__(self, node: nodes.Join, inputs: Sequence[Operator], counters: Counters) -> None:
        super().__init__(node, inputs)
        self.counters = counters
        left, right = inputs[0].schema, inputs[1].schema
        left = left.qualified(node.left_alias) if node.left_alias else left
        right = right.qualified(node.right_alias) if node.right_alias else right
        # Both sides of one frame joined with itself get identities of their own, as in Spark.
        right = Schema(tuple(replace(c, uid=-1 - c.uid) for c in right))
        both = (*left.columns, *right.columns)
        self.order = list(range(len(both)))
        self.schema = self.pair = Schema(both)
        self.conditions: list[Term] = []
        if isinstance(node.on, Expr):
            self.conditions = list(conjuncts(node.on.term))
        else:
            self._use(node.on, left, right)
        self.sides = Sides(self.pair, len(left))

    def _use(self, names: tuple[str, ...], left: Schema, right: Schema) -> None:
        """`on` as names: one column for each, the right side's hidden behind its alias."""
        keys = [left.find((name,))[0] for name in names]
        hidden = [right.find((name,))[0] + len(left) for name in names]
        rest = [i for i in self.order if i not in keys and i not in hidden]
        both = self.pair.columns
        self.order = [*keys, *rest, *hidden]
        self.schema = Schema(
            tuple(replace(both[i], hidden=True) if i in hidden else both[i] for i in self.order)
        )
        self.pair = Schema((*left.qualified("left"), *right.qualified("right")))
        self.conditions = [Call("=", (Ref(("left", n)), Ref(("right", n)))) for n in names]

    def needs(self, columns: set[int]) -> Sequence[set[int]]:
        used = {self.order[i] for i in columns} | positions(self.conditions, self.pair)
        width = self.sides.width
        return [{i for i in used if i < width}, {i - width for i in used if i >= width}]

    @property
    def depth(self) -> int:
        return len(NOWHERE)

    def holds(self, condition: Iterable[Term], pair: Row) -> bool:
        """Whether all the conditions are true of a pair."""
        return all(evaluate(term, self.pair, pair) is True for term in condition)

    def paired(self, left: Row, right: Row | None) -> Row:
        """The pair, or the left row alone beside nulls."""
        width = len(self.pair) - self.sides.width
        other = right.values if right is not None else (None,) * width
        ids = left.ids | right.ids if right is not None else left.ids
        time = latest((left.time, right.time)) if right is not None else left.time
        return Row((*left.values, *other), time, ids)

    def shown(self, pair: Row) -> Row:
        """A pair under the columns of the result."""
        return pair.with_values(pair.values[i] for i in self.order)


class StaticJoin(Pairing):
    """Each batch's rows with the static side; nothing is remembered, nothing is late."""

    def run(self, batch: Batch) -> list[Row]:
        others = self.inputs[1].run(batch)
        results = []
        for left in self.inputs[0].run(batch):
            pairs = [self.paired(left, right) for right in others]
            matches = [self.shown(pair) for pair in pairs if self.holds(self.conditions, pair)]
            if not matches and self.node.how == "left_outer":
                self.counters.unmatched += 1
                matches = [self.shown(self.paired(left, None))]
            results += matches
        return results


@dataclass(slots=True)
class _Waiting:
    """A row that may still meet a partner."""

    row: Row
    matched: bool = False


class StreamJoin(Pairing):
    """Two streams: each row waits for partners until the watermark rules them out."""

    def __init__(self, node: nodes.Join, inputs: Sequence[Operator], counters: Counters) -> None:
        super().__init__(node, inputs, counters)
        self.waiting: dict[str, list[_Waiting]] = {"left": [], "right": []}
        keys = [key for term in self.conditions if (key := self.sides.key(term)) is not None]
        self.time_keys = next(
            (key for key in keys if any(self.sides.is_marked(side) for side in key)), None
        )
        self.left_only = [t for t in self.conditions if self.sides.of(t) == {"left"}]
        # Spark moves conditions over one side below the join where that changes nothing, and
        # takes equalities as keys; the rest is what it reads a bound from.
        moved = ({"left"}, {"right"}) if node.how == "inner" else ({"right"},)
        self.kept_conditions = [
            t
            for t in self.conditions
            if self.sides.of(t) not in moved and self.sides.key(t) is None
        ]

    def passes_on(self, watermark: int) -> int | None:
        own = self.input_watermark(watermark)
        if own is None:
            return None
        bounds = [self._state_watermark(side, own) for side in ("left", "right")]
        return reduce(min, (b for b in bounds if b is not None), own)

    def _state_watermark(self, side: str, watermark: int) -> int | None:
        if self.time_keys is not None:
            return watermark
        if self._marked(side) is None:
            return None
        return self.sides.state_watermark(side, self.kept_conditions, watermark)

    def _marked(self, side: str) -> int | None:
        above = self.inputs[0 if side == "left" else 1]
        return above.schema.event_time(self.node.step, above.required)

    def _arrived(self, side: str, batch: Batch) -> list[Row]:
        """A side's rows that are not late."""
        rows = self.inputs[0 if side == "left" else 1].run(batch)
        at, late = self._marked(side), self.boundary(batch.previous)
        kept = []
        for row in rows:
            if at is not None and is_past(row.values[at], late):
                self.counters.dropped(row.ids)
            else:
                self.counters.kept_ids |= row.ids
                kept.append(row)
        return kept

    def run(self, batch: Batch) -> list[Row]:
        # Both inputs first: a batch's rows enter every operator, whatever becomes of them here.
        left_rows, right_rows = self._arrived("left", batch), self._arrived("right", batch)
        results: list[Row] = []
        outer = self.node.how == "left_outer"
        for row in left_rows:
            alone = self.paired(row, None)
            if not self.holds(self.left_only, alone):
                # It can never match: an outer join gives it out at once.
                if outer:
                    self.counters.unmatched += 1
                    results.append(self.shown(alone))
                continue
            mine = _Waiting(row)
            for other in self.waiting["right"]:
                results += self._match(mine, other)
            self.waiting["left"].append(mine)
        for row in right_rows:
            mine = _Waiting(row)
            for other in self.waiting["left"]:
                results += self._match(other, mine)
            self.waiting["right"].append(mine)
        for waiting in self._past("left", batch):
            if outer and not waiting.matched:
                self.counters.unmatched += 1
                results.append(self.shown(self.paired(waiting.row, None)))
        self._past("right", batch)
        return results

    def _match(self, left: _Waiting, right: _Waiting) -> list[Row]:
        pair = self.paired(left.row, right.row)
        if not self.holds(self.conditions, pair):
            return []
        left.matched = True
        return [self.shown(pair)]

    def _past(self, side: str, batch: Batch) -> list[_Waiting]:
        """Take out the rows of a side whose time for partners is over."""
        is_over = self._over(side, batch)
        gone = [w for w in self.waiting[side] if is_over(w.row)]
        self.waiting[side] = [w for w in self.waiting[side] if not is_over(w.row)]
        return gone

    def _over(self, side: str, batch: Batch) -> Callable[[Row], bool]:
        now = self.boundary(batch.watermark)
        if self.time_keys is not None:
            key = self.time_keys[0 if side == "left" else 1]
            return lambda row: is_past(self._own(side, key, row), now)
        mine = (self.input_watermark(batch.watermark) or 0) if batch.watermark else 0
        bound = self._state_watermark(side, max(mine, 0))
        at = self._marked(side)
        if bound is None or at is None:
            return lambda row: False
        until = EPOCH + timedelta(milliseconds=bound)
        return lambda row: is_past(row.values[at], until)

    def _own(self, side: str, term: Term, row: Row) -> Any:
        width = self.sides.width
        padding = (None,) * (len(self.pair) - width)
        values = (*row.values, *padding) if side == "left" else ((None,) * width + row.values)
        return evaluate(term, self.pair, row.with_values(values))
