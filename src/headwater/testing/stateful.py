"""Aggregates, sessions and deduplication: what they keep between batches and when they let go.

Append mode: a row is late if its event time is not after the operator's watermark of the
batch before; a group is given out once it is not after the watermark of this batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from headwater.flow.terms import Ref, Term, unaliased
from headwater.flow.windows import Session, Window
from headwater.testing.aggregates import aggregate
from headwater.testing.evaluate import EPOCH, evaluate, interval
from headwater.testing.operators import (
    Batch,
    Choose,
    Counters,
    Operator,
    is_past,
    output_column,
    positions,
)
from headwater.testing.rows import (
    MICROSECOND,
    Column,
    InterpreterError,
    Row,
    Schema,
    Struct,
    moment,
    united,
    window_struct,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater.flow import nodes

Key = tuple[Any, ...]


def windows_of(window: Window, time: datetime) -> Iterator[Struct]:
    """The windows that hold a time, latest first.

    >>> from datetime import timedelta as d
    >>> w = Window("window", Ref(("ts",)), size=12_000_000, slide=5_000_000)
    >>> [(w.get("start") - EPOCH).seconds for w in windows_of(w, EPOCH + d(seconds=11))]
    [10, 5, 0]
    """
    size, slide = (timedelta(microseconds=n) for n in (window.size, window.slide))
    at = (time - EPOCH) // MICROSECOND
    last = time - ((at - window.offset) % window.slide) * MICROSECOND
    for i in range(math.ceil(window.size / window.slide)):
        start = last - i * slide
        if start <= time < start + size:
            yield window_struct(start, start + size)


class Grouping(Operator):
    """What aggregates of every kind share: their keys, their columns, their results."""

    node: nodes.Aggregate

    def __init__(
        self, node: nodes.Aggregate, inputs: Sequence[Operator], counters: Counters
    ) -> None:
        super().__init__(node, inputs)
        self.counters = counters
        self.input = inputs[0].schema
        keys = [self._key_column(expr.term) for expr in node.keys]
        made = [output_column(expr.term, self.input) for expr in node.columns]
        self.schema = Schema((*keys, *(Column(c.name) for c in made)))
        marked = self.schema.event_time(node.step, range(len(keys)))
        if marked is None:
            raise InterpreterError(f"{node.step}: no key is the event time; Spark refuses that")
        self.marked = marked
        # What aggregate expressions may refer to: the input, and the window among the keys.
        self.seen = Schema((*self.input, *(k for k in keys if k not in self.input.columns)))
        self.at_window = next((i for i, e in enumerate(node.keys) if _is_window(e.term)), None)

    def _key_column(self, term: Term) -> Column:
        window = self.node.window
        if window is not None and _is_window(term):
            return Column(window.column, mark=output_column(window.time, self.input).mark)
        return output_column(term, self.input)

    def needs(self, columns: set[int]) -> Sequence[set[int]]:
        keys = [expr.term for expr in self.node.keys]
        made = [self.node.columns[i - len(keys)].term for i in columns if i >= len(keys)]
        own = {column.name for column in self.schema.columns[: len(keys)]}
        refs = [
            part
            for term in (*keys, *made)
            for part in term.walk()
            if isinstance(part, Ref) and not (part.parts[0] in own and _absent(part, self.input))
        ]
        return [positions(refs, self.input)]

    def key(self, row: Row, window: Struct | None) -> Key:
        """A row's key; windows have several, one for each window."""
        return tuple(
            window if i == self.at_window else evaluate(expr.term, self.input, row)
            for i, expr in enumerate(self.node.keys)
        )

    def result(self, key: Key, rows: Sequence[Row]) -> Row:
        """The result of a group."""
        extended = [row.with_values((*row.values, *self._extra(key))) for row in rows]
        made = (aggregate(expr.term, self.seen, extended) for expr in self.node.columns)
        return Row((*key, *made), moment(key[self.marked]), united(rows))

    def _extra(self, key: Key) -> Iterator[Any]:
        columns = self.input.columns
        return (v for c, v in zip(self.schema, key, strict=False) if c not in columns)


