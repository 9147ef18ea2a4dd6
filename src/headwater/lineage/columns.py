"""Which columns of sources each column of a sink comes from, and by which its rows were chosen.

Found from the steps of a flow, not from its rows. The words are OpenLineage's: a column comes
*directly* from others (as they are, transformed, aggregated); *indirectly* from those that decide
which value it has, or, for all columns of a row, whether there is such a row at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.flow import expressions as ex
from headwater.flow import nodes
from headwater.flow.references import Attribute, aliased
from headwater.flow.terms import As, Call, Literal, Ref, Star, Term
from headwater.lowering.shapes import joined_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headwater.flow.expressions import Expr
    from headwater.flow.flow import Flow

DIRECT = ("IDENTITY", "TRANSFORMATION", "AGGREGATION")
"""From the weakest: what is aggregated and then transformed is aggregated."""
INDIRECT = ("FILTER", "GROUP_BY", "JOIN", "SORT", "WINDOW", "CONDITIONAL")

Column = tuple[str, str]
"""A source and a column of it."""
Origins = dict[Column, frozenset[str]]
"""Columns of sources, and in which ways something comes from each."""


@dataclass(frozen=True, slots=True)
class ColumnLineage:
    """The origins of a sink's columns, and of its rows as such."""

    columns: dict[str, Origins]
    rows: Origins


def column_lineage(flow: Flow, sink: nodes.Sink) -> ColumnLineage:
    """Where the columns of a sink come from."""
    walk = _Walk(flow)
    found = walk.columns(sink)
    names = [attribute.name for attribute in flow._attributes(sink)]
    return ColumnLineage(dict(zip(names, found, strict=True)), walk.rows)


class _Scope:
    """The columns that an expression can name."""

    def __init__(self, attributes: Sequence[Attribute], origins: Sequence[Origins]) -> None:
        self.known = list(zip(attributes, origins, strict=True))
        self.made: dict[str, Origins] = {}
        """Columns of the same list that stand before, which an expression may name as well."""

    def find(self, parts: tuple[str, ...]) -> Origins:
        folded = tuple(part.casefold() for part in parts)
        for depth in range(len(folded) - 1, -1, -1):
            qualifier, name, inner = folded[:depth], folded[depth], folded[depth + 1 :]
            found = [origins for one, origins in self.known if _is(one, qualifier, name)]
            if found:
                # A field of a struct is less than the column.
                return _as("TRANSFORMATION", _united(found)) if inner else _united(found)
        return self.made.get(folded[0], {})

    def all(self) -> Origins:
        return _united(origins for _, origins in self.known)

    def of(self, term: Term) -> Origins:
        """What an expression comes from."""
        match term:
            case Ref(parts=parts):
                return self.find(parts)
            case As(child=child):
                return self.of(child)
            case Star(target=target):
                matching = [o for a, o in self.known if not target or a.qualifier == target]
                return _as("TRANSFORMATION", _united(matching))
            case Call(name="count", args=(Star() | Literal(),)):
                return {}
            case Call(name="case", args=args):
                last = len(args) - 1
                return self._choosing([i % 2 == 0 and i != last for i in range(len(args))], args)
            case Call(name="if", args=args):
                return self._choosing([i == 0 for i in range(len(args))], args)
        return _as("TRANSFORMATION", _united(self.of(child) for child in term.children()))

    def _choosing(self, decides: list[bool], args: Sequence[Term]) -> Origins:
        ways = ["CONDITIONAL" if one else "TRANSFORMATION" for one in decides]
        return _united(_as(way, self.of(arg)) for way, arg in zip(ways, args, strict=True))


