"""A matcher of patterns that tries everything, in order of preference: the oracle of tests.

It takes the rows of one key as they come, as dicts. After each row it looks for matches from the
earliest undecided row on, by going through all ways in which the pattern could take the rows. It
shares the pattern's tree with the engine, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from headwater.ordered.patterns.parsing import Choice, Repeat, Series, Tree, Variable, parse
from headwater.testing.pattern_values import Bound, evaluate, holds, measure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Found", "Matcher", "evaluate", "find", "measure"]


@dataclass(frozen=True, slots=True)
class Found:
    """A match: the rows by number (the key's first row is 0), and the variable of each.

    It came out in the batch `batch`, at the place of the row `place`.
    """

    batch: int
    rows: tuple[int, ...]
    variables: tuple[str, ...]
    place: int


@dataclass(frozen=True, slots=True)
class _Turn:
    """What stands behind a round that a repetition does not need: it must have had a row."""


_Todo: TypeAlias = "tuple[Tree | _Turn, ...]"
"""What is yet to be matched, first part first."""


def ways(todo: _Todo) -> Iterator[tuple[str, _Todo] | None]:
    """How to go on, most preferred first: a row's variable and what is then to do; None: done."""
    if not todo:
        yield None
        return
    head, rest = todo[0], todo[1:]
    match head:
        case _Turn():  # reached without a row: such a round does not count
            return
        case Variable(name=name):
            yield name, tuple(each for each in rest if not isinstance(each, _Turn))
        case Series(parts=parts):
            yield from ways((*parts, *rest))
        case Choice(options=options):
            for option in options:
                yield from ways((option, *rest))
        case Repeat(part=part, least=least, most=most, greedy=greedy):
            fewer = replace(head, least=max(least - 1, 0), most=None if most is None else most - 1)
            if least:
                yield from ways((part, fewer, *rest))
                return
            again = () if most == 0 else ways((part, _Turn(), fewer, *rest))
            stop = ways(rest)
            for branch in (again, stop) if greedy else (stop, again):
                yield from branch


@dataclass(slots=True)
class Matcher:
    """The matches of one key, row by row and batch by batch."""

    pattern: str
    define: Mapping[str, str] = field(default_factory=dict)
    within: int | None = None
    after_match: str = "skip past last row"
    select: str = "strict"
    time: str = "ts"
    """The column of event times, in microseconds."""
    rows: list[Mapping[str, Any]] = field(default_factory=list)
    found: list[Found] = field(default_factory=list)
    start: int = 0

    def batch(self, number: int, rows: Sequence[Mapping[str, Any]], watermark: int | None) -> None:
        """One micro-batch: its rows arrive one by one, then its watermark counts."""
        for row in rows:
            self.rows.append(row)
            while (leaf := self._first_leaf()) != "open":
                self._decide(leaf, number, place=len(self.rows) - 1)
        while self.start < len(self.rows):
            leaf = self._first_leaf()
            if leaf == "open":
                if not self._has_passed(watermark):
                    break
                leaf = next((each for each in self._leaves() if each != "open"), None)
            self._decide(leaf, number, place=None)

    def _has_passed(self, watermark: int | None) -> bool:
        time = self.rows[self.start][self.time]
        if watermark is None or self.within is None or time is None:
            return False
        return bool(time + self.within < watermark)

    def _first_leaf(self) -> Any:
        if self.start == len(self.rows):
            return "open"
        return next(self._leaves(), None)

    def _decide(self, bound: Bound | None, batch: int, place: int | None) -> None:
        """Gives a start up, or lets its match come out; then goes on to the next start."""
        if bound is None:
            self.start += 1
            return
        variables, rows = zip(*bound, strict=True)
        self.found.append(Found(batch, rows, variables, rows[-1] if place is None else place))
        words = self.after_match.split()
        target = self.start + 1
        if words[-2:] == ["last", "row"]:
            target = rows[-1] + 1
        elif words[2] in ("first", "last"):
            mine = [row for name, row in bound if name == words[3]]
            if mine:
                target = max(target, mine[0 if words[2] == "first" else -1])
        self.start = target

    def _leaves(self) -> Iterator[Any]:
        """Where every way from the current start ends: complete, or "open" for want of rows."""
        return self._from((parse(self.pattern),), self.start, ())

    def _from(self, todo: _Todo, at: int, bound: Bound) -> Iterator[Any]:
        awaited: list[tuple[str, _Todo]] = []
        is_done = False
        for way in ways(todo):
            if way is None:
                is_done = True
                break
            awaited.append(way)
        if awaited and at == len(self.rows):
            yield "open"
        elif awaited:
            taken = [way for way in awaited if self._may_take(way[0], at, bound)]
            for name, rest in taken:
                yield from self._from(rest, at + 1, (*bound, (name, at)))
            if not taken and bound and self.select == "next":
                yield from self._from(todo, at + 1, bound)
        if is_done:
            yield bound

    def _may_take(self, name: str, at: int, bound: Bound) -> bool:
        if self.within is not None:
            time, first = self.rows[at][self.time], self.rows[self.start][self.time]
            if time is None or first is None or abs(time - first) > self.within:
                return False
        if name not in self.define:
            return True
        return holds(self.define[name], self.rows, (*bound, (name, at)))


def find(
    pattern: str,
    batches: Sequence[tuple[Sequence[Mapping[str, Any]], int | None]],
    **parameters: Any,
) -> list[Found]:
    """The matches in one key's batches, each with its watermark, in the order they come out.

    >>> rows = [{"v": 1, "ts": 0}, {"v": 2, "ts": 1}, {"v": 0, "ts": 2}]
    >>> find("A B+", [(rows, None)], define={"B": "v > prev(v)"})
    [Found(batch=0, rows=(0, 1), variables=('A', 'B'), place=2)]
    """
    matcher = Matcher(pattern, **parameters)
    for number, (rows, watermark) in enumerate(batches):
        matcher.batch(number, rows, watermark)
    return matcher.found
