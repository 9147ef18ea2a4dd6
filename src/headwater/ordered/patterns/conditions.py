"""DEFINE: when a row may be matched to a variable.

A condition is split in two. What is about the row's own columns is *native*: Spark evaluates it
beforehand, into columns with generated names. What looks at other rows of the key or at what a run
has matched becomes a closure over those columns' values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlglot import exp

from headwater.errors import FlowError
from headwater.ordered.patterns import operators, reading, values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from headwater.ordered.patterns.reading import Natives


@dataclass(slots=True)
class Rows:
    """Rows of a key as Python values: those from `low` on."""

    columns: Mapping[str, Sequence[Any]]
    times: Sequence[int | None]
    low: int


Seen: TypeAlias = tuple[Any, ...]
"""What a run keeps of the rows that it has matched: one value for each slot."""

if TYPE_CHECKING:
    Closure: TypeAlias = Callable[[Rows, int, Seen], Any]


@dataclass(frozen=True, slots=True)
class Slot:
    """An aggregate over what a run has matched so far: to a variable, or at all."""

    function: str
    variable: str | None
    column: str | None


@dataclass(frozen=True, slots=True)
class Test:
    """A variable's condition: a column that must be true, and a closure that must be."""

    variable: str
    native: str | None = None
    rest: Closure | None = None

    __test__ = False


class Conditions:
    """The conditions of all variables, sharing their columns and slots."""

    def __init__(
        self, variables: Sequence[str], define: Mapping[str, str], natives: Natives
    ) -> None:
        self.variables = tuple(variables)
        self.slots: list[Slot] = []
        self.back = 0
        """How many rows before the current one a condition may look at."""
        self.columns: set[str] = set()
        """The native columns whose values are looked at."""
        self._natives = natives
        self.tests = tuple(
            self._test(name, define[name]) if name in define else Test(name)
            for name in self.variables
        )

    @property
    def booleans(self) -> frozenset[str]:
        """The native columns that must be truth values."""
        return frozenset(test.native for test in self.tests if test.native is not None)

    def _test(self, variable: str, text: str) -> Test:
        what = f"match: define {variable}"
        tree = reading.read(text, what)
        if reading.is_native(tree, variable, self.variables):
            return Test(variable, self._column(reading.verbatim(text, tree, variable)))
        parts = list(tree.unnest().flatten()) if isinstance(tree.unnest(), exp.And) else [tree]
        own = [part for part in parts if reading.is_native(part, variable, self.variables)]
        rest = [part for part in parts if not any(part is other for other in own)]
        native = None
        if own:
            native = self._column(reading.without(exp.and_(*own), variable))
        reader = _Compiler(self, variable, what)
        return Test(variable, native, operators.conjunction([reader.closure(p) for p in rest]))

    def _column(self, text: str) -> str:
        name = self._natives.name(text)
        self.columns.add(name)
        return name

    def _slot(self, slot: Slot) -> int:
        if slot not in self.slots:
            self.slots.append(slot)
        return self.slots.index(slot)


@dataclass(slots=True)
class _Compiler:
    """From the tree of one variable's condition to closures."""

    conditions: Conditions
    variable: str
    what: str

    def closure(self, node: exp.Expr) -> Closure:
        """What gives the node's value for a row, given what the run has matched."""
        constant = operators.constant(node)
        if constant is not None:
            return operators.always(constant.value)
        if reading.is_native(node, self.variable, self.conditions.variables):
            return self._column(self._name(node, self.variable))
        if isinstance(node, exp.Column):
            return self._matched("last", reading.qualifier(node, self.conditions.variables), node)
        called = reading.function(node)
        if called == "prev":
            return self._previous(node)
        if called in ("first", "last", "count", "sum", "min", "max", "avg"):
            variable, argument = reading.single(node, self.conditions.variables, self.what)
            return self._matched(called, variable, argument)
        made = None if called else operators.closure(node, self.closure)
        if made is None:
            shown = reading.written(node)
            why = _HINTS.get(called, "") if called else f"; perhaps last({shown})?"
            raise FlowError(f"{self.what}: {shown} is not supported over matched rows{why}")
        return made

    def _name(self, node: exp.Expr, variable: str | None) -> str:
        return self.conditions._column(reading.without(node, variable))

    def _column(self, name: str) -> Closure:
        return lambda rows, at, seen: rows.columns[name][at]

    def _matched(self, function: str, variable: str | None, argument: exp.Expr | None) -> Closure:
        """An aggregate over the rows that were matched, the current one among them."""
        column = None if argument is None else self._name(argument, variable)
        if function == "last" and variable in (None, self.variable):
            assert column is not None
            return self._column(column)  # the current row is the last
        kind = "rows" if argument is None else function
        place = self.conditions._slot(Slot(kind, variable, column))
        return lambda rows, at, seen: values.told(kind, seen[place])

    def _previous(self, node: exp.Expr) -> Closure:
        given = node.expressions
        shown = reading.written(node)
        if not given or len(given) > 2:
            raise FlowError(f"{self.what}: {shown}: write prev(column) or prev(column, n)")
        if not reading.is_native(given[0], self.variable, self.conditions.variables):
            raise FlowError(
                f"{self.what}: {shown}: prev takes an expression of columns without a variable"
            )
        number = operators.constant(given[1]) if len(given) == 2 else operators.Constant(1)
        back = None if number is None else number.value
        if not isinstance(back, int) or isinstance(back, bool) or back < 1:
            raise FlowError(f"{self.what}: {shown}: prev takes a number of rows, 1 at least")
        self.conditions.back = max(self.conditions.back, back)
        name = self._name(given[0], self.variable)

        def previous(rows: Rows, at: int, seen: Seen) -> Any:
            return rows.columns[name][at - back] if at - back >= rows.low else None

        return previous


_HINTS = {
    "next": ": a condition can't look ahead",
    "match_number": ": it is known to measures only",
    "classifier": ": it is known to measures only",
    "classifiers": ": it is known to measures only",
}
