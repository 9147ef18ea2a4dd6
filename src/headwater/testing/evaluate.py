"""Evaluating terms over rows with Spark's values: three-valued logic, null in and null out."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from headwater.flow.terms import As, Call, Cast, Literal, Ref, Term
from headwater.testing.rows import MICROSECOND, InterpreterError, Row, Schema, Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

EPOCH = datetime.fromtimestamp(0, UTC)

_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}


def interval(text: str) -> timedelta:
    """The length that a text such as `1 minute 30 seconds` means.

    >>> interval("interval 1 minute 30 seconds")
    datetime.timedelta(seconds=90)
    """
    rest = text.strip().lower().removeprefix("interval").strip()
    total = 0
    for number, unit in re.findall(r"(-?\d+)\s*([a-z]+)", rest):
        size = _UNITS.get(unit.removesuffix("s"))
        if size is None:
            raise InterpreterError(f"unknown unit in interval {text!r}")
        total += int(number) * size
    if re.sub(r"(-?\d+)\s*([a-z]+)", "", rest).strip():
        raise InterpreterError(f"can't read the interval {text!r}")
    return timedelta(microseconds=total)


def evaluate(term: Term, schema: Schema, row: Row) -> Any:
    """The value of a term over one row."""
    match term:
        case Ref(parts=parts):
            at, fields = schema.find(parts)
            return _fields(row.values[at], fields)
        case Literal():
            return literal(term)
        case As(child=child):
            return evaluate(child, schema, row)
        case Cast(child=child, type=type_):
            return cast(evaluate(child, schema, row), type_)
        case Call(name=name, args=args):
            return call(name, args, lambda arg: evaluate(arg, schema, row))
    raise InterpreterError(f"the reference interpreter can't evaluate {term.text()}")


def _fields(value: Any, names: tuple[str, ...]) -> Any:
    for name in names:
        if value is None:
            return None
        if not isinstance(value, Struct):
            raise InterpreterError(f"no field {name} in {value!r}")
        value = value.get(name)
    return value


def literal(term: Literal) -> Any:
    """A constant as a Python value: times as datetime, intervals as timedelta."""
    value = term.value
    if value is None:
        return None
    if term.type.startswith("interval"):
        return timedelta(microseconds=int(value))
    if term.type == "timestamp":
        return EPOCH + timedelta(microseconds=int(value))
    return float(value) if isinstance(value, Decimal) else value


def call(name: str, args: Sequence[Term], value: Callable[[Term], Any]) -> Any:
    """A function or operator applied; `value` gives an argument's value."""
    match name:
        case "and":
            return _all([value(arg) for arg in args])
        case "or":
            return _negated(_all([_negated(value(arg)) for arg in args]))
        case "coalesce":
            return next((v for v in map(value, args) if v is not None), None)
        case "isnull":
            return value(args[0]) is None
        case "isnotnull":
            return value(args[0]) is not None
        case "<=>":
            return value(args[0]) == value(args[1])
        case "in":
            return _in(value(args[0]), [value(arg) for arg in args[1:]])
        case "case" | "when":
            for when, then in zip(args[::2], args[1::2], strict=False):
                if value(when):
                    return value(then)
            return value(args[-1]) if len(args) % 2 else None
        case "if":
            return value(args[1]) if value(args[0]) else value(args[2])
        case "concat_ws":
            parts = [v for v in map(value, args[1:]) if v is not None]
            return str(value(args[0])).join(map(text, parts))
        case "array":
            return tuple(map(value, args))
        case "struct":
            return _struct(args, value)
        case "greatest" | "least":
            known = [v for v in map(value, args) if v is not None]
            return (max if name == "greatest" else min)(known) if known else None
        case "size":
            array = value(args[0])
            return None if array is None else len(array)
        case "get":
            return _get(value(args[0]), args[1], value)
    function = _STRICT.get(name)
    if function is None:
        raise InterpreterError(f"the reference interpreter does not know the function {name}")
    values = [value(arg) for arg in args]
    return None if any(v is None for v in values) else function(*values)


def _all(values: Sequence[Any]) -> bool | None:
    if any(v is False for v in values):
        return False
    return None if any(v is None for v in values) else True


