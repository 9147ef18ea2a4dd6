"""Columns in a query's text: whose they are, what they are called, when two are the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.flow.sql.dialect import written

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headwater.flow.sql.parsing import Statement


def identifier(name: str) -> exp.Identifier:
    """A name as a word of a query, in backticks, whatever characters it has."""
    return exp.Identifier(this=name, quoted=True)


def column(*parts: str | exp.Expr) -> exp.Column:
    """A column by its name, after its table's or its struct's."""
    words = [identifier(part) if isinstance(part, str) else part for part in parts]
    places = ("this", "table", "db", "catalog")
    return exp.Column(**dict(zip(places, reversed(words), strict=False)))


def named(expression: exp.Expr, *names: str) -> exp.Expr:
    """An expression under a name, or under several for one that makes several columns."""
    words = [identifier(name) for name in names]
    if len(words) == 1:
        return exp.Alias(this=expression, alias=words[0])
    return exp.Aliases(this=expression, expressions=words)


def qualifiers(clauses: Iterable[exp.Expr]) -> set[str]:
    """The first words of all columns that have several, in lower case."""
    found = (c for clause in clauses for c in clause.find_all(exp.Column))
    return {c.parts[0].name.casefold() for c in found if len(c.parts) > 1}


@dataclass(slots=True)
class Scope:
    """The tables and columns that the clauses of one SELECT see."""

    statement: Statement
    tables: dict[str, str] = field(default_factory=dict)
    """Names of tables, by their lower case."""
    views: set[str] = field(default_factory=set)
    """Names of LATERAL VIEWs, in lower case: their columns go by their own names alone."""
    columns: list[str] = field(default_factory=list)
    made: set[str] = field(default_factory=set)
    """What the SELECT itself makes, in lower case: aliases, windows."""

    def has(self, name: str) -> bool:
        """Whether the rows of FROM have a column of this name."""
        return name.casefold() in map(str.casefold, self.columns)

    def add(self, name: str, at: exp.Expr) -> None:
        """One more table."""
        if name.casefold() in self.tables:
            raise self.statement.wrong(at, f"two tables are called {name!r}; give one an alias")
        self.tables[name.casefold()] = name

    def settled(self, expression: exp.Expr) -> exp.Expr:
        """The expression with each table called what its frame is called."""
        return expression.copy().transform(self._settle, copy=False)

    def _settle(self, node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or len(node.parts) == 1:
            return node
        first, *rest = node.parts
        name = first.name.casefold()
        if name in self.tables:
            return column(self.tables[name], *rest)
        if name in self.views:
            return column(*rest)
        if self.has(name) or name in self.made:
            return node
        known = ", ".join([*self.tables.values(), *self.views])
        raise self.statement.wrong(node, f"FROM has no table {first.name!r}; it has {known}")

    def same(self, expression: exp.Expr) -> str:
        """A text that is equal for expressions that differ in case and needless table names."""
        names = [c.casefold() for c in self.columns]

        def plain(node: exp.Expr) -> exp.Expr:
            match node:
                case exp.Column():
                    parts = _without_table(node.parts, self.tables, names)
                    return column(*(exp.Identifier(this=p.casefold(), quoted=True) for p in parts))
                case exp.Anonymous(this=str()):
                    node.set("this", node.name.casefold())
            return node

        return written(expression.unnest().copy().transform(plain, copy=False))


def _without_table(
    parts: Sequence[exp.Expr], tables: dict[str, str], names: list[str]
) -> list[str]:
    words = [part.name for part in parts]
    if len(words) > 1 and words[0].casefold() in tables and names.count(words[1].casefold()) == 1:
        return words[1:]
    return words
