"""Ordered joins: which rows meet, in which order, and what is forgotten."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.ordered.joins import KEPT, Last, LastJoin, LatestJoin, ValueJoin
from headwater.ordered.step import Step, in_order
from tests.ordered.rows import PLACE, SECOND, SORT, pairs, sides, through

ORDER = (PLACE,)
L1, R2, L3 = ("l", 1), ("r", 2), ("l", 3)
R4, L5 = ("r", 4), ("l", 5)
R6, R7 = ("r", 6), ("r", 7)


def run(step: Step, *batches: list[tuple[str, Any]]) -> list[list[tuple[Any, Any]]]:
    tables, first = [], 0
    for rows in batches:
        tables.append(sides(rows, first))
        first += len(rows)
    return [pairs(batch) for batch in through(step, tables)]


def test_each_tick_of_the_clock_takes_the_latest_of_the_other_side() -> None:
    given = [L1, R2, L3], [R4, L5], [R6, R7]
    assert run(LatestJoin(0, False, ORDER), *given) == [[(3, 2)], [(5, 4)], []]
    assert run(LatestJoin(0, True, ORDER), *given) == [[(1, None), (3, 2)], [(5, 4)], []]
    assert run(LatestJoin(1, False, ORDER), *given) == [[(1, 2)], [(3, 4)], [(5, 6), (5, 7)]]


def test_the_clocked_join_keeps_one_row_of_a_key() -> None:
    rows = in_order(sides([R2, R4, L5, R6]), SORT)
    _, state = LatestJoin(0, False, ORDER).apply({}, rows)
    assert [row["__hw_right_row"]["r"] for row in state[KEPT].to_pylist()] == [6]


def test_every_row_meets_the_last_rows_of_the_other_side() -> None:
    step = LastJoin(Last(rows=1), Last(rows=2), ORDER)
    made = run(step, [("r", 1), ("r", 2), ("r", 3), ("l", 4)], [("l", 5), ("r", 6)])
    assert made == [[(4, 2), (4, 3)], [(5, 2), (5, 3), (5, 6)]]


def test_every_row_meets_the_rows_of_the_last_seconds() -> None:
    step = LastJoin(Last(time=2 * SECOND), Last(time=2 * SECOND), ORDER)
    made = run(step, [("l", 1), ("l", 3), ("r", 3)], [("l", 4), ("r", 9), ("l", 2)])
    # At 9 nothing of the left is left; the late left row of 2 meets the right row of 9.
    assert made == [[(1, 3), (3, 3)], [(4, 3), (2, 9)]]


def test_a_row_without_a_time_enters_no_window_of_time() -> None:
    step = LastJoin(Last(time=SECOND), Last(rows=1), ORDER)
    assert run(step, [("l", None), ("r", 1), ("l", 1)]) == [[(1, 1)]]


def test_values_meet_within_their_range() -> None:
    step = ValueJoin(3, ORDER)
    assert run(step, [L1, R2, L3], [R4, L5], [R6, R7]) == [[(1, 2)], [(3, 4)], [(5, 6), (5, 7)]]
    assert run(step, [("l", 1), ("r", 1), ("r", 4), ("r", 3.5)]) == [[]]
    assert run(step, [("r", 2), ("l", 1), ("l", None)]) == [[(1, 2)]]


def test_rows_that_nothing_can_meet_are_forgotten() -> None:
    rows = in_order(sides([("l", 1), ("l", 5), ("r", 4), ("r", 6)]), SORT)
    out, state = ValueJoin(3, ORDER).apply({}, rows)
    assert pairs(out.to_pylist()) == [(5, 6)]
    # The left 1 ends at 4; the right 4 came when the left was at 5 already.
    kept = [(r["__hw_left_row"] or r["__hw_right_row"]) for r in state[KEPT].to_pylist()]
    assert [{k: v for k, v in row.items() if k != "n"} for row in kept] == [{"l": 5}, {"r": 6}]


STEPS = [
    LatestJoin(0, True, ORDER),
    LatestJoin(1, False, ORDER),
    LastJoin(Last(rows=2), Last(time=3 * SECOND), ORDER),
    LastJoin(Last(time=SECOND), Last(time=4 * SECOND), ORDER),
    ValueJoin(3, ORDER),
]


@pytest.mark.parametrize("step", STEPS, ids=repr)
@given(
    rows=st.lists(st.tuples(st.sampled_from("lr"), st.integers(0, 9) | st.none()), max_size=20),
    cuts=st.sets(st.integers(0, 20), max_size=4),
)
def test_how_rows_are_cut_into_batches_changes_nothing(
    step: Step, rows: list[tuple[str, int | None]], cuts: set[int]
) -> None:
    bounds = [0, *sorted(c for c in cuts if c < len(rows)), len(rows)]
    parts = [rows[a:b] for a, b in itertools.pairwise(bounds)]
    made = [pair for batch in run(step, *parts) for pair in batch]
    assert made == run(step, rows)[0]
