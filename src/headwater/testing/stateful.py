"""Aggregates and sessions: what they keep between batches and when they let go.

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
from headwater.testing.concise import deciding
from headwater.testing.evaluate import EPOCH, evaluate, interval
from headwater.testing.operators import Batch, Counters, Operator, is_past
from headwater.testing.rows import (
    MICROSECOND,
    NOWHERE,
    Column,
    InterpreterError,
    Row,
    Schema,
    Struct,
    moment,
    united,
    window_struct,
)
from headwater.testing.selecting import output_column, positions

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
            mark = output_column(window.time, self.input).mark
            return Column(window.column, mark=mark, session=isinstance(window, Session))
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

    @property
    def depth(self) -> int:
        return len(NOWHERE)

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
        counted = rows
        if self.node.concise:
            counted = deciding(self.node.columns, self.seen, extended)
        return Row((*key, *made), moment(key[self.marked]), united(counted))

    def _extra(self, key: Key) -> Iterator[Any]:
        columns = self.input.columns
        return (v for c, v in zip(self.schema, key, strict=False) if c not in columns)


def _is_window(term: Term) -> bool:
    return getattr(unaliased(term), "name", None) in ("window", "session_window")


def grouping(
    node: nodes.Aggregate, inputs: Sequence[Operator], counters: Counters
) -> Aggregate | Sessions:
    """The operator of an aggregate: sessions merge, other groups do not."""
    plain = Aggregate(node, inputs, counters)
    is_session = plain.schema.columns[plain.marked].session
    return Sessions(node, inputs, counters) if is_session else plain


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
            whole = self.key(row, None)
            key = (*whole[: self.marked], None, *whole[self.marked + 1 :])
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
        if not isinstance(window, Session):
            # An earlier aggregate's sessions as a key: Spark merges those that overlap again.
            given = evaluate(self.node.keys[self.marked].term, self.input, row)
            return None if given is None else _Open(given.get("start"), given.get("end"), [row])
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
