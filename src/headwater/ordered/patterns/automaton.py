"""A pattern's tree as an automaton: which variables a run awaits next, most preferred first.

A *position* is one place of a variable in the pattern (a counted part has a position for each
round). `follow[p]` lists the positions that may match the row after p, in SQL's order of
preference: a greedy part rather continues, a reluctant one rather ends, an option comes before
those to its right. `ACCEPT` in that list says that the pattern may end there; whatever would come
behind it can never be preferred, so nothing does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headwater.errors import FlowError
from headwater.ordered.patterns.parsing import (
    Choice,
    Repeat,
    Series,
    Tree,
    Variable,
    nullable,
    variables,
)

ACCEPT = -1
"""The end of the pattern, in a list of positions."""

LARGEST = 1_000
"""How many positions a pattern may have, counted parts multiplied out."""


@dataclass(frozen=True, slots=True)
class Automaton:
    """Positions of variables, and what may follow each."""

    variables: tuple[str, ...]
    symbols: tuple[int, ...]
    """The variable of each position, as a place in `variables`."""
    follow: tuple[tuple[int, ...], ...]
    """What may follow each position; behind the last position's: what a match may start with."""

    @property
    def start(self) -> int:
        """The state of a run that has matched nothing yet."""
        return len(self.symbols)

    def first(self) -> frozenset[int]:
        """The variables that a match may start with."""
        return frozenset(self.symbols[p] for p in self.follow[self.start])


def compiled(tree: Tree) -> Automaton:
    """The automaton of a tree.

    >>> compiled(Series((Variable("A"), Repeat(Variable("B"), 0, None))))
    Automaton(variables=('A', 'B'), symbols=(0, 1), follow=((1, -1), (1, -1), (0,)))
    """
    names = variables(tree)
    graph = _Graph()
    first = graph.build(tree, graph.add(_End()))
    rows = [at for at, step in enumerate(graph.steps) if isinstance(step, _Row)]
    # Positions are numbered as the pattern reads; steps were made back to front.
    number = {at: place for place, at in enumerate(reversed(rows))}
    symbols, follow = [], []
    for at in number:
        step = graph.steps[at]
        assert isinstance(step, _Row)
        symbols.append(names.index(step.name))
        follow.append(graph.awaited(step.then, number))
    follow.append(graph.awaited(first, number))
    return Automaton(names, tuple(symbols), tuple(follow))


# --- steps between rows ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _End:
    """The pattern is complete."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of a variable, then the next step."""

    name: str
    then: int


@dataclass(frozen=True, slots=True)
class _Fork:
    """Several ways on, the preferred first."""

    ways: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Round:
    """A round of a repetition that may be left without a row starts here, or ends here."""

    number: int
    then: int
    ends: bool


@dataclass(slots=True)
class _Graph:
    """Steps that refer to each other by number."""

    steps: list[_End | _Row | _Fork | _Round] = field(default_factory=list)
    rows: int = 0
    rounds: int = 0

    def add(self, step: _End | _Row | _Fork | _Round) -> int:
        self.rows += isinstance(step, _Row)
        if self.rows > LARGEST:
            raise FlowError(
                f"match: the pattern has more than {LARGEST:,} places for rows "
                "once its counted parts are written out; use smaller counts"
            )
        self.steps.append(step)
        return len(self.steps) - 1

    def build(self, tree: Tree, then: int) -> int:
        """The first step of a tree that goes on to `then`."""
        match tree:
            case Variable(name=name):
                return self.add(_Row(name, then))
            case Series(parts=parts):
                for part in reversed(parts):
                    then = self.build(part, then)
                return then
            case Choice(options=options):
                ways = [self.build(option, then) for option in reversed(options)]
                return self.add(_Fork(tuple(reversed(ways))))
            case Repeat():
                return self._repeated(tree, then)

    def _repeated(self, tree: Repeat, then: int) -> int:
        def fork(again: int) -> _Fork:
            return _Fork((again, then) if tree.greedy else (then, again))

        before, needed = then, tree.least
        if tree.most is None:
            loop = before = self.add(_Fork(()))
            again = self._round(tree.part, loop)
            self.steps[loop] = fork(again)
            if needed and not nullable(tree.part):
                before, needed = again, needed - 1  # the last round that is needed is in the loop
        else:
            for _ in range(tree.most - tree.least):
                before = self.add(fork(self._round(tree.part, before)))
        for _ in range(needed):
            before = self.build(tree.part, before)
        return before

    def _round(self, part: Tree, then: int) -> int:
        """One more round than is needed: it must have a row, or it would change nothing."""
        if not nullable(part):
            return self.build(part, then)
        self.rounds += 1
        number = self.rounds
        inside = self.build(part, self.add(_Round(number, then, ends=True)))
        return self.add(_Round(number, inside, ends=False))

    def awaited(self, step: int, number: dict[int, int]) -> tuple[int, ...]:
        """The positions that can be reached without a row, in order of preference."""
        found: dict[int, None] = {}
        done = set[tuple[int, frozenset[int]]]()
        # Each way has the rounds that were started on it, none of which has a row yet.
        ways: list[tuple[int, frozenset[int]]] = [(step, frozenset())]
        while ways:
            way = at, started = ways.pop()
            if way in done:
                continue
            done.add(way)
            match self.steps[at]:
                case _End():
                    return (*found, ACCEPT)
                case _Row():
                    found[number[at]] = None
                case _Fork(ways=others):
                    ways.extend((other, started) for other in reversed(others))
                case _Round(number=this, then=then, ends=True):
                    if this not in started:
                        ways.append((then, started))
                case _Round(number=this, then=then):
                    ways.append((then, started | {this}))
        return tuple(found)


# --- patterns that never come to an end ------------------------------------------------------


def endless(automaton: Automaton, defined: frozenset[int], *, skipping: bool) -> str | None:
    """Why a match of the pattern could wait for ever for a preferred longer one, if it could.

    `defined` are the variables with a condition; `skipping` says that rows may be skipped.
    """
    follow, symbols = automaton.follow, automaton.symbols
    # Positions from which a run can go on whatever the rows are, without an end.
    going = {p for p, symbol in enumerate(symbols) if symbol not in defined}
    while lost := {p for p in going if not going.intersection(follow[p])}:
        going -= lost
    for awaited in follow:
        for place, position in enumerate(awaited[:-1]):
            if position in going:
                name = automaton.variables[symbols[position]]
                return (
                    f"{name} has no condition and repeats without end, so a preferred longer "
                    f"match is always possible; give {name} a condition, make the repetition "
                    "reluctant (such as +?), or give within="
                )
            if skipping and awaited[place + 1] == ACCEPT:
                name = automaton.variables[symbols[position]]
                return (
                    f"its end is optional, and with select='next' a match would wait for another "
                    f"{name} for ever; make the end reluctant (such as +?), or give within="
                )
    return None
