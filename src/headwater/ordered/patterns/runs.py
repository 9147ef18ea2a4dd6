"""Runs of the automaton over the rows of a key, from one first row.

Runs are kept in order of preference. A run that completes the pattern makes all that are less
preferred pointless; the match is decided once no more preferred one is left. A run has the values
of the aggregates that conditions ask for, and its rows as a chain whose links are shared. Of two
runs that wait at the same position with the same values the less preferred is dropped: whatever
happens, it would do as the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from headwater.errors import RunError
from headwater.ordered.patterns.automaton import ACCEPT
from headwater.ordered.patterns.values import NOTHING, grown, truth

if TYPE_CHECKING:
    from headwater.ordered.patterns.conditions import Rows, Seen
    from headwater.ordered.patterns.pattern import Pattern

MOST = 10_000
"""So many runs from one first row are an error: the conditions don't tell variables apart."""

Chain: TypeAlias = "tuple[Chain | None, int, int]"
"""The rows of a run, last first: those before, the row, its variable."""

Run: TypeAlias = "tuple[int, Seen, Chain | None]"
"""A position, what was seen, the rows."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a first row: the best match so far, and the row that decided it, if any."""

    chain: Chain | None
    decided: int | None


def matched(chain: Chain) -> tuple[list[int], list[int]]:
    """The rows of a chain and their variables, first row first."""
    rows, variables = [], []
    link: Chain | None = chain
    while link is not None:
        link, row, variable = link
        rows.append(row)
        variables.append(variable)
    return rows[::-1], variables[::-1]


class Runner:
    """Runs of one pattern."""

    def __init__(self, pattern: Pattern) -> None:
        automaton, conditions = pattern.automaton, pattern.conditions
        self._start = automaton.start
        self._symbols = automaton.symbols
        self._awaited = [tuple(q for q in f if q != ACCEPT) for f in automaton.follow]
        self._accepts = [ACCEPT in f for f in automaton.follow]
        self._tests = conditions.tests
        self._within = pattern.within
        self._skipping = pattern.select == "next"
        self._nothing: Seen = tuple(NOTHING.get(slot.function) for slot in conditions.slots)
        self._slots = [
            [
                (place, slot.function, slot.column)
                for place, slot in enumerate(conditions.slots)
                if slot.variable in (None, name)
            ]
            for name in pattern.variables
        ]

    def outcome(self, rows: Rows, start: int, stop: int) -> Outcome:
        """What becomes of a first row, given the rows before `stop`."""
        runs: list[Run] = [(self._start, self._nothing, None)]
        best: Chain | None = None
        for at in range(start, stop):
            if self._is_beyond(rows, start, at):
                if self._skipping and at > start:
                    continue
                return Outcome(best, at)
            runs, found = self._step(rows, at, runs, skipping=self._skipping and at > start)
            best = found or best
            if not runs:
                return Outcome(best, at)
        return Outcome(best, None)

    def _is_beyond(self, rows: Rows, start: int, at: int) -> bool:
        """Whether a row is too far from the first one in time to be in one match with it."""
        if self._within is None:
            return False
        time, first = rows.times[at], rows.times[start]
        return time is None or first is None or abs(time - first) > self._within

    def _step(
        self, rows: Rows, at: int, runs: list[Run], *, skipping: bool
    ) -> tuple[list[Run], Chain | None]:
        """The runs after one more row, and the match that the most preferred of them completes."""
        alive: list[Run] = []
        known: set[tuple[int, Seen]] = set()
        for run in runs:
            state, seen, chain = run
            moved = False
            for position in self._awaited[state]:
                after = self._after(rows, at, self._symbols[position], seen)
                if after is None:
                    continue
                moved = True
                if (position, after) in known:
                    continue
                known.add((position, after))
                link = (chain, at, self._symbols[position])
                if self._awaited[position]:
                    alive.append((position, after, link))
                if self._accepts[position]:
                    return alive, link
            if skipping and not moved and (state, seen) not in known:
                known.add((state, seen))
                alive.append(run)
        if len(alive) > MOST:
            raise RunError(
                f"match: more than {MOST:,} ways to match the rows of one key are open; "
                "give the variables conditions that exclude each other, or a shorter within="
            )
        return alive, None

    def _after(self, rows: Rows, at: int, variable: int, seen: Seen) -> Seen | None:
        """What a run has seen once a row is matched to a variable; None if it can't be."""
        test = self._tests[variable]
        if test.native is not None and not rows.columns[test.native][at]:
            return None
        try:
            if self._slots[variable]:
                kept: list[Any] = list(seen)
                for place, function, column in self._slots[variable]:
                    value = None if column is None else rows.columns[column][at]
                    kept[place] = grown(function, kept[place], value)
                seen = tuple(kept)
            if test.rest is not None and not truth(test.rest(rows, at, seen)):
                return None
        except TypeError as error:
            raise RunError(f"match: define {test.variable}: {error}") from error
        return seen
