"""SQL's operators as closures: which of them conditions over matched rows may use."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from headwater.ordered.patterns import values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headwater.ordered.patterns.conditions import Closure, Rows, Seen

    Strict = Callable[[Any, Any], Any]

_INFIX: dict[type[exp.Expr], Strict] = {
    exp.EQ: values.COMPARISONS["="],
    exp.NEQ: values.COMPARISONS["<>"],
    exp.LT: values.COMPARISONS["<"],
    exp.LTE: values.COMPARISONS["<="],
    exp.GT: values.COMPARISONS[">"],
    exp.GTE: values.COMPARISONS[">="],
    exp.Add: values.add,
    exp.Sub: values.subtract,
    exp.Mul: values.multiply,
    exp.Div: values.divide,
    exp.Mod: values.remainder,
}
"""Operators of two values that are null where either is."""

_UNITS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is written down."""

    value: Any


def constant(node: exp.Expr) -> Constant | None:
    """The value of a literal: a number, text, a truth value, null, or an interval."""
    match node:
        case exp.Null():
            return Constant(None)
        case exp.Boolean():
            return Constant(bool(node.this))
        case exp.Literal(is_string=True):
            # What a backslash means is Spark's to say.
            return None if "\\" in node.name else Constant(node.name)
        case exp.Literal():
            return Constant(_number(str(node.this)))
        case exp.Paren():
            return constant(node.this)
        case exp.Neg():
            inner = constant(node.this)
            usable = inner is not None and inner.value is not None
            return Constant(values.negative(inner.value)) if inner and usable else None
        case exp.Interval():
            return _interval(node)
        case exp.Add() if parts := [constant(part) for part in node.flatten()]:
            # INTERVAL 1 MINUTE 30 SECONDS is a sum to sqlglot.
            spans = [p.value for p in parts if p is not None and isinstance(p.value, timedelta)]
            return Constant(sum(spans, timedelta())) if len(spans) == len(parts) else None
    return None


def _number(text: str) -> int | float | Decimal:
    """A number as Spark reads it: 1.5 is a decimal, 1e3 and 1.5D are doubles."""
    text = text.upper()
    if text.endswith("BD"):
        return Decimal(text[:-2])
    if text[-1] in "DF" or "E" in text:
        return float(text.rstrip("DF"))
    return Decimal(text) if "." in text else int(text.rstrip("LSY"))


def _interval(node: exp.Interval) -> Constant | None:
    unit = _UNITS.get(str(node.args.get("unit")).upper().removesuffix("S"))
    try:
        number = Decimal(node.this.name) if node.this is not None else None
    except InvalidOperation:
        number = None
    if unit is None or number is None:
        return None
    return Constant(timedelta(microseconds=int(number * unit)))


def closure(node: exp.Expr, of: Callable[[exp.Expr], Closure]) -> Closure | None:
    """A closure for an operator, `of` giving those of its operands; None if there is no such."""
    if isinstance(node, exp.Binary) and (strict := _INFIX.get(type(node))) is not None:
        return _infix(strict, of(node.left), of(node.right))
    match node:
        case exp.Neg():
            return _prefix(values.negative, of(node.this))
        case exp.Anonymous():
            return _called(node.name.lower(), [of(part) for part in node.expressions])
        case exp.Paren():
            return of(node.this)
        case exp.And():
            return conjunction([of(part) for part in node.flatten()])
        case exp.Or():
            return _negated(conjunction([_negated(of(part)) for part in node.flatten()]))
        case exp.Not():
            return _negated(of(node.this))
        case exp.NullSafeEQ():
            return _same(of(node.left), of(node.right))
        case exp.NullSafeNEQ():
            return _negated(_same(of(node.left), of(node.right)))
        case exp.Is() if isinstance(node.expression, exp.Null | exp.Boolean):
            return _same(of(node.this), of(node.expression))
        case exp.Between():
            value = of(node.this)
            low = _infix(values.COMPARISONS[">="], value, of(node.args["low"]))
            high = _infix(values.COMPARISONS["<="], value, of(node.args["high"]))
            return conjunction([low, high])
        case exp.In() if node.expressions and not node.args.get("query"):
            value = of(node.this)
            options = [_infix(values.equal, value, of(option)) for option in node.expressions]
            return _negated(conjunction([_negated(option) for option in options]))
        case exp.Case():
            return _case(node, of)
    return None


def always(value: Any) -> Closure:
    """The same value for every row."""
    return lambda rows, at, seen: value


def conjunction(parts: Sequence[Closure]) -> Closure:
    """AND: false if any part is, else unknown if any is."""

    def every(rows: Rows, at: int, seen: Seen) -> bool | None:
        known = True
        for part in parts:
            value = values.truth(part(rows, at, seen))
            if value is False:
                return False
            known = known and value is not None
        return True if known else None

    return every


def _negated(part: Closure) -> Closure:
    return lambda rows, at, seen: values.negation(part(rows, at, seen))


def _infix(function: Strict, left: Closure, right: Closure) -> Closure:
    def infix(rows: Rows, at: int, seen: Seen) -> Any:
        a = left(rows, at, seen)
        if a is None:
            return None
        b = right(rows, at, seen)
        return None if b is None else function(a, b)

    return infix


def _prefix(function: Callable[[Any], Any], part: Closure) -> Closure:
    def prefix(rows: Rows, at: int, seen: Seen) -> Any:
        value = part(rows, at, seen)
        return None if value is None else function(value)

    return prefix


def _same(left: Closure, right: Closure) -> Closure:
    def same(rows: Rows, at: int, seen: Seen) -> bool:
        a, b = left(rows, at, seen), right(rows, at, seen)
        return a is b if a is None or b is None else values.equal(a, b)

    return same


def _coalesce(parts: Sequence[Closure]) -> Closure:
    def coalesce(rows: Rows, at: int, seen: Seen) -> Any:
        known = (part(rows, at, seen) for part in parts)
        return next((value for value in known if value is not None), None)

    return coalesce


def _called(name: str, parts: list[Closure]) -> Closure | None:
    match name, parts:
        case "abs", [part]:
            return _prefix(values.absolute, part)
        case "coalesce", [_, *_]:
            return _coalesce(parts)
        case "if", [when, then, otherwise]:
            return _first_true([when], [then], otherwise)
    return None


def _case(node: exp.Case, of: Callable[[exp.Expr], Closure]) -> Closure:
    default = node.args.get("default")
    whens = [of(each.this) for each in node.args["ifs"]]
    if node.this is not None:
        value = of(node.this)
        whens = [_infix(values.equal, value, when) for when in whens]
    thens = [of(each.args["true"]) for each in node.args["ifs"]]
    return _first_true(whens, thens, always(None) if default is None else of(default))


def _first_true(whens: list[Closure], thens: list[Closure], otherwise: Closure) -> Closure:
    def chosen(rows: Rows, at: int, seen: Seen) -> Any:
        for when, then in zip(whens, thens, strict=True):
            if values.truth(when(rows, at, seen)):
                return then(rows, at, seen)
        return otherwise(rows, at, seen)

    return chosen
