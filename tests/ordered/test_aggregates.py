"""Aggregates over runs of rows mean what Spark's mean."""

from __future__ import annotations

import math
import statistics
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import HeadwaterError
from headwater.ordered.aggregates import Runs, aggregate, rounded

NAN = float("nan")
RUNS = Runs.between(np.array([0, 1, 3]), np.array([3, 4, 4]))
"""Over four rows: the first three, the last three, the last."""


def over(function: str, values: list[Any], kind: pa.DataType | None = None) -> list[Any]:
    made: list[Any] = aggregate(function, pa.array(values, kind), RUNS).to_pylist()
    return made


def test_rows_are_counted_with_and_without_nulls() -> None:
    assert aggregate("count", None, RUNS).to_pylist() == [3, 3, 1]
    assert over("count", [1, None, 3, None]) == [2, 1, 0]
    assert over("count_distinct", ["a", "b", "a", None]) == [2, 2, 0]
    assert over("size_of_set", [1, 1, 1, 2]) == [1, 2, 1]


def test_sums_are_exact_or_an_error() -> None:
    big = 2**62
    assert over("sum", [big, None, 1, -5]) == [big + 1, -4, -5]
    assert over("sum", [Decimal("0.10"), Decimal("0.20"), None, None]) == [
        Decimal("0.30"),
        Decimal("0.20"),
        None,
    ]
    with pytest.raises(HeadwaterError, match="too large for a bigint"):
        over("sum", [big, big, 0, 0])


def test_nan_is_greater_than_any_number() -> None:
    low = over("min", [1.0, NAN, None, NAN])
    assert low[0] == 1.0
    assert all(map(math.isnan, low[1:]))
    high = over("max", [1.0, NAN, None, None])
    assert math.isnan(high[0])
    assert math.isnan(high[1])
    assert high[2] is None


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([3, 1, None, None], pa.int32()),
        (["b", "a", None, None], pa.string()),
        ([Decimal("2.5"), Decimal("1.5"), None, None], pa.decimal128(10, 2)),
        ([True, False, None, None], pa.bool_()),
        ([date(2025, 1, 2), date(2025, 1, 1), None, None], pa.date32()),
        (
            [datetime(2025, 1, 2, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC), None, None],
            pa.timestamp("us", "UTC"),
        ),
    ],
    ids=str,
)
def test_extremes_of_every_type(values: list[Any], kind: pa.DataType) -> None:
    assert over("min", values, kind) == [values[1], values[1], None]
    assert over("max", values, kind) == [values[0], values[1], None]
    assert aggregate("max", pa.array(values, kind), RUNS).type == kind


def test_lists_and_ends_are_in_order() -> None:
    assert over("first", [None, "b", "c", "d"]) == [None, "b", "d"]
    assert over("last", [None, "b", "c", "d"]) == ["c", "d", "d"]
    assert over("collect_list", ["b", None, "a", "b"]) == [["b", "a"], ["a", "b"], ["b"]]
    assert [sorted(s) for s in over("collect_set", ["b", "b", "a", None])] == [
        ["a", "b"],
        ["a", "b"],
        [],
    ]


def test_decimals_are_rounded_half_up() -> None:
    means = aggregate("avg", pa.array([Decimal("0.01"), Decimal("0.02"), None, None]), RUNS)
    assert rounded(means, pa.decimal128(14, 2)).to_pylist() == [
        Decimal("0.02"),
        Decimal("0.02"),
        None,
    ]


numbers = st.integers(-1000, 1000) | st.none()


@given(st.lists(numbers, min_size=1, max_size=12), st.data())
def test_against_plain_python(values: list[int | None], data: st.DataObject) -> None:
    spans = st.tuples(st.integers(0, len(values) - 1), st.integers(1, len(values))).filter(
        lambda s: s[0] < s[1]
    )
    chosen = data.draw(st.lists(spans, min_size=1, max_size=5))
    runs = Runs.between(np.array([a for a, _ in chosen]), np.array([b for _, b in chosen]))
    mine = [[v for v in values[a:b] if v is not None] for a, b in chosen]

    def made(function: str) -> list[Any]:
        return list(aggregate(function, pa.array(values, pa.int64()), runs).to_pylist())

    assert made("sum") == [sum(m) if m else None for m in mine]
    assert made("min") == [min(m, default=None) for m in mine]
    assert made("max") == [max(m, default=None) for m in mine]
    assert made("count") == [len(m) for m in mine]
    assert made("count_distinct") == [len(set(m)) for m in mine]
    assert made("collect_list") == mine
    assert made("avg") == pytest.approx([statistics.fmean(m) if m else None for m in mine])
    assert made("stddev_samp") == pytest.approx(
        [statistics.stdev(m) if len(m) > 1 else None for m in mine]
    )
    assert made("var_pop") == pytest.approx([statistics.pvariance(m) if m else None for m in mine])
