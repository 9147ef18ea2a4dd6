"""Joins of two streams by what has arrived before.

Rows of both sides come in one table, each with its side and its own row as a struct, null on the
other. A pair is a left and a right row; it has its place from the row at whose arrival it was made.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.names import GROUP, LEFT_ROW, NUMBER, RIGHT_ROW, SIDE, TIME
from headwater.ordered.step import Segments, State, column, segments

if TYPE_CHECKING:
    from collections.abc import Iterator

KEPT = "kept"
CLOCK = "clock"


@dataclass(slots=True)
class Pairs:
    """Pairs as they are made: rows by number, -1 for none, and which of a row's pairs it is."""

    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    at: list[int] = field(default_factory=list)
    number: list[int] = field(default_factory=list)

    def add(self, side: int, row: int, other: int, number: int) -> None:
        """A pair of a row that arrived with one of the other side."""
        self.left.append(other if side else row)
        self.right.append(row if side else other)
        self.at.append(row)
        self.number.append(number)

    def table(self, rows: pa.Table, order: tuple[str, ...]) -> pa.Table:
        """The pairs: both rows, their place."""
        at = pa.array(self.at, pa.int64())
        columns = {name: rows[name].take(at) for name in order}
        columns[NUMBER] = pa.array(self.number, pa.int64())
        for name, mine in ((LEFT_ROW, self.left), (RIGHT_ROW, self.right)):
            places = np.array(mine, np.int64)
            columns[name] = rows[name].take(pa.array(places, mask=places < 0))
        return pa.table(columns)


def paired(
    parts: Segments, order: tuple[str, ...], of_key: Any
) -> tuple[pa.Table, pa.Table, dict[int, Any]]:
    """The pairs of all keys, the rows to keep, and what each key remembers beside them."""
    sides = column(parts.rows, SIDE).tolist()
    pairs = Pairs()
    kept: list[int] = []
    keys: dict[int, Any] = {}
    for group, start, end, old in zip(
        parts.groups.tolist(),
        parts.starts.tolist(),
        parts.ends.tolist(),
        parts.old.tolist(),
        strict=True,
    ):
        windows = keys[group] = of_key(group, range(start, start + old))
        for row in range(start + old, end):
            for number, other in enumerate(windows.met(row, sides[row])):
                pairs.add(sides[row], row, other, number)
        kept.extend(windows.remembered())
    rows = parts.rows.take(pa.array(kept, pa.int64()))
    return pairs.table(parts.rows, order), rows, keys


@dataclass(frozen=True, slots=True)
class LatestJoin:
    """Each row of the clock's side with the most recent row of the other; all keys at once."""

    clock: int
    outer: bool
    order: tuple[str, ...]

    def apply(
        self, state: State, rows: pa.Table, watermark: int | None = None
    ) -> tuple[pa.Table, State]:
        """The pairs that the clock's rows make, and the last row of the other side for each key."""
        parts = segments(state.get(KEPT), rows)
        number = parts.rows.num_rows
        ticks = column(parts.rows, SIDE) == self.clock
        places = np.arange(number, dtype=np.int64)
        latest = np.maximum.accumulate(np.where(ticks, -1, places)) if number else places
        begins = np.repeat(parts.starts, parts.ends - parts.starts)
        latest = np.where(latest >= begins, latest, -1)
        out = ticks if self.outer else ticks & (latest >= 0)
        clocked, others = places[out], latest[out]
        sides = (others, clocked) if self.clock else (clocked, others)
        columns = {name: parts.rows[name].take(pa.array(clocked)) for name in self.order}
        columns[NUMBER] = pa.array(np.zeros(len(clocked), np.int64))
        for name, mine in zip((LEFT_ROW, RIGHT_ROW), sides, strict=True):
            columns[name] = parts.rows[name].take(pa.array(mine, mask=mine < 0))
        last = latest[parts.ends - 1] if number else places
        return pa.table(columns), {KEPT: parts.rows.take(pa.array(last[last >= 0]))}


@dataclass(frozen=True, slots=True)
class Last:
    """What a side's window holds: the last rows, or those of the last microseconds."""

    rows: int | None = None
    time: int | None = None


@dataclass(frozen=True, slots=True)
class LastJoin:
    """Each row with the rows in the other side's window."""

    left: Last
    right: Last
    order: tuple[str, ...]

    def apply(
        self, state: State, rows: pa.Table, watermark: int | None = None
    ) -> tuple[pa.Table, State]:
        """The pairs that the rows make as they arrive, and what the windows hold after them."""
        parts = segments(state.get(KEPT), rows)
        times = times_of(parts.rows)
        sides = column(parts.rows, SIDE).tolist()
        clocks = _clocks(state.get(CLOCK))

        def of_key(group: int, old: range) -> _LastRows:
            windows = _LastRows((self.left, self.right), times, clocks.pop(group, None))
            for row in old:
                windows.held[sides[row]].append(row)
            return windows

        out, kept, keys = paired(parts, self.order, of_key)
        known = {**clocks, **{g: w.clock for g, w in keys.items() if w.clock is not None}}
        clock = pa.table(
            {
                GROUP: pa.array(list(known), pa.int64()),
                TIME: pa.array(list(known.values()), pa.int64()),
            }
        )
        return out, {KEPT: kept, CLOCK: clock}


