"""A query to steps: each clause becomes the Frame method that means the same."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from sqlglot import exp

from headwater.flow.sql.asking import require_readable
from headwater.flow.sql.columns import Scope, column
from headwater.flow.sql.dialect import written
from headwater.flow.sql.grouping import Grouping
from headwater.flow.sql.items import aggregates_in
from headwater.flow.sql.naming import Names
from headwater.flow.sql.parsing import Statement, parse
from headwater.flow.sql.refusing import refuse
from headwater.flow.sql.relations import Relations, renamed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame

    from headwater.flow.flow import Flow
    from headwater.flow.frame import Frame


def translate(flow: Flow, sql: str, frames: Mapping[str, Frame | DataFrame]) -> Frame:
    """The rows of a query, its steps added to the flow."""
    statement = parse(sql)
    refuse(statement)
    require_readable(sql)
    before = set(flow._steps)
    made = _Translation(statement, _fresh(statement)).query(statement.query, Names(flow, frames))
    # A step of the query's own, so that naming it renames nobody else's.
    return made.select("*") if made.step in before else made


@dataclass(frozen=True, slots=True)
class _Translation:
    statement: Statement
    fresh: Iterator[str]

    def query(self, node: exp.Expr, names: Names) -> Frame:
        """The rows of a SELECT, of a UNION ALL, or of one in parentheses."""
        if (with_ := node.args.get("with_")) is not None:
            for cte in with_.expressions:
                names = self._with(cte, names)
        match node:
            case exp.Subquery():
                return self.query(node.this, names)
            case exp.Union():
                return self.query(node.this, names).union(self.query(node.expression, names))
            case exp.Select():
                return self._select(node, names)
        raise self.statement.unsupported(node, type(node).__name__.upper(), "use SELECT")

    def _with(self, cte: exp.CTE, names: Names) -> Names:
        def make() -> Frame:
            frame = self.query(cte.this, names)
            alias = cte.args["alias"]
            return renamed(frame, alias, self.statement) if alias.columns else frame

        return names.with_one(cte.alias, make)

    def _select(self, select: exp.Select, names: Names) -> Frame:
        if select.args.get("from_") is None:
            raise self.statement.unsupported(
                select, "SELECT without FROM", "say whose rows", "SELECT"
            )
        frame, scope = Relations(self.statement, self.query, self.fresh).of(select, names)
        if (where := select.args.get("where")) is not None:
            frame = frame.filter(F.expr(written(scope.settled(where.this))))
        group, having = select.args.get("group"), select.args.get("having")
        if group is not None or having is not None or any(map(aggregates_in, select.expressions)):
            frame = Grouping(self.statement, scope, self.fresh, frame).of(select)
        elif not _is_bare_star(select):
            frame = frame.selectExpr(*self._items(select, frame, scope))
        return frame.dropDuplicates() if select.args.get("distinct") else frame

    def _items(self, select: exp.Select, frame: Frame, scope: Scope) -> Iterator[str]:
        for item in select.expressions:
            settled = scope.settled(item)
            star = settled.this if isinstance(settled, exp.Column) else settled
            if isinstance(star, exp.Star) and star.args.get("except_"):
                table = settled.table if isinstance(settled, exp.Column) else ""
                yield from self._others(star, table, frame)
            else:
                yield written(settled)

    def _others(self, star: exp.Star, table: str, frame: Frame) -> Iterator[str]:
        """`* EXCEPT (a, b)`: all columns, or all of one table, but some."""
        own = [a for a in frame._attributes if not table or a.qualifier == (table,)]
        left_out = {c.name.casefold(): c for c in star.args["except_"]}
        for name, at in left_out.items():
            if name not in (a.name.casefold() for a in own):
                raise self.statement.wrong(at, f"EXCEPT names {at.name!r}, which is not there")
        every = [a.name.casefold() for a in frame._attributes]
        for a in own:
            if a.name.casefold() not in left_out:
                single = every.count(a.name.casefold()) == 1
                yield written(column(a.name) if single else column(*a.qualifier, a.name))


def _is_bare_star(select: exp.Select) -> bool:
    match select.expressions:
        case [exp.Star() as star]:
            return not star.args.get("except_")
    return False


def _fresh(statement: Statement) -> Iterator[str]:
    """Names that the query's text does not have, for columns between its steps."""
    text = statement.text.sql.casefold()
    return (name for n in count(1) if (name := f"_sql_{n}") not in text)
