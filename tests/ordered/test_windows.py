"""Count and value windows: which rows they hold, when they come out, what they keep."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.names import GROUP, NUMBER
from headwater.ordered.step import Step, in_order
from headwater.ordered.windows import (
    OPEN,
    CountWindows,
    Made,
    Results,
    ValueWindows,
)
from tests.ordered.rows import PLACE, SORT, arrivals, through

RESULTS = Results((), (Made("sum", "sum", "v", pa.int64()),), ("id",), (PLACE,))


def ids(batches: list[list[dict[str, Any]]]) -> list[list[list[int]]]:
    return [[row["id"] for row in batch] for batch in batches]


def run(step: Step, *batches: list[int | None]) -> list[list[dict[str, Any]]]:
    tables, first = [], 0
    for values in batches:
        tables.append(arrivals(values, pa.int64(), first=first))
        first += len(values)
    return through(step, tables)


def test_a_count_window_comes_out_when_its_last_row_arrives() -> None:
    made = run(CountWindows(3, 1, RESULTS), [5, 6], [7, 8], [], [9])
    assert ids(made) == [[], [[0, 1, 2], [1, 2, 3]], [], [[2, 3, 4]]]
    assert [row["sum"] for batch in made for row in batch] == [18, 21, 24]
    assert [row[NUMBER] for batch in made for row in batch] == [0, 1, 2]
    assert [row[PLACE] for batch in made for row in batch] == [2, 3, 4]


def test_tumbling_count_windows_keep_only_the_rows_of_the_open_one() -> None:
    step = CountWindows(2, 2, RESULTS)
    assert ids(run(step, [1, 1, 1], [1], [1])) == [[[0, 1]], [[2, 3]], []]
    _, state = step.apply({}, in_order(arrivals([1, 1, 1], pa.int64()), SORT))
    assert state[OPEN].num_rows == 1


def test_count_windows_number_each_key_apart() -> None:
    rows = arrivals([1, 2, 3, 4, 5], pa.int64(), groups=[7, 9, 7, 9, 7])
    (made,) = through(CountWindows(2, 1, RESULTS), [rows])
    assert [(r[GROUP], r[NUMBER], r["id"]) for r in made] == [
        (7, 0, [0, 2]),
        (7, 1, [2, 4]),
        (9, 0, [1, 3]),
    ]


def test_value_windows_by_hand() -> None:
    # Windows open at 1, at 3 (more than 1 above it) and at 5; 3 again belongs to the second.
    made = run(ValueWindows(2, 1, "v", RESULTS), [1, 2], [3, 4], [3, None, 5, 9], [20])
    assert ids(made) == [[], [[0, 1, 2]], [[2, 3, 4, 6], [6]], [[7]]]
    assert [row[NUMBER] for batch in made for row in batch] == [0, 1, 2, 3]


def test_a_value_window_takes_no_row_that_lies_before_where_it_could_open() -> None:
    # The second window opens at 4, above 0 + 2; the 1 that comes after it is part of none.
    made = run(ValueWindows(2, 2, "v", RESULTS), [0, 4, 1, 5], [9])
    assert ids(made) == [[[0]], [[1, 3]]]


def test_value_windows_of_fractions() -> None:
    results = Results((), (), ("id",), (PLACE,))
    rows = arrivals([0.1, 0.2, float("nan"), 0.35, 1.0], pa.float64())
    (made,) = through(ValueWindows(0.2, 0.1, "v", results), [rows])
    assert [row["id"] for row in made] == [[0, 1], [3]]


STEPS = [
    CountWindows(1, 1, RESULTS),
    CountWindows(3, 1, RESULTS),
    CountWindows(4, 2, RESULTS),
    CountWindows(3, 3, RESULTS),
    ValueWindows(2, 1, "v", RESULTS),
    ValueWindows(3, 3, "v", RESULTS),
]


@pytest.mark.parametrize("step", STEPS, ids=repr)
@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.integers(-5, 9) | st.none()), max_size=25),
    cuts=st.sets(st.integers(0, 25), max_size=4),
)
def test_how_rows_are_cut_into_batches_changes_nothing(
    step: Step, rows: list[tuple[int, int | None]], cuts: set[int]
) -> None:
    bounds = [0, *sorted(c for c in cuts if c < len(rows)), len(rows)]
    parts = [
        arrivals([v for _, v in rows[a:b]], pa.int64(), [g for g, _ in rows[a:b]], first=a)
        for a, b in itertools.pairwise(bounds)
    ]
    whole = arrivals([v for _, v in rows], pa.int64(), [g for g, _ in rows])
    (at_once,) = through(step, [whole])
    made = [row for batch in through(step, parts) for row in batch]
    assert sorted(made, key=repr) == sorted(at_once, key=repr)