class _Walk:
    """From a sink up to its sources, each step once."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._seen: dict[str, list[Origins]] = {}
        self.rows: Origins = {}

    def columns(self, node: nodes.Node) -> list[Origins]:
        """The origins of a step's columns, in their order."""
        if node.step not in self._seen:
            found = self._columns(node)
            attributes = self._flow._attributes(node)
            if len(found) != len(attributes):  # a shape that is not foreseen: from all, to be safe
                every = _as("TRANSFORMATION", self._scope(node).all())
                found = [every for _ in attributes]
            self._seen[node.step] = found
        return self._seen[node.step]

    def _columns(self, node: nodes.Node) -> list[Origins]:
        match node:
            case nodes.Source():
                names = node.schema.fieldNames()
                return [{(node.name, name): frozenset({"IDENTITY"})} for name in names]
            case nodes.Static():
                return [{} for _ in node.df.columns]
            case nodes.Project() | nodes.Explode():
                return self._listed(node)
            case nodes.WithColumns() | nodes.Rename():
                return self._changed(node)
            case nodes.FlatMap() | nodes.Map() | nodes.Service():
                return self._computed(node)
            case nodes.Union() | nodes.Merge():
                return self._united(node)
            case nodes.GroupFunction():
                return self._grouped_by_function(node)
            case nodes.Aggregate() | nodes.CountWindow() | nodes.ValueWindow() | nodes.Match():
                return self._grouped(node)
            case nodes.Join() | nodes.OrderedJoin():
                return self._joined(node)
        return self._passed(node)

    # --- one row to one, or to many -----------------------------------------------------------

    def _passed(self, node: nodes.Node) -> list[Origins]:
        """Rows as they are, or some of them, or some of their columns."""
        scope = self._scope(node)
        match node:
            case nodes.Filter(condition=condition):
                self._decide("FILTER", scope, [condition])
            case nodes.Deduplicate(columns=columns):
                for name in columns or [a.name for a, _ in scope.known]:
                    self._add("GROUP_BY", scope.find((name,)))
            case nodes.BSort(on=on, by=by, order_by=order_by):
                self._decide("SORT", scope, [*on, *order_by])
                self._decide("GROUP_BY", scope, by)
        by_id: dict[int, list[Origins]] = {}
        for attribute, origins in scope.known:
            by_id.setdefault(attribute.spark_id, []).append(origins)
        kept = self._flow._attributes(node)
        if len(kept) == len(scope.known):
            return [origins for _, origins in scope.known]
        return [_united(by_id.get(a.spark_id) or [scope.find((a.name,))]) for a in kept]

    def _listed(self, node: nodes.Project | nodes.Explode) -> list[Origins]:
        scope, found = self._scope(node), list[Origins]()
        for place, expr in enumerate(node.columns):
            origins = scope.of(expr.term)
            if isinstance(node, nodes.Explode) and place == node.at:
                found.extend(origins for _ in node.names)
            else:
                found.append(origins)
            if expr.name is not None:
                scope.made.setdefault(expr.name.casefold(), origins)
        return found

    def _changed(self, node: nodes.WithColumns | nodes.Rename) -> list[Origins]:
        scope = self._scope(node)
        if isinstance(node, nodes.Rename):
            return [origins for _, origins in scope.known]
        made = {name.casefold(): scope.of(expr.term) for name, expr in node.columns}
        kept = [made.pop(a.name.casefold(), o) for a, o in scope.known]
        return [*kept, *made.values()]

    def _computed(self, node: nodes.FlatMap | nodes.Map | nodes.Service) -> list[Origins]:
        """What a function, which nothing is known of, makes of the columns that it gets."""
        scope = self._scope(node)
        if isinstance(node, nodes.Service):
            asked = _united(scope.of(expr.term) for _, expr in node.request)
            return [*(o for _, o in scope.known), _as("TRANSFORMATION", asked)]
        given = [a.name for a, _ in scope.known]
        if isinstance(node, nodes.Map):
            given = node.given.fieldNames()
        made = _as("TRANSFORMATION", _united(scope.find((name,)) for name in given))
        kept = [scope.find((name,)) for name in node.keep]
        return [*kept, *(made for _ in node.schema.fieldNames())]

    # --- several rows to one ------------------------------------------------------------------

    def _grouped(
        self, node: nodes.Aggregate | nodes.CountWindow | nodes.ValueWindow | nodes.Match
    ) -> list[Origins]:
        scope = self._scope(node)
        keys = node.keys if isinstance(node, nodes.Aggregate) else node.by
        self._decide("GROUP_BY", scope, keys)
        if isinstance(node, nodes.Ordered):
            self._decide("SORT", scope, node.order_by)
        if isinstance(node, nodes.ValueWindow):
            self._decide("WINDOW", scope, [node.on])
        return [*(scope.of(key.term) for key in keys), *self._aggregated(node, scope)]

    def _aggregated(
        self,
        node: nodes.Aggregate | nodes.CountWindow | nodes.ValueWindow | nodes.Match,
        scope: _Scope,
    ) -> list[Origins]:
        if not isinstance(node, nodes.Match):
            terms = [
                one.column.term if isinstance(one, nodes.Aggregated) else one.term
                for one in node.columns
            ]
            return [_as("AGGREGATION", scope.of(term)) for term in terms]
        native = {
            name: scope.of(ex.sql(text, what="match").term)
            for name, text in node.pattern.native.items()
        }
        measured = {m.column for m in node.pattern.columns}
        self._add("FILTER", _united(o for name, o in native.items() if name not in measured))
        return [_as("AGGREGATION", native.get(m.column or "", {})) for m in node.pattern.columns]

    def _grouped_by_function(self, node: nodes.GroupFunction) -> list[Origins]:
        scope = self._scope(node)
        self._decide("GROUP_BY", scope, node.keys)
        keys = {key.name or "": scope.of(key.term) for key in node.keys}
        if node.window is not None:
            keys.setdefault(node.window.column, scope.of(node.window.time))
        given = _united(scope.find((name,)) for name in node.given.fieldNames())
        made = _as("AGGREGATION", given)
        return [*(keys.get(name, {}) for name in node.keep), *(made for _ in node.made)]

    # --- several inputs -----------------------------------------------------------------------

    def _united(self, node: nodes.Union | nodes.Merge) -> list[Origins]:
        branches = [(self._flow._attributes(n), self.columns(n)) for n in node.inputs]
        if isinstance(node, nodes.Union) and not node.by_name:
            return [_united(each) for each in zip(*(found for _, found in branches), strict=True)]
        scopes = [_Scope(attributes, found) for attributes, found in branches]
        names = [a.name for a in self._flow._attributes(node)]
        return [_united(scope.find((name,)) for scope in scopes) for name in names]

    def _joined(self, node: nodes.Join | nodes.OrderedJoin) -> list[Origins]:
        left, right = ((self._flow._attributes(n), self.columns(n)) for n in node.inputs)
        sides = [_Scope(*left), _Scope(*right)]
        if isinstance(node, nodes.OrderedJoin):
            for name in node.on:
                self._add("JOIN", _united(side.find((name,)) for side in sides))
            if isinstance(node, nodes.JoinValue):
                self._decide("JOIN", sides[0], [node.left_on])
                self._decide("JOIN", sides[1], [node.right_on])
            self._decide("SORT", sides[0], node.order_by)
            self._decide("SORT", sides[1], node.right_order_by)
            names = [[a.name for a, _ in side.known] for side in sides]
            pairs = joined_columns(node, names[0], names[1])
            return [sides[side].find((name,)) for side, name in pairs]
        if isinstance(node.on, ex.Expr):
            named = [
                *aliased(left[0], node.left_alias),
                *aliased(right[0], node.right_alias),
            ]
            both = _Scope(named, [*left[1], *right[1]])
            self._decide("JOIN", both, [node.on])
            return [*left[1], *right[1]]
        keys = [key.casefold() for key in node.on]
        merged = [_united(side.find((key,)) for side in sides) for key in keys]
        for origins in merged:
            self._add("JOIN", origins)
        if node.how != "inner":
            merged = [sides[0].find((key,)) for key in keys]
        rest = [o for side in sides for a, o in side.known if a.name.casefold() not in keys]
        return [*merged, *rest]

    # --- inner --------------------------------------------------------------------------------

    def _scope(self, node: nodes.Node) -> _Scope:
        attributes = [a for n in node.inputs for a in self._flow._attributes(n)]
        return _Scope(attributes, [o for n in node.inputs for o in self.columns(n)])

    def _decide(self, way: str, scope: _Scope, exprs: Iterable[Expr]) -> None:
        for expr in exprs:
            self._add(way, scope.of(expr.term))

    def _add(self, way: str, origins: Origins) -> None:
        self.rows = _united([self.rows, {column: frozenset({way}) for column in origins}])


def _is(attribute: Attribute, qualifier: tuple[str, ...], name: str) -> bool:
    if attribute.name.casefold() != name:
        return False
    own = tuple(part.casefold() for part in attribute.qualifier)
    return not qualifier or own[-len(qualifier) :] == qualifier


def _united(many: Iterable[Origins]) -> Origins:
    found: Origins = {}
    for origins in many:
        for column, ways in origins.items():
            found[column] = found.get(column, frozenset()) | ways
    return found


def _as(way: str, origins: Origins) -> Origins:
    """What comes in a way from what has these origins."""
    return {column: frozenset(_after(one, way) for one in ways) for column, ways in origins.items()}


def _after(first: str, then: str) -> str:
    if first in INDIRECT or then in INDIRECT:
        return first if first in INDIRECT else then
    return max(first, then, key=DIRECT.index)