def _is_window(term: Term) -> bool:
    return getattr(unaliased(term), "name", None) in ("window", "session_window")


def _absent(ref: Ref, schema: Schema) -> bool:
    try:
        schema.find(ref.parts)
    except InterpreterError:
        return True
    return False


class Aggregate(Grouping):
    """Groups with fixed keys: time windows, window columns, event times."""

    def __init__(
        self, node: nodes.Aggregate, inputs: Sequence[Operator], counters: Counters
    ) -> None:
        super().__init__(node, inputs, counters)
        self.groups: dict[Key, list[Row]] = {}

    def run(self, batch: Batch) -> list[Row]:
        late, now = self.boundary(batch.previous), self.boundary(batch.watermark)
        for row in self.inputs[0].run(batch):
            keys = list(self._keys(row))
            kept = [key for key in keys if not is_past(key[self.marked], late)]
            self.counters.late_windows += len(keys) - len(kept)
            if keys and not kept:
                self.counters.dropped(row.ids)
            for key in kept:
                self.counters.kept_ids |= row.ids
                self.groups.setdefault(key, []).append(row)
        ready = [key for key in self.groups if is_past(key[self.marked], now)]
        return [self.result(key, self.groups.pop(key)) for key in ready]

    def _keys(self, row: Row) -> Iterator[Key]:
        window = self.node.window
        if not isinstance(window, Window):
            yield self.key(row, None)
            return
        time = moment(evaluate(window.time, self.input, row))
        if time is not None:
            for each in windows_of(window, time):
                yield self.key(row, each)


@dataclass(slots=True)
class _Open:
    """A session that may still grow."""

    start: datetime
    end: datetime
    rows: list[Row]


class Sessions(Grouping):
    """Session windows: rows of a key whose times lie within the gap, ends included."""

    def __init__(
        self, node: nodes.Aggregate, inputs: Sequence[Operator], counters: Counters
    ) -> None:
        super().__init__(node, inputs, counters)
        if len(node.keys) < 2:
            raise InterpreterError(f"{node.step}: Spark needs a key beside a session window")
        self.open: dict[Key, list[_Open]] = {}

    def run(self, batch: Batch) -> list[Row]:
        late, now = self.boundary(batch.previous), self.boundary(batch.watermark)
        for row in self.inputs[0].run(batch):
            session = self._of(row)
            if session is None:
                continue
            if session.end <= late:
                self.counters.dropped(row.ids)
                continue
            self.counters.kept_ids |= row.ids
            key = self.key(row, None)
            self.open[key] = self._merged([*self.open.get(key, []), session])
        results = []
        for key, sessions in self.open.items():
            for session in sessions:
                if session.end <= now:
                    full = list(key)
                    full[self.marked] = window_struct(session.start, session.end)
                    results.append(self.result(tuple(full), session.rows))
            self.open[key] = [s for s in sessions if s.end > now]
        return results

    def _of(self, row: Row) -> _Open | None:
        window = self.node.window
        assert isinstance(window, Session)
        time = moment(evaluate(window.time, self.input, row))
        gap: Any = window.gap
        if gap is None:
            gap = evaluate(window.gap_term, self.input, row)
        if isinstance(gap, str):
            gap = interval(gap)
        elif isinstance(gap, int):
            gap = timedelta(microseconds=gap)
        if time is None or gap is None or gap <= timedelta(0):
            return None
        return _Open(time, time + gap, [row])

    def _merged(self, sessions: list[_Open]) -> list[_Open]:
        merged: list[_Open] = []
        for session in sorted(sessions, key=lambda s: s.start):
            if merged and session.start <= merged[-1].end:
                last = merged[-1]
                joined = [*last.rows, *session.rows]
                merged[-1] = _Open(last.start, max(last.end, session.end), joined)
                self.counters.sessions_merged += 1
            else:
                merged.append(session)
        return merged


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
    ) -> None:
        super().__init__(node, inputs)
        self.counters, self.choose, self.place = counters, choose, place
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
        different = list(dict.fromkeys(rows))
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
