"""Aggregates over the rows of a window in the order of their arrival."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from headwater.testing.arrival import ascending
from headwater.testing.evaluate import evaluate
from headwater.testing.rows import InterpreterError, Row, Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headwater.flow.nodes import Aggregated


def aggregated(made: Aggregated, schema: Schema, rows: Sequence[Row]) -> Any:
    """The value of an aggregate over rows; all but `first` and `last` pass over nulls."""
    if made.argument is None:
        return len(rows)
    values = [evaluate(made.argument.term, schema, row) for row in rows]
    match made.function:
        case "first":
            return values[0]
        case "last":
            return values[-1]
    function = _OVER_KNOWN.get(made.function)
    if function is None:
        raise InterpreterError(f"the reference interpreter does not know {made.function}")
    return function([value for value in values if value is not None])


def _different(values: list[Any]) -> tuple[Any, ...]:
    """Each value once. Their order means nothing: sorted here, and to be sorted to compare."""
    return tuple(sorted(set(values), key=ascending))


def _variance(values: list[Any], less: int) -> float | None:
    """The mean square distance from the mean, over `less` fewer than there are values."""
    if len(values) <= less:
        return None
    mean = sum(values) / len(values)
    return float(sum((value - mean) ** 2 for value in values) / (len(values) - less))


def _deviation(values: list[Any], less: int) -> float | None:
    variance = _variance(values, less)
    return None if variance is None else math.sqrt(variance)


_OVER_KNOWN: dict[str, Callable[[list[Any]], Any]] = {
    "count": len,
    "count_distinct": lambda values: len(set(values)),
    "sum": lambda values: sum(values) if values else None,
    "min": lambda values: min(values, key=ascending, default=None),
    "max": lambda values: max(values, key=ascending, default=None),
    "avg": lambda values: sum(values) / len(values) if values else None,
    "collect_list": tuple,
    "collect_set": _different,
    "size_of_set": lambda values: len(set(values)),
    "stddev_samp": lambda values: _deviation(values, 1),
    "stddev_pop": lambda values: _deviation(values, 0),
    "var_samp": lambda values: _variance(values, 1),
    "var_pop": lambda values: _variance(values, 0),
}
"""Functions of the values that are not null, in the order of arrival."""
