"""Aggregates over runs of rows, all runs at once.

They mean what Spark's mean: nulls are passed over except by `first`, `last` and `count(*)`, NaN is
greater than any number, a sum of integers is exact or an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import HeadwaterError
from headwater.ordered.step import Indices, ranges

if TYPE_CHECKING:
    from collections.abc import Callable

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of rows, none empty: `rows[offsets[i]:offsets[i + 1]]` are those of run `i`."""

    rows: Indices
    offsets: Indices

    @classmethod
    def between(cls, starts: Indices, ends: Indices) -> Runs:
        """Runs of neighbours, from each start to before its end."""
        lengths = ends - starts
        return cls(ranges(starts, lengths), _offsets(lengths))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def first(self) -> Indices:
        """The first row of each run."""
        return self.rows[self.offsets[:-1]]

    @property
    def last(self) -> Indices:
        """The last row of each run."""
        return self.rows[self.offsets[1:] - 1]

    def reduced(self, function: np.ufunc, values: Array) -> Array:
        """A function of two values applied along each run."""
        if not len(self):
            return values[:0]
        made: Array = function.reduceat(values[self.rows], self.offsets[:-1])
        return made


def _offsets(lengths: Indices) -> Indices:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def aggregate(function: str, values: pa.Array | None, runs: Runs) -> pa.Array:
    """A function of some values over each run; without values, the number of rows."""
    if values is None:
        return pa.array(np.diff(runs.offsets))
    return FUNCTIONS[function](values, runs)


def collected(values: pa.Array, runs: Runs) -> pa.Array:
    """The values of each run that are not null, in order."""
    if values.null_count:
        runs = Runs(runs.rows[_valid(values)[runs.rows]], _offsets(_counts(values, runs)))
    offsets = pa.array(runs.offsets.astype(np.int32))
    return pa.ListArray.from_arrays(offsets, values.take(pa.array(runs.rows)))


def _valid(values: pa.Array) -> Array:
    valid: Array = values.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _counts(values: pa.Array, runs: Runs) -> Indices:
    if not values.null_count:
        return np.diff(runs.offsets)
    return runs.reduced(np.add, _valid(values).astype(np.int64))


def _count(values: pa.Array, runs: Runs) -> pa.Array:
    return pa.array(_counts(values, runs))


def _numbers(values: pa.Array, fill: Any) -> Array:
    """Values as numbers, times as microseconds, with something in place of nulls."""
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    elif pa.types.is_date(values.type):
        values = values.cast(pa.int32())
    filled = values.fill_null(pa.scalar(fill, values.type)) if values.null_count else values
    numbers: Array = filled.to_numpy(zero_copy_only=False)
    return numbers


def _sum(values: pa.Array, runs: Runs) -> pa.Array:
    if pa.types.is_decimal(values.type):
        return _by_python(values, runs, sum)
    counts = _counts(values, runs)
    if pa.types.is_floating(values.type):
        made = runs.reduced(np.add, _numbers(values, 0.0).astype(np.float64))
        return pa.array(made, mask=counts == 0)
    numbers = _numbers(values, 0).astype(np.int64)
    made = runs.reduced(np.add, numbers)
    roughly = runs.reduced(np.add, numbers.astype(np.float64))
    if len(made) and (np.abs(roughly - made) > 1e18).any():
        raise HeadwaterError("a sum of integers is too large for a bigint; cast the values first")
    return pa.array(made, mask=counts == 0)


def _mean(values: pa.Array, runs: Runs) -> pa.Array:
    if pa.types.is_decimal(values.type):
        return _by_python(values, runs, lambda known: _quotient(sum(known), len(known)))
    counts = _counts(values, runs)
    sums = runs.reduced(np.add, _numbers(values, 0).astype(np.float64))
    return pa.array(sums / np.maximum(counts, 1), mask=counts == 0)


def _quotient(total: Decimal | int, number: int) -> Decimal:
    with localcontext() as context:
        context.prec = 60
        return Decimal(total) / number


def _by_python(
    values: pa.Array, runs: Runs, function: Callable[[list[Any]], Any], kind: Any = None
) -> pa.Array:
    """A function of the known values of each run, for types that NumPy does not have."""
    known = values.to_pylist()
    out = []
    for low, high in zip(runs.offsets[:-1], runs.offsets[1:], strict=True):
        mine = [v for i in runs.rows[low:high] if (v := known[i]) is not None]
        out.append(function(mine) if mine else None)
    return pa.array(out, kind)