def times_of(rows: pa.Table) -> list[int | None]:
    """The rows' event times in microseconds."""
    times: list[int | None] = rows[TIME].cast(pa.int64()).to_pylist()
    return times


def _clocks(table: pa.Table | None) -> dict[int, int]:
    if table is None:
        return {}
    return dict(zip(table[GROUP].to_pylist(), table[TIME].to_pylist(), strict=True))


class _LastRows:
    """The windows of one key."""

    def __init__(
        self, lasts: tuple[Last, Last], times: list[int | None], clock: int | None
    ) -> None:
        self.lasts = lasts
        self.times = times
        self.clock = clock
        self.held: tuple[deque[int], deque[int]] = (deque(), deque())

    def met(self, row: int, side: int) -> Iterator[int]:
        time = self.times[row]
        if time is not None and (self.clock is None or time > self.clock):
            self.clock = time
            for last, held in zip(self.lasts, self.held, strict=True):
                self._expire(last, held)
        yield from list(self.held[1 - side])
        own, mine = self.lasts[side], self.held[side]
        if own.rows is not None:
            mine.append(row)
            if len(mine) > own.rows:
                mine.popleft()
        elif time is not None:
            mine.append(row)
            self._expire(own, mine)

    def _expire(self, last: Last, held: deque[int]) -> None:
        """Lets go of rows that are too old; they need not stand in order of their times."""
        if last.time is None or self.clock is None:
            return
        oldest = self.clock - last.time
        if any((self.times[row] or 0) < oldest for row in held):
            fresh = [row for row in held if (self.times[row] or 0) >= oldest]
            held.clear()
            held.extend(fresh)

    def remembered(self) -> list[int]:
        return sorted((*self.held[0], *self.held[1]))


VALUE = "__hw_value"
REACHED = "reached"
_REACHED = ("__hw_left_reached", "__hw_right_reached")


@dataclass(frozen=True, slots=True)
class ValueJoin:
    """Each left row with the right rows whose value lies in a range above its own."""

    size: float
    order: tuple[str, ...]

    def apply(
        self, state: State, rows: pa.Table, watermark: int | None = None
    ) -> tuple[pa.Table, State]:
        """The pairs that the rows make as they arrive, and the rows that may still make some."""
        parts = segments(state.get(KEPT), rows)
        values = values_of(parts.rows)
        sides = column(parts.rows, SIDE).tolist()
        reached = _pairs_of(state.get(REACHED))

        def of_key(group: int, old: range) -> _InRange:
            windows = _InRange(self.size, values, list(reached.pop(group, (None, None))))
            for row in old:
                windows.held[sides[row]].append(row)
            return windows

        out, kept, keys = paired(parts, self.order, of_key)
        known = {**reached, **{g: tuple(w.reached) for g, w in keys.items()}}
        kind = _kind(known)
        table = pa.table(
            {
                GROUP: pa.array(list(known), pa.int64()),
                _REACHED[0]: pa.array([v[0] for v in known.values()], kind),
                _REACHED[1]: pa.array([v[1] for v in known.values()], kind),
            }
        )
        return out, {KEPT: kept, REACHED: table}


def _kind(known: dict[int, tuple[Any, ...]]) -> pa.DataType:
    whole = all(isinstance(v, int) for mine in known.values() for v in mine if v is not None)
    return pa.int64() if whole else pa.float64()


def values_of(rows: pa.Table) -> list[Any]:
    """The values that rows are joined by; times in microseconds, NaN as null."""
    values = rows[VALUE]
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    return [None if v is None or v != v else v for v in values.to_pylist()]


def _pairs_of(table: pa.Table | None) -> dict[int, tuple[Any, Any]]:
    if table is None:
        return {}
    both = zip(table[_REACHED[0]].to_pylist(), table[_REACHED[1]].to_pylist(), strict=True)
    return dict(zip(table[GROUP].to_pylist(), both, strict=True))


class _InRange:
    """The rows of one key that may still find partners, and how far each side has come."""

    def __init__(self, size: float, values: list[Any], reached: list[Any]) -> None:
        self.size = size
        self.values = values
        self.reached = reached
        self.held: tuple[list[int], list[int]] = ([], [])

    def met(self, row: int, side: int) -> Iterator[int]:
        value = self.values[row]
        if value is None:
            return
        for other in list(self.held[1 - side]):
            left, right = (self.values[other], value) if side else (value, self.values[other])
            if left < right < left + self.size:
                yield other
        if self.reached[side] is None or value > self.reached[side]:
            self.reached[side] = value
            self.held[1 - side][:] = [r for r in self.held[1 - side] if not self._past(r, 1 - side)]
        if not self._past(row, side):
            self.held[side].append(row)

    def _past(self, row: int, side: int) -> bool:
        """Whether the other side has gone past a row."""
        far = self.reached[1 - side]
        if far is None:
            return False
        value = self.values[row]
        return bool(far >= value) if side else bool(far >= value + self.size)

    def remembered(self) -> list[int]:
        return sorted((*self.held[0], *self.held[1]))
