"""MEASURES: what a match says about its rows.

A measure is one function of an expression over the matched rows, or over those matched to one
variable. The expression is of a single row, so Spark evaluates it beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from sqlglot import exp

from headwater.errors import FlowError
from headwater.ordered.aggregates import Runs, aggregate, rounded
from headwater.ordered.patterns import reading

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.ordered.patterns.reading import Natives
    from headwater.ordered.step import Indices

FUNCTIONS = ("first", "last", "count", "sum", "min", "max", "avg", "collect_list")
"""Functions of an expression over matched rows."""

_TYPED = {"match_number": "count(1)", "classifier": "first('')", "classifiers": "collect_list('')"}


@dataclass(frozen=True, slots=True)
class Measure:
    """A column of a match: a function of a native column, over the rows of a variable or all."""

    name: str
    function: str
    variable: str | None = None
    column: str | None = None

    def typed_by(self, native: Mapping[str, str]) -> str:
        """An aggregate in Spark's SQL whose type is the measure's."""
        if self.function in _TYPED:
            return _TYPED[self.function]
        return f"{self.function}({'1' if self.column is None else native[self.column]})"


def measures(
    variables: Sequence[str], texts: Sequence[tuple[str, str]], natives: Natives
) -> tuple[Measure, ...]:
    """The measures that some SQL texts mean."""
    return tuple(_measure(name, text, variables, natives) for name, text in texts)


def _measure(name: str, text: str, variables: Sequence[str], natives: Natives) -> Measure:
    what = f"match: measure {name}"
    tree = reading.read(text, what).unnest()
    called = reading.function(tree)
    if called in _TYPED:
        if tree.expressions:
            raise FlowError(f"{what}: {called}() takes no argument")
        return Measure(name, called)
    if _is_column(tree):
        variable = next(iter(reading.qualifiers(tree, variables)))
        return Measure(name, "last", variable, natives.name(reading.without(tree, variable)))
    if called in FUNCTIONS:
        variable, argument = reading.single(tree, variables, what)
        column = None if argument is None else natives.name(reading.without(argument, variable))
        return Measure(name, called, variable, column)
    raise FlowError(
        f"{what}: {text!r} is no measure: write one of {', '.join(FUNCTIONS)} of an expression "
        "of one row, as in last(A.price * 2); put what is computed from measures into a select "
        "behind"
    )


def _is_column(tree: exp.Expr) -> bool:
    """Whether a tree is a column, or a field of one."""
    while isinstance(tree, exp.Dot):
        tree = tree.this
    return isinstance(tree, exp.Column) and not isinstance(tree.this, exp.Star)


@dataclass(frozen=True, slots=True)
class Matched:
    """Matches of several keys: their rows, the variable of each row, their numbers."""

    runs: Runs
    variables: Indices
    """The variable of each matched row, as a place in the pattern's variables."""
    numbers: Indices

    def of(self, variable: int | None) -> tuple[Runs, Indices]:
        """The rows of one variable, and the matches that have any."""
        every = np.arange(len(self.runs), dtype=np.int64)
        if variable is None:
            return self.runs, every
        chosen = self.variables == variable
        owners = np.repeat(every, np.diff(self.runs.offsets))[chosen]
        having, counts = np.unique(owners, return_counts=True)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        return Runs(self.runs.rows[chosen], offsets.astype(np.int64)), having


def measured(
    measure: Measure, rows: pa.Table, matched: Matched, names: Sequence[str], kind: pa.DataType
) -> pa.Array:
    """The values of a measure, one for each match."""
    match measure.function:
        case "match_number":
            return pa.array(matched.numbers + 1).cast(kind)
        case "classifier":
            last = matched.variables[matched.runs.offsets[1:] - 1]
            return pa.array([names[v] for v in last], kind)
        case "classifiers":
            values = pa.array([names[v] for v in matched.variables], pa.string())
            offsets = pa.array(matched.runs.offsets.astype(np.int32))
            return pa.ListArray.from_arrays(offsets, values).cast(kind)
    variable = None if measure.variable is None else names.index(measure.variable)
    runs, having = matched.of(variable)
    column = None if measure.column is None else only(rows[measure.column])
    made = rounded(aggregate(measure.function, column, runs), kind)
    if len(having) == len(matched.runs):
        return made
    places = np.full(len(matched.runs), -1, np.int64)
    places[having] = np.arange(len(having))
    spread = made.take(pa.array(places, mask=places < 0))
    return spread.fill_null(0) if measure.function == "count" else _or_empty(measure, spread)


def _or_empty(measure: Measure, values: pa.Array) -> pa.Array:
    """A list of nothing where no row was matched to the variable."""
    if measure.function != "collect_list":
        return values
    return pa.array([v if v is not None else [] for v in values.to_pylist()], values.type)


def only(values: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    combined = values.combine_chunks()
    if isinstance(combined, pa.ChunkedArray):
        return combined.chunk(0) if combined.num_chunks else pa.array([], combined.type)
    return combined