def _negated(value: bool | None) -> bool | None:
    return None if value is None else not value


def _in(value: Any, options: Sequence[Any]) -> bool | None:
    if value is None:
        return None
    if any(option is not None and option == value for option in options):
        return True
    return None if None in options else False


def _struct(args: Sequence[Term], value: Callable[[Term], Any]) -> Struct:
    fields = []
    for i, arg in enumerate(args):
        match arg:
            case As(names=(name,)):
                fields.append((name, value(arg)))
            case Ref(parts=parts):
                fields.append((parts[-1], value(arg)))
            case _:
                fields.append((f"col{i + 1}", value(arg)))
    return Struct(tuple(fields))


def _get(container: Any, key: Term, value: Callable[[Term], Any]) -> Any:
    if container is None:
        return None
    if isinstance(container, Struct):
        return container.get(str(value(key)))
    at = value(key)
    return container[at] if at is not None and 0 <= at < len(container) else None


def _divide(a: Any, b: Any) -> float:
    if b == 0:
        raise InterpreterError("division by zero: Spark stops the query there")
    return float(a) / float(b)


def _remainder(a: Any, b: Any) -> Any:
    """The remainder with the dividend's sign, as in Java."""
    if b == 0:
        raise InterpreterError("remainder by zero: Spark stops the query there")
    result = math.fmod(a, b)
    return int(result) if isinstance(a, int) and isinstance(b, int) else result


def _between(value: Any, low: Any, high: Any) -> bool:
    return bool(low <= value <= high)


def _substring(value: str, start: int, length: int | None = None) -> str:
    begin = start - 1 if start > 0 else max(len(value) + start, 0) if start < 0 else 0
    return value[begin:] if length is None else value[begin : begin + max(length, 0)]


def _like(value: str, pattern: str) -> bool:
    parts = re.split(r"([%_])", pattern)
    regex = "".join({"%": ".*", "_": "."}.get(p, re.escape(p)) for p in parts)
    return re.fullmatch(regex, value, re.DOTALL) is not None


def _sort_array(array: Sequence[Any], up: bool = True) -> tuple[Any, ...]:
    """The elements in order, nulls least."""
    return tuple(sorted(array, key=lambda v: (v is not None, v), reverse=not up))


_STRICT: dict[str, Callable[..., Any]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide,
    "%": _remainder,
    "not": lambda a: not a,
    "negative": lambda a: -a,
    "abs": abs,
    "sqrt": math.sqrt,
    "between": _between,
    "like": _like,
    "upper": lambda s: s.upper(),
    "lower": lambda s: s.lower(),
    "length": len,
    "concat": lambda *parts: "".join(map(text, parts)),
    "substring": _substring,
    "array_contains": lambda array, element: element in array,
    "sort_array": _sort_array,
    "window_time": lambda window: window.get("end") - MICROSECOND,
    "pmod": lambda a, b: a % b,
    "unix_micros": lambda t: (t - EPOCH) // MICROSECOND,
}
"""Functions that are null when any argument is."""


def text(value: Any) -> str:
    """A value as Spark writes it in a string."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        seconds = value.strftime("%Y-%m-%d %H:%M:%S")
        fraction = f"{value.microsecond:06d}".rstrip("0")
        return f"{seconds}.{fraction}" if fraction else seconds
    return str(value)


def cast(value: Any, type_: str) -> Any:
    """A value converted to a Spark type."""
    if value is None:
        return None
    match type_:
        case "int" | "bigint" | "smallint" | "tinyint":
            if isinstance(value, datetime):
                return (value - EPOCH) // timedelta(seconds=1)
            return int(value)
        case "double" | "float":
            if isinstance(value, datetime):
                return (value - EPOCH) / timedelta(seconds=1)
            return float(value)
        case "string":
            return text(value)
        case "boolean" if isinstance(value, bool | int | float):
            return bool(value)
        case "timestamp" if isinstance(value, datetime):
            return value
        case "timestamp" if isinstance(value, int | float):
            return EPOCH + timedelta(seconds=value)
    if type_.startswith("interval") and isinstance(value, str | timedelta):
        return interval(value) if isinstance(value, str) else value
    raise InterpreterError(f"the reference interpreter can't cast {value!r} to {type_}")
