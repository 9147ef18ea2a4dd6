"""What a match step looks for: the user's texts, checked, with the automaton made of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from headwater.errors import FlowError
from headwater.ordered.patterns.automaton import Automaton, compiled, endless
from headwater.ordered.patterns.conditions import Conditions
from headwater.ordered.patterns.measures import Measure, measures
from headwater.ordered.patterns.parsing import Tree, parse, variables
from headwater.ordered.patterns.reading import Natives

if TYPE_CHECKING:
    from collections.abc import Mapping

PAST_LAST_ROW = "skip past last row"


@dataclass(frozen=True, slots=True)
class Skip:
    """Where the search goes on behind a match: past its last row, at a row of a variable, or at
    the row behind its first."""

    to: Literal["past last row", "next row", "first", "last"] = "past last row"
    variable: str | None = None


@dataclass(frozen=True)
class Pattern:
    """A pattern, its conditions and measures; a wrong one can't be made.

    >>> rising = Pattern("A B+", define=(("B", "price > prev(price)"),))
    >>> rising.native
    {'__hw_c0': 'price'}
    """

    text: str
    define: tuple[tuple[str, str], ...] = ()
    measures: tuple[tuple[str, str], ...] = ()
    within: int | None = None
    """In microseconds."""
    after_match: str = PAST_LAST_ROW
    select: Literal["strict", "next"] = "strict"

    def __post_init__(self) -> None:
        within: Any = self.within
        if within is not None and (not isinstance(within, int) or within < 0):
            raise FlowError(f"match: within is a number of microseconds, not {within!r}")
        if self.select not in ("strict", "next"):
            raise FlowError(f"match: select={self.select!r} is neither 'strict' nor 'next'")
        # Whatever is wrong with the texts is found here.
        _ = self.skip, self.automaton, self._parts
        if within is not None:
            return
        defined = frozenset(self.variables.index(name) for name, _ in self.define)
        why = endless(self.automaton, defined, skipping=self.select == "next")
        if why is not None:
            raise FlowError(f"match: pattern {self.text!r} never comes to an end: {why}")

    @cached_property
    def tree(self) -> Tree:
        """The pattern's tree."""
        return parse(self.text, [name for name, _ in self.define])

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The variables, as the pattern has them."""
        return variables(self.tree)

    @cached_property
    def automaton(self) -> Automaton:
        """The automaton of the tree."""
        return compiled(self.tree)

    @cached_property
    def _parts(self) -> tuple[Natives, Conditions, tuple[Measure, ...]]:
        natives = Natives()
        conditions = Conditions(self.variables, dict(self.define), natives)
        return natives, conditions, measures(self.variables, self.measures, natives)

    @property
    def native(self) -> Mapping[str, str]:
        """What Spark evaluates for each row: columns by their generated names, as SQL."""
        return self._parts[0].columns

    @property
    def conditions(self) -> Conditions:
        """When a row may be matched to each variable."""
        return self._parts[1]

    @property
    def columns(self) -> tuple[Measure, ...]:
        """The measures."""
        return self._parts[2]

    @cached_property
    def skip(self) -> Skip:
        """Where the search goes on behind a match."""
        words = " ".join(str(self.after_match).split())
        found = re.fullmatch(
            r"(?:after match )?skip (past last row|to next row|to (first|last) (\w+))", words, re.I
        )
        if found is None:
            raise FlowError(
                f"match: after_match={self.after_match!r}: write 'skip past last row', "
                "'skip to next row', 'skip to first V' or 'skip to last V'"
            )
        variable = found[3]
        if variable is not None and variable not in self.variables:
            raise FlowError(
                f"match: after_match={self.after_match!r}: pattern {self.text!r} has no "
                f"variable {variable!r}; it has {', '.join(self.variables)}"
            )
        match (found[2] or found[1]).lower():
            case "first":
                return Skip("first", variable)
            case "last":
                return Skip("last", variable)
            case "to next row":
                return Skip("next row")
        return Skip()

    def __reduce__(self) -> tuple[type[Pattern], tuple[Any, ...]]:
        # Closures don't travel; the texts do, and are compiled where they arrive.
        return Pattern, tuple(getattr(self, f.name) for f in fields(self))
