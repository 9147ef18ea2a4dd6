"""Windows of so many rows, and of rows whose values lie close together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.names import GROUP, NUMBER, TIME
from headwater.ordered.aggregates import Runs, aggregate, collected, rounded
from headwater.ordered.step import (
    Indices,
    Segments,
    State,
    looked_up,
    ranges,
    segments,
    updated,
)

CHUNK = 4_000_000
"""As many pairs of a row and a window are looked at together."""


@dataclass(frozen=True, slots=True)
class Made:
    """A column of a window's result: an aggregate of a column of its rows."""

    name: str
    function: str
    argument: str | None
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Results:
    """What every window's result holds.

    `keys` are columns that all rows of a window agree on, `lists` those whose values it collects,
    `order` those that it has from the row at whose arrival it came out.
    """

    keys: tuple[str, ...]
    made: tuple[Made, ...]
    lists: tuple[str, ...]
    order: tuple[str, ...]

    def table(self, rows: pa.Table, runs: Runs, closers: Indices, numbers: Indices) -> pa.Table:
        """One row for each run of rows; `closers` are the rows at whose arrival they came out."""
        columns: dict[str, pa.Array] = {
            GROUP: _only(rows[GROUP]).take(pa.array(runs.first)),
            NUMBER: pa.array(numbers),
            TIME: aggregate("max", _only(rows[TIME]), runs),
        }
        for name in self.keys:
            columns[name] = _only(rows[name]).take(pa.array(runs.first))
        for name in self.order:
            columns[name] = _only(rows[name]).take(pa.array(closers))
        for name in self.lists:
            columns[name] = collected(_only(rows[name]), runs)
        for each in self.made:
            values = None if each.argument is None else _only(rows[each.argument])
            columns[each.name] = rounded(aggregate(each.function, values, runs), each.type)
        return pa.table(columns)


def _only(values: pa.ChunkedArray) -> pa.Array:
    combined = values.combine_chunks()
    if isinstance(combined, pa.ChunkedArray):
        return combined.chunk(0) if combined.num_chunks else pa.array([], combined.type)
    return combined


OPEN = "open"
SEEN = "seen"


