"""GROUP BY, HAVING and aggregates: a groupBy, then a filter and a select where they are needed.

An item of the list that is made of aggregates alone goes into the groupBy as it is written. What
mixes them with keys is computed afterwards, from aggregates under names that are nobody's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from sqlglot import exp

from headwater.flow.projecting import GENERATORS
from headwater.flow.sql import items as parts
from headwater.flow.sql.asking import name_in_group
from headwater.flow.sql.columns import Scope, column, named
from headwater.flow.sql.dialect import written
from headwater.flow.sql.items import Item, Made, aggregates_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.flow.frame import Frame
    from headwater.flow.sql.parsing import Statement


@dataclass(slots=True)
class Grouping:
    """The translation of one SELECT that has groups."""

    statement: Statement
    scope: Scope
    fresh: Iterator[str]
    frame: Frame
    keys: list[Made] = field(default_factory=list)
    aggregates: list[Made] = field(default_factory=list)
    known: dict[str, Made] = field(default_factory=dict)
    """What the groupBy makes, by the text of its expression."""

    def of(self, select: exp.Select) -> Frame:
        """One row for each group, with the columns of the SELECT list."""
        items = [self._item(e) for e in select.expressions]
        self._add_keys(select.args.get("group"), items)
        whole = [self._whole(item) for item in items]
        having = self._having(select.args.get("having"), items)
        mixed = [
            self._over_groups(item.expression) if made is None else None
            for item, made in zip(items, whole, strict=True)
        ]
        names = [made.name if made else None for made in whole]
        direct = whole == [*self.keys, *self.aggregates] and names == [i.name for i in items]
        direct = direct and bool(self.aggregates)
        if not direct:
            self._name_all()
        grouped = self._grouped()
        if having is not None:
            grouped = grouped.filter(F.expr(written(having)))
        if direct:
            return grouped
        made = [self._ref(w) if w else m for w, m in zip(whole, mixed, strict=True)]
        return grouped.selectExpr(*map(self._output, items, made))

    # --- what the groupBy makes ---------------------------------------------------------------

    def _item(self, node: exp.Expr) -> Item:
        settled = self.scope.settled(node)
        for part in settled.walk():
            if isinstance(part, exp.Star) and not parts.inside_aggregate(part):
                instead = "list the columns that are keys"
                raise self.statement.unsupported(node, "* beside groups", instead)
            if isinstance(part, exp.Anonymous) and part.name.casefold() in GENERATORS:
                instead = "explode in a query over this one"
                raise self.statement.unsupported(node, f"{part.name} beside groups", instead)
        if isinstance(settled, exp.Alias):
            return Item(settled.this.unnest(), settled.alias)
        return Item(settled.unnest(), None)

    def _add_keys(self, group: exp.Group | None, items: list[Item]) -> None:
        if group is None:
            return
        given = [self._meant(self.scope.settled(e), items) for e in group.expressions]
        if group.args.get("all"):
            given = [i.expression for i in items if not aggregates_in(i.expression)]
        for key in given:
            if aggregates_in(key):
                raise self.statement.wrong(key, f"GROUP BY holds an aggregate, {written(key)}")
            same = self.scope.same(key)
            if same not in self.known:
                alike = (
                    i.alias for i in items if i.alias and self.scope.same(i.expression) == same
                )
                self._add_key(key, next(alike, None) or parts.own_name(key))

    def _add_key(self, key: exp.Expr, name: str | None) -> None:
        made = self._add(self.keys, key, name)
        # A key's alias, and the column of a window, are names for it unless a column has them.
        for word in filter(None, (name, parts.own_name(key))):
            if not self.scope.has(word):
                self.known.setdefault(self.scope.same(column(word)), made)

    def _meant(self, key: exp.Expr, items: list[Item]) -> exp.Expr:
        """A key that is a number or an alias stands for an item of the list."""
        key = key.unnest()
        if isinstance(key, exp.Literal) and key.is_int:
            at = int(key.name)
            if not 1 <= at <= len(items):
                raise self.statement.wrong(key, f"GROUP BY {at}: the list has {len(items)} items")
            return items[at - 1].expression
        if parts.is_word(key) and not self.scope.has(key.name):
            return parts.aliased(key, items) or key
        return key

    def _whole(self, item: Item) -> Made | None:
        """The key or aggregate that an item is, unless it mixes several of them."""
        same = self.scope.same(item.expression)
        if same not in self.known:
            outside = [
                c for c in item.expression.find_all(exp.Column) if not parts.inside_aggregate(c)
            ]
            if outside or not aggregates_in(item.expression):
                return None
            self._add(self.aggregates, item.expression, item.alias)
        return self.known[same]

    def _add(self, to: list[Made], expression: exp.Expr, name: str | None) -> Made:
        taken = {m.name.casefold() for m in (*self.keys, *self.aggregates) if m.name}
        if name is not None and name.casefold() in taken:
            name = next(self.fresh)
        made = Made(expression, name)
        to.append(made)
        self.known[self.scope.same(expression)] = made
        return made

    def _name_all(self) -> None:
        if not self.aggregates:
            self._add(self.aggregates, exp.Anonymous(this="count", expressions=[exp.Star()]), None)
        for made in (*self.keys, *self.aggregates):
            self._ref(made)

    def _grouped(self) -> Frame:
        keys = (F.expr(made.text) for made in self.keys)
        return self.frame.groupBy(*keys).agg(*(F.expr(made.text) for made in self.aggregates))

    # --- what is computed from it -------------------------------------------------------------

    def _having(self, having: exp.Having | None, items: list[Item]) -> exp.Expr | None:
        if having is None:
            return None

        def meant(node: exp.Expr) -> exp.Expr:
            """A word that no key has may be an alias of the list."""
            if not parts.is_word(node) or parts.inside_aggregate(node):
                return node
            item = None if self.scope.same(node) in self.known else parts.aliased(node, items)
            return exp.Paren(this=item) if item else node

        return self._over_groups(self.scope.settled(having.this).transform(meant, copy=False))

    def _over_groups(self, expression: exp.Expr) -> exp.Expr:
        """The expression in terms of what the groupBy makes."""
        return expression.copy().transform(self._made_part, copy=False)

    def _made_part(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Identifier | exp.Literal):
            return node
        if (made := self.known.get(self.scope.same(node))) is not None:
            return self._ref(made)
        if parts.aggregates(node):
            return self._ref(self._add(self.aggregates, node.copy(), None))
        return self._field(node) if isinstance(node, exp.Column) else node

    def _field(self, node: exp.Column) -> exp.Expr:
        """A field of a key, such as window.start."""
        words = [part.copy() for part in node.parts]
        for end in range(len(words) - 1, 0, -1):
            made = self.known.get(self.scope.same(column(*words[:end])))
            if made is not None:
                return column(self._ref(made).this, *words[end:])
        raise self.statement.wrong(
            node, f"{written(node)} is neither in GROUP BY nor inside an aggregate"
        )

    def _ref(self, made: Made) -> exp.Column:
        if made.name is None:
            made.name = next(self.fresh)
        return column(made.name)

    def _output(self, item: Item, expression: exp.Expr | None) -> str:
        assert expression is not None
        name = item.name
        if name is None:
            keys = [written(made.expression) for made in self.keys]
            name = name_in_group(self.frame, keys, written(item.expression))
        if isinstance(expression, exp.Column) and expression.name == name:
            return written(expression)
        return written(named(expression, name))
