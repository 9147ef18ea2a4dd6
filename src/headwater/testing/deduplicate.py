"""Deduplication: what is remembered between batches, and which row survives."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from headwater.testing.operators import Batch, Choose, Counters, Operator, is_past
from headwater.testing.rows import Row, Struct

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from headwater.flow import nodes

Key = tuple[Any, ...]


class Deduplicate(Operator):
    """The first row of each value of some columns, for as long as the value is remembered."""

    node: nodes.Deduplicate

    def __init__(
        self,
        node: nodes.Deduplicate,
        inputs: Sequence[Operator],
        counters: Counters,
        choose: Choose,
        place: str,
        ordered: bool = False,
    ) -> None:
        super().__init__(node, inputs)
        self.counters, self.choose, self.place = counters, choose, place
        self.ordered = ordered
        self.schema = inputs[0].schema
        self.keys = (
            [self.schema.find((name,))[0] for name in node.columns]
            if node.columns
            else self.schema.visible()
        )
        self.remembered: dict[Key, datetime | None] = {}

    def needs(self, columns: set[int]) -> Sequence[set[int]]:
        needed = columns | set(self.keys)
        if self.node.within_watermark:
            needed |= {i for i, c in enumerate(self.schema) if c.mark is not None}
        return [needed]

    def run(self, batch: Batch) -> list[Row]:
        # Spark sees the event time only if something still uses it.
        marked = self.schema.event_time(self.node.step, self.inputs[0].required)
        late, now = self.boundary(batch.previous), self.boundary(batch.watermark)
        candidates: dict[Key, list[Row]] = {}
        for row in self.inputs[0].run(batch):
            if marked is not None and is_past(row.values[marked], late):
                self.counters.dropped(row.ids)
                continue
            self.counters.kept_ids |= row.ids
            candidates.setdefault(tuple(row.values[i] for i in self.keys), []).append(row)
        survivors = []
        for key, rows in candidates.items():
            if key in self.remembered:
                self.counters.duplicates += len(rows)
                continue
            self.counters.duplicates += len(rows) - 1
            row = self._survivor(batch.number, key, rows)
            survivors.append(row)
            self.remembered[key] = self._expiry(row, marked)
        for key in [k for k, expiry in self.remembered.items() if is_past(expiry, now)]:
            del self.remembered[key]
        return survivors

    def _survivor(self, batch: int, key: Key, rows: Sequence[Row]) -> Row:
        # Equal rows are no choice, unless a step behind sees where they stand.
        seen = {(row, row.place if self.ordered else None): row for row in rows}
        different = list(seen.values())
        if len(different) == 1:
            return different[0]
        self.counters.choices += 1
        return different[self.choose(self.place, batch, key, different)]

    def _expiry(self, row: Row, marked: int | None) -> datetime | None:
        """When the watermark makes the key forgotten; None is never."""
        if marked is None:
            return None
        value = row.values[marked]
        time: datetime | None = value.get("end") if isinstance(value, Struct) else value
        if time is not None and self.node.within_watermark:
            return time + timedelta(milliseconds=self.schema.columns[marked].mark or 0)
        return time if marked in self.keys else None