@dataclass(frozen=True, slots=True)
class CountWindows:
    """Windows of `size` rows of a key that begin every `slide` rows."""

    size: int
    slide: int
    results: Results

    def apply(
        self, state: State, rows: pa.Table, watermark: int | None = None
    ) -> tuple[pa.Table, State]:
        """The windows that filled up, and the rows of those that did not."""
        kept, seen = state.get(OPEN), state.get(SEEN)
        parts = segments(kept, rows)
        before = looked_up(parts.groups, seen, GROUP, NUMBER, 0)
        base = before - parts.old  # the number of the first row at hand
        after = base + (parts.ends - parts.starts)
        first = np.maximum(_ceiling(before - self.size + 1, self.slide), 0)
        last = (after - self.size) // self.slide
        count = np.maximum(last - first + 1, 0)
        numbers = ranges(first, count)
        owners = np.repeat(np.arange(len(parts)), count)
        starts = parts.starts[owners] + numbers * self.slide - base[owners]
        out = self._results(parts, starts, numbers)
        keep_from = np.maximum(parts.starts, parts.starts + (first + count) * self.slide - base)
        lengths = np.maximum(parts.ends - keep_from, 0)
        open_rows = parts.rows.take(pa.array(ranges(keep_from, lengths)))
        return out, {OPEN: open_rows, SEEN: updated(seen, parts.groups, GROUP, NUMBER, after)}

    def _results(self, parts: Segments, starts: Indices, numbers: Indices) -> pa.Table:
        """The windows that begin at some rows, a bearable number of them at a time."""
        step = max(1, CHUNK // self.size)
        tables = []
        for low in range(0, max(len(starts), 1), step):
            mine = starts[low : low + step]
            ends = mine + self.size
            runs = Runs.between(mine, ends)
            tables.append(self.results.table(parts.rows, runs, ends - 1, numbers[low : low + step]))
        return pa.concat_tables(tables)


def _ceiling(values: Indices, divisor: int) -> Indices:
    return -(-values // divisor)


WINDOWS = "windows"
START = "__hw_start"
FLOOR = "__hw_floor"
SINCE = "__hw_since"


@dataclass(slots=True)
class _Open:
    """A window that may still grow: its number, the values it takes, the first row it looks at."""

    number: int
    start: float
    floor: float | None
    since: int


@dataclass(frozen=True, slots=True)
class ValueWindows:
    """Windows of rows whose values in a column exceed their first row's by at most `size`."""

    size: float
    slide: float
    on: str
    results: Results

    def apply(
        self, state: State, rows: pa.Table, watermark: int | None = None
    ) -> tuple[pa.Table, State]:
        """The windows that a greater value closed, and the rows of those that are open."""
        parts = segments(state.get(OPEN), rows)
        values = _values(parts.rows[self.on])
        known = _windows(state.get(WINDOWS))
        runs: list[Indices] = []
        closers: list[int] = []
        numbers: list[int] = []
        kept: list[Indices] = []
        windows: dict[int, list[_Open]] = {}
        for group, start, end, old in zip(
            parts.groups.tolist(),
            parts.starts.tolist(),
            parts.ends.tolist(),
            parts.old.tolist(),
            strict=True,
        ):
            mine = known.pop(group, [])
            for window in mine:
                window.since += start if window.since >= 0 else 0
            for at in range(start + old, end):
                value = values[at]
                if value is None:
                    continue
                while mine and mine[0].start + self.size < value and _is_open(mine):
                    closed = mine.pop(0) if len(mine) > 1 else _closed(mine)
                    runs.append(self._taken(closed, values, at))
                    closers.append(at)
                    numbers.append(closed.number)
                newest = mine[-1] if mine else None
                if newest is None:
                    mine.append(_Open(0, value, None, at))
                elif value > newest.start + self.slide:
                    opened = _Open(newest.number + 1, value, newest.start + self.slide, at)
                    if newest.since < 0:  # closed, and only remembered for its start
                        mine.pop()
                    mine.append(opened)
            first = next((w.since for w in mine if w.since >= 0), end)
            kept.append(np.arange(first, end, dtype=np.int64))
            for window in mine:
                window.since = window.since - first if window.since >= 0 else -1
            windows[group] = mine
        flat = np.concatenate(runs) if runs else np.empty(0, np.int64)
        lengths = np.array([len(run) for run in runs], np.int64)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        out = self.results.table(
            parts.rows,
            Runs(flat, offsets),
            np.array(closers, np.int64),
            np.array(numbers, np.int64),
        )
        rows_kept = np.concatenate(kept) if kept else np.empty(0, np.int64)
        open_rows = parts.rows.take(pa.array(rows_kept))
        return out, {OPEN: open_rows, WINDOWS: _as_table({**known, **windows})}

    def _taken(self, window: _Open, values: list[float | None], end: int) -> Indices:
        """The rows of a window, from its first to before the one that closed it."""
        return np.array(
            [
                at
                for at in range(window.since, end)
                if (value := values[at]) is not None
                and (at == window.since or window.floor is None or value > window.floor)
            ],
            np.int64,
        )


def _is_open(mine: list[_Open]) -> bool:
    return mine[0].since >= 0


def _closed(mine: list[_Open]) -> _Open:
    """Closes the newest window, whose start decides when the next one opens."""
    newest = mine[0]
    mine[0] = _Open(newest.number, newest.start, newest.floor, -1)
    return newest


def _values(values: pa.ChunkedArray) -> list[float | None]:
    """Values to compare: numbers, or times in microseconds; NaN as null."""
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    return [None if v is None or v != v else v for v in values.to_pylist()]


def _windows(table: pa.Table | None) -> dict[int, list[_Open]]:
    out: dict[int, list[_Open]] = {}
    if table is None:
        return out
    for row in table.to_pylist():
        window = _Open(row[NUMBER], row[START], row[FLOOR], row[SINCE])
        out.setdefault(row[GROUP], []).append(window)
    return out


def _as_table(windows: dict[int, list[_Open]]) -> pa.Table:
    every = [(group, w) for group, mine in windows.items() for w in mine]
    starts = [w.start for _, w in every]
    kind = pa.int64() if all(isinstance(s, int) for s in starts) else pa.float64()
    return pa.table(
        {
            GROUP: pa.array([group for group, _ in every], pa.int64()),
            NUMBER: pa.array([w.number for _, w in every], pa.int64()),
            START: pa.array(starts, kind),
            FLOOR: pa.array([w.floor for _, w in every], kind if _whole(every) else pa.float64()),
            SINCE: pa.array([w.since for _, w in every], pa.int64()),
        }
    )


def _whole(every: list[tuple[int, _Open]]) -> bool:
    return all(w.floor is None or isinstance(w.floor, int) for _, w in every)
