"""Matches of a pattern in the rows of many keys, as they arrive."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import FlowError
from headwater.names import GROUP, NUMBER, TIME
from headwater.ordered.aggregates import Runs, aggregate, collected
from headwater.ordered.patterns.conditions import Rows
from headwater.ordered.patterns.keeping import (
    KEYS,
    NO_KEYS,
    OPEN,
    SINCE,
    is_true,
    known,
    listed,
    micros,
    updated,
)
from headwater.ordered.patterns.measures import Matched, measured, only
from headwater.ordered.patterns.runs import Runner, matched
from headwater.ordered.step import column, ranges, segments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.ordered.patterns.pattern import Pattern
    from headwater.ordered.step import Indices, Segments, State


@dataclass(slots=True)
class _Found:
    """Matches as they are found: their rows one after the other."""

    rows: list[int] = field(default_factory=list)
    variables: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)

    def add(self, rows: list[int], variables: list[int], place: int) -> None:
        """One more match."""
        self.rows += rows
        self.variables += variables
        self.lengths.append(len(rows))
        self.places.append(place)

    def matched(self) -> Matched:
        """All of them, in NumPy."""
        lengths = np.array([0, *self.lengths], np.int64)
        runs = Runs(np.array(self.rows, np.int64), np.cumsum(lengths))
        return Matched(runs, np.array(self.variables, np.int64), np.array(self.numbers, np.int64))


class Patterns:
    """The step: rows of some keys in, matches out.

    `by`, `order` and `lists` name columns of the rows: those that a match has from its first row,
    those that it has from the row at whose arrival it came out, and those whose values it
    collects. `types` are the measures' types.
    """

    def __init__(
        self,
        pattern: Pattern,
        *,
        by: Sequence[str] = (),
        order: Sequence[str] = (),
        lists: Sequence[str] = (),
        types: Mapping[str, pa.DataType] | None = None,
    ) -> None:
        self.pattern = pattern
        self.by, self.order, self.lists = tuple(by), tuple(order), tuple(lists)
        self.types = dict(types or {})
        names = [GROUP, NUMBER, TIME, *by, *order, *lists, *(m.name for m in pattern.columns)]
        for name in names:
            if names.count(name) > 1:
                raise FlowError(f"match: two columns are called {name!r}; rename one")
        assert {m.name for m in pattern.columns} <= set(self.types), "a measure without its type"
        self._runner = Runner(pattern)
        self._first = [pattern.conditions.tests[v] for v in sorted(pattern.automaton.first())]

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.pattern, self.by, self.order, self.lists, self.types)

    def apply(
        self, state: State, rows: pa.Table, watermark: int | None = None
    ) -> tuple[pa.Table, State]:
        """The matches that came out, and the rows that may still be in one."""
        needed = dict.fromkeys(
            (GROUP, TIME, *self.order, *self.by, *self.lists, *self.pattern.native)
        )
        rows = rows.select(list(needed))
        self._check(rows)
        keys = state.get(KEYS, NO_KEYS)
        kept = state.get(OPEN, rows.slice(0, 0))
        touched = np.union1d(column(rows, GROUP), self._overdue(keys, watermark))
        is_touched = np.isin(column(kept, GROUP), touched)
        parts = segments(kept.filter(pa.array(is_touched)), rows)
        counts, starts = known(keys, parts)
        found = self._search(parts, counts, starts, watermark)
        kept_from = np.maximum(starts - self.pattern.conditions.back, parts.starts)
        still = parts.rows.take(pa.array(ranges(kept_from, parts.ends - kept_from)))
        others = kept.filter(pa.array(~is_touched))
        return self._table(parts.rows, found), {
            OPEN: pa.concat_tables([others, still]).combine_chunks(),
            KEYS: updated(keys, parts, counts, starts, kept_from),
        }

    def due(self, state: State) -> int | None:
        """The least watermark that closes something in a state, in microseconds."""
        if KEYS not in state or self.pattern.within is None:
            return None
        earliest = pc.min(state[KEYS][SINCE]).as_py()
        return None if earliest is None else earliest + self.pattern.within + 1

    def _overdue(self, keys: pa.Table, watermark: int | None) -> Indices:
        """The keys whose earliest undecided row the watermark has passed."""
        if watermark is None or self.pattern.within is None:
            return np.empty(0, np.int64)
        passed = pc.less(keys[SINCE], watermark - self.pattern.within)
        return column(keys.filter(passed), GROUP)

    def _search(
        self, parts: Segments, counts: Indices, starts: Indices, watermark: int | None
    ) -> _Found:
        """The matches; `starts` become the earliest undecided rows, `counts` are raised."""
        found = _Found()
        candidates = np.flatnonzero(self._may_begin(parts.rows))
        first = np.append(candidates, parts.rows.num_rows)[np.searchsorted(candidates, starts)]
        is_idle = first >= parts.ends
        starts[is_idle] = parts.ends[is_idle]
        if is_idle.all():
            return found
        begin = candidates.tolist()
        columns = {name: listed(parts.rows[name]) for name in self.pattern.conditions.columns}
        rows = Rows(columns, micros(parts.rows[TIME]).to_pylist(), 0)
        for key in np.flatnonzero(~is_idle).tolist():
            rows.low = int(parts.starts[key])
            before = len(found.lengths)
            stop, count = int(parts.ends[key]), int(counts[key])
            starts[key] = self._search_key(rows, begin, int(starts[key]), stop, watermark, found)
            found.numbers += range(count, count + len(found.lengths) - before)
            counts[key] += len(found.lengths) - before
        return found

    def _search_key(
        self,
        rows: Rows,
        begin: list[int],
        at: int,
        stop: int,
        watermark: int | None,
        found: _Found,
    ) -> int:
        """Adds a key's matches from a row on; the row at which the search stopped."""
        latest = 0
        closed = False
        while True:
            place = bisect_left(begin, at)
            if place == len(begin) or begin[place] >= stop:
                return stop
            at = begin[place]
            outcome = self._runner.outcome(rows, at, stop)
            if outcome.decided is not None:
                latest = max(latest, outcome.decided)
            elif self._is_overdue(rows.times[at], watermark):
                closed = True
            else:
                return at
            if outcome.chain is None:
                at += 1
                continue
            mine, variables = matched(outcome.chain)
            found.add(mine, variables, mine[-1] if closed else latest)
            at = self._next_start(mine, variables)

    def _may_begin(self, rows: pa.Table) -> Any:
        """Which rows may begin a match, as far as their own columns tell."""
        possible = np.zeros(rows.num_rows, bool)
        for test in self._first:
            possible |= True if test.native is None else is_true(rows[test.native])
        if self.pattern.within is not None:
            possible &= rows[TIME].is_valid().to_numpy()
        return possible

    def _is_overdue(self, time: int | None, watermark: int | None) -> bool:
        """Whether the watermark has passed all that may be in one match with a first row."""
        within = self.pattern.within
        if within is None or watermark is None or time is None:
            return False
        return time + within < watermark

    def _check(self, rows: pa.Table) -> None:
        for name in sorted(self.pattern.conditions.booleans):
            if not pa.types.is_boolean(rows[name].type):
                text = self.pattern.native[name]
                raise FlowError(f"match: {text!r} is no condition: it gives {rows[name].type}")

    def _next_start(self, rows: list[int], variables: list[int]) -> int:
        """Where the search goes on behind a match."""
        skip = self.pattern.skip
        if skip.to == "past last row":
            return rows[-1] + 1
        if skip.variable is None:
            return rows[0] + 1
        variable = self.pattern.variables.index(skip.variable)
        mine = [row for row, v in zip(rows, variables, strict=True) if v == variable]
        target = rows[0] if not mine else mine[0] if skip.to == "first" else mine[-1]
        return max(target, rows[0] + 1)

    def _table(self, rows: pa.Table, found: _Found) -> pa.Table:
        """One row for each match."""
        matches = found.matched()
        runs = matches.runs
        first, places = pa.array(runs.first), pa.array(found.places, pa.int64())
        columns: dict[str, pa.Array] = {
            GROUP: only(rows[GROUP]).take(first),
            NUMBER: pa.array(matches.numbers),
            TIME: aggregate("max", only(rows[TIME]), runs),
        }
        for name in self.by:
            columns[name] = only(rows[name]).take(first)
        for name in self.order:
            columns[name] = only(rows[name]).take(places)
        for name in self.lists:
            columns[name] = collected(only(rows[name]), runs)
        for each in self.pattern.columns:
            names, kind = self.pattern.variables, self.types[each.name]
            columns[each.name] = measured(each, rows, matches, names, kind)
        return pa.table(columns)


def _again(
    pattern: Pattern,
    by: Sequence[str],
    order: Sequence[str],
    lists: Sequence[str],
    types: Mapping[str, pa.DataType],
) -> Patterns:
    return Patterns(pattern, by=by, order=order, lists=lists, types=types)
