"""The parts of a SELECT with groups: items of its list, and columns that a groupBy makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.flow.sql.asking import is_aggregate
from headwater.flow.sql.columns import named
from headwater.flow.sql.dialect import written

if TYPE_CHECKING:
    from collections.abc import Iterator

WINDOWS = ("window", "session_window")
_WRAPPED = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


@dataclass(frozen=True, slots=True)
class Item:
    """An expression of the SELECT list."""

    expression: exp.Expr
    alias: str | None

    @property
    def name(self) -> str | None:
        """What its column is called, where the text says so."""
        return self.alias or own_name(self.expression)


@dataclass(slots=True, eq=False)
class Made:
    """A column that a groupBy makes; one without a name is called what Spark calls it."""

    expression: exp.Expr
    name: str | None

    @property
    def text(self) -> str:
        """The column as Spark is given it."""
        if self.name is None or self.name == own_name(self.expression):
            return written(self.expression)
        return written(named(self.expression, self.name))


def aggregates_in(expression: exp.Expr) -> list[exp.Expr]:
    """The calls in an expression that make one value of many rows, outermost ones only."""
    return [n for n in expression.walk(bfs=False, prune=aggregates) if aggregates(n)]


def aggregates(node: exp.Expr) -> bool:
    """Whether a part of a query is a call that makes one value of many rows."""
    if isinstance(node, _WRAPPED):
        return aggregates(node.this)
    return isinstance(node, exp.Anonymous) and is_aggregate(node.name)


def inside_aggregate(node: exp.Expr) -> bool:
    """Whether a part of a query is given to an aggregate."""
    return any(map(aggregates, _above(node)))


def own_name(expression: exp.Expr) -> str | None:
    """The name that an expression gives its column by itself."""
    if isinstance(expression, exp.Column):
        return str(expression.name)
    return str(expression.name).casefold() if is_window(expression) else None


def is_window(expression: exp.Expr) -> bool:
    """Whether an expression is a call of window or session_window."""
    return isinstance(expression, exp.Anonymous) and expression.name.casefold() in WINDOWS


def is_word(node: exp.Expr) -> bool:
    """Whether a part of a query is a column by its name alone."""
    return isinstance(node, exp.Column) and len(node.parts) == 1


def aliased(word: exp.Expr, items: list[Item]) -> exp.Expr | None:
    """The expression of the list that goes by a name."""
    alike = (i for i in items if i.alias and i.alias.casefold() == word.name.casefold())
    item = next(alike, None)
    return item.expression.copy() if item else None


def _above(node: exp.Expr) -> Iterator[exp.Expr]:
    while (above := node.parent) is not None:
        yield above
        node = above
