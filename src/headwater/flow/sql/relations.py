"""FROM, JOIN and LATERAL VIEW: the frames of a query, put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from sqlglot import exp

from headwater.flow.frame import Frame
from headwater.flow.projecting import GENERATORS
from headwater.flow.sql.columns import Scope, column, named, qualifiers
from headwater.flow.sql.dialect import written
from headwater.flow.sql.items import WINDOWS

if TYPE_CHECKING:
    from headwater.flow.sql.naming import Names, Rows
    from headwater.flow.sql.parsing import Statement

Query = Callable[[exp.Expr, "Names"], Frame]


@dataclass(frozen=True, slots=True)
class Relations:
    """Makes the rows that a SELECT is over."""

    statement: Statement
    query: Query
    """Translates a subquery."""
    fresh: Iterator[str]
    """Names that are nobody's."""

    def of(self, select: exp.Select, names: Names) -> tuple[Frame, Scope]:
        """The rows of FROM with everything joined, and what the other clauses may name."""
        aliases = {e.alias.casefold() for e in select.expressions if e.alias}
        scope = Scope(self.statement, made={*aliases, *WINDOWS})
        start = select.args["from_"].this
        joins = select.args.get("joins") or []
        name, rows = self._named(start, names)
        frame = self._traced(rows, start)
        if name is not None:
            scope.add(name, start)
            if joins or name.casefold() in qualifiers(_clauses(select)):
                frame = frame.alias(name)
        elif joins:
            frame = frame.alias(next(self.fresh))
        for join in joins:
            frame = self._joined(frame, join, names, scope)
        scope.columns = frame.columns
        for view in select.args.get("laterals") or []:
            frame = self._exploded(frame, view, scope)
            scope.columns = frame.columns
        return frame, scope

    def _named(self, node: exp.Expr, names: Names) -> tuple[str | None, Rows]:
        """One table or subquery, with the name that it goes by."""
        rows: Rows
        if isinstance(node, exp.Table):
            rows = names.find(self.statement, node)
        else:
            rows = self.query(node.this, names)
        alias = node.args.get("alias")
        name = node.alias_or_name or None
        if alias is None or not alias.columns:
            return name, rows
        return name, renamed(self._traced(rows, node), alias, self.statement)

    def _traced(self, rows: Rows, at: exp.Expr) -> Frame:
        if isinstance(rows, DataFrame):
            raise self.statement.unsupported(
                at,
                "a DataFrame here",
                "it can stand right after JOIN; to trace it, use flow.source(name, df=…)",
            )
        return rows

    def _joined(self, left: Frame, join: exp.Join, names: Names, scope: Scope) -> Frame:
        name, right = self._named(join.this, names)
        how = "left_outer" if join.side == "LEFT" else "inner"
        if name is not None:
            scope.add(name, join.this)
        aliased = right.alias(name or next(self.fresh))
        scope.columns = [*left.columns, *aliased.columns]
        if (using := join.args.get("using")) is not None:
            return left.join(aliased, [_spelled(u.name, left.columns) for u in using], how)
        condition = scope.settled(join.args["on"])
        return left.join(aliased, F.expr(written(condition)), how)

    def _exploded(self, frame: Frame, view: exp.Lateral, scope: Scope) -> Frame:
        call, alias = view.this, view.args.get("alias")
        function = call.name.casefold()
        if function not in GENERATORS:
            raise self.statement.unsupported(
                call, f"LATERAL VIEW {call.name}", f"use {', '.join(GENERATORS)}"
            )
        if view.args.get("outer") and not function.endswith("_outer"):
            function = f"{function}_outer"
        default = ("pos", "col") if function.startswith("pos") else ("col",)
        made = tuple(c.name for c in alias.columns) if alias and alias.columns else default
        for name in made:
            if name.casefold() in map(str.casefold, frame.columns):
                raise self.statement.wrong(
                    view, f"LATERAL VIEW makes a column {name!r}, which is there already"
                )
        if alias is not None and alias.name:
            scope.views.add(alias.name.casefold())
        arguments = [scope.settled(e) for e in call.expressions]
        generator = exp.Anonymous(this=function, expressions=arguments)
        return frame.selectExpr("*", written(named(generator, *made)))


def renamed(frame: Frame, alias: exp.TableAlias, statement: Statement) -> Frame:
    """The rows with their columns under the names of `AS t(a, b)`."""
    names = [c.name for c in alias.columns]
    if len(names) != len(frame.columns):
        raise statement.wrong(
            alias,
            f"{len(names)} names for {len(frame.columns)} columns: {', '.join(frame.columns)}",
        )
    pairs = zip(frame.columns, names, strict=True)
    return frame.selectExpr(*(written(named(column(old), new)) for old, new in pairs))


def _clauses(select: exp.Select) -> Iterator[exp.Expr]:
    """The parts of a SELECT that name columns."""
    yield from select.expressions
    yield from select.args.get("laterals") or []
    for part in ("where", "group", "having"):
        if (clause := select.args.get(part)) is not None:
            yield clause


def _spelled(name: str, columns: list[str]) -> str:
    """A name in USING as the column spells it: Spark does not mind the case, join does."""
    return next((c for c in columns if c.casefold() == name.casefold()), name)
