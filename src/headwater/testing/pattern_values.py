"""Conditions and measures of patterns over rows as dicts, straight from the SQL tree."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import sqlglot
from sqlglot import exp

from headwater.testing.rows import InterpreterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Bound: TypeAlias = "tuple[tuple[str, int], ...]"
"""The rows of a match so far by number, each with its variable."""


@lru_cache(maxsize=10_000)
def _tree(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, dialect="spark")


def holds(text: str, rows: Sequence[Mapping[str, Any]], bound: Bound) -> bool:
    """Whether a condition is true for the last of the rows that are bound."""
    return _Scope(rows, bound, bound[-1][1], bound[-1][0]).value(_tree(text)) is True


def evaluate(text: str, row: Mapping[str, Any]) -> Any:
    """The value of an expression of one row."""
    return _Scope([row], (), 0, None).value(_tree(text))


def measure(text: str, rows: Sequence[Mapping[str, Any]], bound: Bound, number: int = 0) -> Any:
    """The value of a measure for a match, the key's `number`th, counted from 0."""
    tree = _tree(text)
    if isinstance(tree, exp.Anonymous):
        match tree.name.lower():
            case "match_number":
                return number + 1
            case "classifier":
                return bound[-1][0]
            case "classifiers":
                return [name for name, _ in bound]
    return _Scope(rows, bound, bound[-1][1], None).value(tree)


class _Scope:
    """A place in a sequence from which an expression is looked at."""

    def __init__(
        self, rows: Sequence[Mapping[str, Any]], bound: Bound, at: int, own: str | None
    ) -> None:
        self.rows = rows
        self.bound = bound
        self.at = at
        self.own = own
        self.names = {name for name, _ in bound} | ({own} if own else set())

    def value(self, node: exp.Expr) -> Any:
        match node:
            case exp.Column():
                return self._column(node)
            case exp.Literal():
                return node.this if node.is_string else _number(node.this)
            case exp.Boolean():
                return bool(node.this)
            case exp.Null():
                return None
            case exp.Paren() | exp.Cast():  # 3L is a cast to sqlglot
                return self.value(node.this)
            case exp.And():
                return _every([self.value(node.left), self.value(node.right)])
            case exp.Or():
                return _not(_every([_not(self.value(node.left)), _not(self.value(node.right))]))
            case exp.Not():
                return _not(self.value(node.this))
            case exp.Is():
                return self.value(node.this) is self.value(node.expression)
            case exp.NullSafeEQ():
                return self.value(node.left) == self.value(node.right)
            case exp.Between():
                value, low = self.value(node.this), self.value(node.args["low"])
                high = self.value(node.args["high"])
                return _every([_strict(_at_most, low, value), _strict(_at_most, value, high)])
            case exp.In():
                value = self.value(node.this)
                options = [_strict(_is, value, self.value(each)) for each in node.expressions]
                return _not(_every([_not(each) for each in options]))
            case exp.Coalesce():
                parts = [self.value(each) for each in (node.this, *node.expressions)]
                return next((each for each in parts if each is not None), None)
            case exp.Case():
                for each in node.args["ifs"]:
                    if self.value(each.this) is True:
                        return self.value(each.args["true"])
                default = node.args.get("default")
                return None if default is None else self.value(default)
            case exp.Neg() | exp.Abs():
                value = self.value(node.this)
                negative = isinstance(node, exp.Neg) or (value is not None and value < 0)
                return -value if value is not None and negative else value
            case exp.If():
                chosen = "true" if self.value(node.this) is True else "false"
                return self.value(node.args[chosen])
            case exp.Anonymous() if node.name.lower() == "prev":
                return self._previous(node)
        if type(node) in _AGGREGATES:
            return self._aggregate(node)
        if isinstance(node, exp.Binary) and type(node) in _TWO:
            return _strict(_TWO[type(node)], self.value(node.left), self.value(node.right))
        raise InterpreterError(f"the reference matcher does not know {node.sql('spark')}")

    def _column(self, node: exp.Column) -> Any:
        table = node.table
        if not table or table == self.own:
            return self.rows[self.at][node.name]
        mine = [row for name, row in self.bound if name == table]
        return self.rows[mine[-1]][node.name] if mine else None

    def _previous(self, node: exp.Anonymous) -> Any:
        back = int(node.expressions[1].name) if len(node.expressions) > 1 else 1
        at = self.at - back
        return _Scope(self.rows, (), at, self.own).value(node.expressions[0]) if at >= 0 else None

    def _aggregate(self, node: exp.Expr) -> Any:
        tables = {column.table for column in node.find_all(exp.Column)} - {""}
        mine = [(name, row) for name, row in self.bound if not tables or name in tables]
        if isinstance(node, exp.Count) and node.find(exp.Star):
            return len(mine)
        values = [_Scope(self.rows, (), row, name).value(node.this) for name, row in mine]
        if isinstance(node, exp.First | exp.Last):
            return values[0 if isinstance(node, exp.First) else -1] if values else None
        known = [value for value in values if value is not None]
        if isinstance(node, exp.Count | exp.ArrayAgg):
            return len(known) if isinstance(node, exp.Count) else known
        return _AGGREGATES[type(node)](known) if known else None


def _number(text: str) -> float:
    return int(text) if text.isdigit() else float(text)


def _every(values: Sequence[Any]) -> bool | None:
    return False if False in values else None if None in values else True


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _strict(function: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    return None if a is None or b is None else function(a, b)


def _is(a: Any, b: Any) -> bool:
    return bool(a == b)


def _at_most(a: Any, b: Any) -> bool:
    return bool(a <= b)


_AGGREGATES: dict[type[exp.Expr], Callable[[list[Any]], Any]] = {
    exp.First: lambda values: values[0],
    exp.Last: lambda values: values[-1],
    exp.Count: len,
    exp.ArrayAgg: list,
    exp.Sum: sum,
    exp.Min: min,
    exp.Max: max,
    exp.Avg: lambda values: sum(values) / len(values),
}

_TWO: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.EQ: _is,
    exp.NEQ: lambda a, b: a != b,
    exp.LT: lambda a, b: a < b,
    exp.LTE: _at_most,
    exp.GT: lambda a, b: a > b,
    exp.GTE: lambda a, b: a >= b,
    exp.Add: lambda a, b: a + b,
    exp.Sub: lambda a, b: a - b,
    exp.Mul: lambda a, b: a * b,
    exp.Div: lambda a, b: None if b == 0 else a / b,
    exp.Mod: lambda a, b: None if b == 0 else a - b * math.trunc(a / b),
}
