"""SQL's values in Python: null in and null out, three-valued logic, Spark's order of numbers.

Values are what Arrow gives for a column: numbers, `Decimal`, text, times, `timedelta`, or None.
"""

from __future__ import annotations

import math
from datetime import timedelta
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

EXACT = Context(prec=76)
"""Decimals of Spark's have up to 38 digits; Python's own rounding starts at 28."""


def both(a: Any, b: Any) -> tuple[Any, Any]:
    """Two values of a kind that can be compared and computed with."""
    if type(a) is type(b):
        return a, b
    if isinstance(a, Decimal) and isinstance(b, float):
        return float(a), b
    if isinstance(a, float) and isinstance(b, Decimal):
        return a, float(b)
    if _is_number(a) and _is_number(b):
        return a, b
    raise TypeError(f"{_kind(a)} and {_kind(b)} don't go together; cast one of them")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    names = {str: "text", bool: "a truth value"}
    return names.get(type(value), "a number" if _is_number(value) else type(value).__name__)


# --- comparisons: NaN equals itself and is greater than any number ---------------------------


def equal(a: Any, b: Any) -> bool:
    """Whether two values are the same."""
    a, b = both(a, b)
    return bool(a == b or (a != a and b != b))


def less(a: Any, b: Any) -> bool:
    """Whether a value comes before another."""
    a, b = both(a, b)
    if a != a:
        return False
    return bool(b != b or a < b)


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": equal,
    "<>": lambda a, b: not equal(a, b),
    "<": less,
    ">": lambda a, b: less(b, a),
    "<=": lambda a, b: not less(b, a),
    ">=": lambda a, b: not less(a, b),
}


# --- arithmetic ------------------------------------------------------------------------------


def add(a: Any, b: Any) -> Any:
    """The sum; a time and an interval may be added."""
    if isinstance(b, timedelta) or isinstance(a, timedelta):
        return a + b
    a, b = both(a, b)
    return EXACT.add(a, b) if isinstance(a, Decimal) or isinstance(b, Decimal) else a + b


def subtract(a: Any, b: Any) -> Any:
    """The difference; that of two times is an interval."""
    if isinstance(b, timedelta):
        return a - b
    a, b = both(a, b)
    return EXACT.subtract(a, b) if isinstance(a, Decimal) or isinstance(b, Decimal) else a - b


def multiply(a: Any, b: Any) -> Any:
    """The product; an interval may be multiplied by a number."""
    if isinstance(a, timedelta) or isinstance(b, timedelta):
        return a * b
    a, b = both(a, b)
    return EXACT.multiply(a, b) if isinstance(a, Decimal) or isinstance(b, Decimal) else a * b


def divide(a: Any, b: Any) -> Any:
    """The quotient, of integers too; null where the divisor is 0."""
    if isinstance(a, timedelta):
        return a / b if b else None
    a, b = both(a, b)
    if b == 0:
        return None
    if isinstance(a, Decimal) or isinstance(b, Decimal):
        return EXACT.divide(Decimal(a), Decimal(b))
    return a / b


def remainder(a: Any, b: Any) -> Any:
    """The remainder with the dividend's sign; null where the divisor is 0."""
    a, b = both(a, b)
    if b == 0:
        return None
    if isinstance(a, Decimal) or isinstance(b, Decimal):
        return EXACT.remainder(Decimal(a), Decimal(b))
    if isinstance(a, int) and isinstance(b, int):
        rest = abs(a) % abs(b)
        return -rest if a < 0 else rest
    return math.fmod(a, b)


def negative(a: Any) -> Any:
    """The value with the other sign."""
    return a.copy_negate() if isinstance(a, Decimal) else -a


def absolute(a: Any) -> Any:
    """The value without its sign."""
    return a.copy_abs() if isinstance(a, Decimal) else abs(a)


# --- logic -----------------------------------------------------------------------------------


def truth(value: Any) -> bool | None:
    """A value that stands for true, false or unknown, or an error."""
    if value is None or value is True or value is False:
        return value
    raise TypeError(f"{_kind(value)} is no condition")


def negation(value: Any) -> bool | None:
    """NOT: unknown stays unknown."""
    known = truth(value)
    return None if known is None else not known


# --- aggregates that grow row by row ---------------------------------------------------------

NOTHING: dict[str, Any] = {"count": 0, "rows": 0}
"""What an aggregate over no rows is kept as, where it is not None."""


def grown(function: str, kept: Any, value: Any) -> Any:
    """What is kept of an aggregate after one more row, whose argument has the value.

    `first` is kept in a tuple, since null may be the first value; `avg` as a sum and a count.
    """
    match function:
        case "rows":
            return kept + 1
        case "first":
            return (value,) if kept is None else kept
        case "last":
            return value
    if value is None:
        return kept
    match function:
        case "count":
            return kept + 1
        case "sum":
            return value if kept is None else add(kept, value)
        case "min":
            return value if kept is None or less(value, kept) else kept
        case "max":
            return value if kept is None or less(kept, value) else kept
        case "avg":
            return (value, 1) if kept is None else (add(kept[0], value), kept[1] + 1)
    raise AssertionError(function)


def told(function: str, kept: Any) -> Any:
    """The value of an aggregate, from what is kept of it."""
    if kept is None:
        return None
    match function:
        case "first":
            return kept[0]
        case "avg":
            return divide(*kept)
    return kept