def _extreme(least: bool) -> Callable[[pa.Array, Runs], pa.Array]:
    def extreme(values: pa.Array, runs: Runs) -> pa.Array:
        kind = values.type
        counts = _counts(values, runs)
        if pa.types.is_floating(kind):
            # Nulls stand aside: fmin passes NaN over, and nothing is below minus infinity.
            fill = np.nan if least else -np.inf
            made = runs.reduced(np.fmin if least else np.maximum, _numbers(values, fill))
            return pa.array(made, kind, mask=counts == 0)
        if pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            numbers = _numbers(values, 0)
            if values.null_count:
                info = np.iinfo(numbers.dtype)
                numbers = np.where(_valid(values), numbers, info.max if least else info.min)
            made = runs.reduced(np.minimum if least else np.maximum, numbers)
            plain = pa.array(made, mask=counts == 0)
            return plain if plain.type == kind else plain.cast(kind)
        places = np.asarray(pc.rank(values, "ascending"), np.int64)
        if values.null_count and not least:
            places = np.where(_valid(values), places, 0)
        best = runs.reduced(np.minimum if least else np.maximum, places)
        where = np.empty(len(places) + 1, np.int64)
        where[places] = np.arange(len(places))
        return values.take(pa.array(where[best], mask=counts == 0))

    return extreme


def _first(values: pa.Array, runs: Runs) -> pa.Array:
    return values.take(pa.array(runs.first))


def _last(values: pa.Array, runs: Runs) -> pa.Array:
    return values.take(pa.array(runs.last))


def _distinct(values: pa.Array, runs: Runs) -> tuple[Indices, Indices, pa.Array]:
    """Pairs of a run and one of its values, each once: the runs, where in a dictionary, it."""
    encoded = values.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    width = len(encoded.dictionary) + 1
    owners = np.repeat(np.arange(len(runs), dtype=np.int64), np.diff(runs.offsets))
    mine = codes[runs.rows]
    pairs = np.unique((owners * width + mine)[mine >= 0])
    return pairs // width, pairs % width, encoded.dictionary


def _distinct_counts(values: pa.Array, runs: Runs) -> Indices:
    owners, _, _ = _distinct(values, runs)
    return np.bincount(owners, minlength=len(runs)).astype(np.int64)


def _set(values: pa.Array, runs: Runs) -> pa.Array:
    owners, places, dictionary = _distinct(values, runs)
    offsets = _offsets(np.bincount(owners, minlength=len(runs)).astype(np.int64))
    return pa.ListArray.from_arrays(
        pa.array(offsets.astype(np.int32)), dictionary.take(pa.array(places))
    )


def _variance(sample: bool, root: bool) -> Callable[[pa.Array, Runs], pa.Array]:
    def variance(values: pa.Array, runs: Runs) -> pa.Array:
        counts = _counts(values, runs)
        numbers = _numbers(values.cast(pa.float64()), 0.0)
        means = runs.reduced(np.add, numbers) / np.maximum(counts, 1)
        apart = numbers[runs.rows] - np.repeat(means, np.diff(runs.offsets))
        if values.null_count:
            apart = np.where(_valid(values)[runs.rows], apart, 0.0)
        squares = np.add.reduceat(apart**2, runs.offsets[:-1]) if len(runs) else apart
        made = squares / np.maximum(counts - 1 if sample else counts, 1)
        return pa.array(np.sqrt(made) if root else made, mask=counts < (2 if sample else 1))

    return variance


FUNCTIONS: dict[str, Callable[[pa.Array, Runs], pa.Array]] = {
    "count": _count,
    "count_distinct": lambda values, runs: pa.array(_distinct_counts(values, runs)),
    "size_of_set": lambda values, runs: pa.array(_distinct_counts(values, runs)),
    "sum": _sum,
    "avg": _mean,
    "min": _extreme(least=True),
    "max": _extreme(least=False),
    "first": _first,
    "last": _last,
    "collect_list": collected,
    "collect_set": _set,
    "var_samp": _variance(sample=True, root=False),
    "var_pop": _variance(sample=False, root=False),
    "stddev_samp": _variance(sample=True, root=True),
    "stddev_pop": _variance(sample=False, root=True),
}
"""The aggregates that ordered windows have, by their names."""


def rounded(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values in the type that a result has; decimals are rounded half up, as Spark does."""
    if values.type == kind:
        return values
    if pa.types.is_decimal(kind) and pa.types.is_decimal(values.type):
        unit = Decimal(1).scaleb(-kind.scale)
        with localcontext() as context:
            context.prec = 60
            out = [
                None if v is None else v.quantize(unit, ROUND_HALF_UP) for v in values.to_pylist()
            ]
        return pa.array(out, kind)
    return values.cast(kind)
