"""Joins by what has arrived before: who meets whom, once, in which batch."""

from __future__ import annotations

from typing import Literal

import pytest

from headwater.flow import nodes
from headwater.flow.nodes import Last
from headwater.testing import InterpreterError, TiedError
from tests.testing.sequences import join_last, join_latest, join_value, listed, shorter
from tests.testing.tables import SECOND, aggregate, col, expr, run, source, table, window

# --- clocked joins ------------------------------------------------------------------------------

LATEST = """
    0 a 1 1 0 0
    0 b 2 2 0 0
    0 a 3 3 0 0
    0 b 4 9 0 0
    1 a 5 5 0 0
    1 a 6 6 0 0
    1 a 7 7 1 0
    2 b 8 8 1 0
"""


def test_each_row_of_the_clock_meets_the_latest_of_the_other() -> None:
    assert run(join_latest(), LATEST, interleaved=True) == table("""
        0: 0 3 2 @3 {a3 b2}
        1: 0 5 4 @9 {a5 b4}
        1: 0 6 4 @9 {a6 b4}
    """)


def test_an_outer_clocked_join_gives_the_clock_alone() -> None:
    assert run(join_latest(how="left_outer"), LATEST, interleaved=True) == table("""
        0: 0 1 - @1 {a1}
        0: 0 3 2 @3 {a3 b2}
        1: 0 5 4 @9 {a5 b4}
        1: 0 6 4 @9 {a6 b4}
        1: 1 7 - @7 {a7}
    """)


def test_the_right_may_be_the_clock() -> None:
    assert run(join_latest(clock="right"), LATEST, interleaved=True) == table("""
        0: 0 1 2 @2 {a1 b2}
        0: 0 3 4 @9 {a3 b4}
        2: 1 7 8 @8 {a7 b8}
    """)


def test_at_equal_places_the_left_comes_before_the_right() -> None:
    data = """
        0 a 1 1 0 0
        0 b 2 2 0 0
        0 a 3 3 0 0
        0 b 4 4 0 0
    """
    # By index: 1 and 2 at place 0, 3 and 4 at place 1.
    assert run(join_latest(), data) == table("0: 0 3 2 @3 {a3 b2}")
    assert run(join_latest(clock="right"), data) == table("""
        0: 0 1 2 @2 {a1 b2}
        0: 0 3 4 @4 {a3 b4}
    """)


def test_null_is_a_key_and_no_key_is_one() -> None:
    data = """
        0 b 1 1 - 0
        0 b 2 2 0 0
        1 a 3 3 - 0
    """
    assert run(join_latest(), data) == table("1: - 3 1 @3 {a3 b1}")
    keyless = nodes.JoinLatest(step="join", inputs=(source("a"), shorter(source("b"), "b_")))
    told = nodes.Project(step="told", inputs=(keyless,), columns=(expr(col("b_id")),))
    assert run(told, data) == table("1: 2 @3 {a3 b2}")


def test_order_by_is_for_both_sides() -> None:
    data = """
        0 a 1 5 0 0
        0 b 2 4 0 0
        0 b 3 5 0 0
        0 b 4 6 0 0
        1 b 5 1 0 0
        1 a 6 2 0 0
    """
    by_time = nodes.JoinLatest(
        step="join",
        inputs=(source("a"), source("b")),
        on=("k",),
        order_by=(expr(col("ts")),),
        right_order_by=(expr(col("ts")),),
    )
    # At time 5 the left's place is 0 and the right's 1; batch 1 begins after all of batch 0.
    assert run(by_time, data) == table("""
        0: 0 1 5 0 2 4 0 @5 {a1 b2}
        1: 0 6 2 0 5 1 0 @2 {a6 b5}
    """)


def test_the_sides_may_be_ordered_by_different_columns() -> None:
    data = """
        0 a 1 5 0 2
        0 b 2 4 0 3
        0 b 3 5 0 1
    """
    joined = join_latest(order_by=(expr(col("v")),), right_order_by=(expr(col("b_v")),))
    assert run(joined, data) == table("0: 0 1 3 @5 {a1 b3}")
    # The pair keeps the clock's place: its value of v and its own place.
    assert run(listed(joined, size=1), data) == table("0: [1] @5 {a1 b3}")


def test_the_columns_of_on_come_once_and_first() -> None:
    data = """
        0 b 2 2 0 8
        1 a 1 1 0 5
    """
    joined = nodes.JoinLatest(
        step="join", inputs=(source("a"), shorter(source("b"), "b_")), on=("k",)
    )
    # k, then id, ts and v of the left, then id, v and ts of the right.
    assert run(joined, data) == table("1: 0 1 1 5 2 8 2 @2 {a1 b2}")


# --- joins over the last events -----------------------------------------------------------------


def test_each_row_meets_the_last_rows_of_the_other_side() -> None:
    data = """
        0 a 1 1 0 0
        0 a 2 2 0 0
        0 a 3 3 0 0
        0 b 4 4 0 0
        1 b 5 5 0 0
        1 a 6 6 0 0
        1 a 7 7 1 0
    """
    flow = join_last(Last(rows=2), Last(rows=1))
    assert run(flow, data, interleaved=True) == table("""
        0: 0 2 4 @4 {a2 b4}
        0: 0 3 4 @4 {a3 b4}
        1: 0 2 5 @5 {a2 b5}
        1: 0 3 5 @5 {a3 b5}
        1: 0 6 5 @6 {a6 b5}
    """)
    # The pairs of one row are oldest first.
    assert run(listed(flow, size=5), data, interleaved=True) == table(
        "1: [2,3,2,3,6] @6 {a2 a3 a6 b4 b5}"
    )


def test_a_window_of_time_ends_at_the_latest_time_of_either_side() -> None:
    data = """
        0 a 1 10 0 0
        0 a 2 15 0 0
        0 b 3 20 0 0
        0 b 4  3 0 0
        1 b 5 21 0 0
        1 a 6  9 0 0
        1 a 7 16 0 0
        1 b 8 12 0 0
    """
    # The clock is 20 when 3 comes, for 4 too, and then 21: 10 is then too old. 6 itself comes
    # too late to be met by 8, but meets what is there: the last two of the right.
    flow = join_last(Last(time=10 * SECOND), Last(rows=2))
    assert run(flow, data, interleaved=True) == table("""
        0: 0 1 3 @20 {a1 b3}
        0: 0 2 3 @20 {a2 b3}
        0: 0 1 4 @10 {a1 b4}
        0: 0 2 4 @15 {a2 b4}
        1: 0 2 5 @21 {a2 b5}
        1: 0 6 4 @9 {a6 b4}
        1: 0 6 5 @21 {a6 b5}
        1: 0 7 4 @16 {a7 b4}
        1: 0 7 5 @21 {a7 b5}
        1: 0 2 8 @15 {a2 b8}
        1: 0 7 8 @16 {a7 b8}
    """)


def test_a_row_without_a_time_is_in_no_window_of_time() -> None:
    data = """
        0 a 1 - 0 0
        0 b 2 5 0 0
        0 a 3 - 0 0
        0 b 4 - 0 0
        0 a 5 6 0 0
    """
    timed = join_last(Last(time=SECOND), Last(time=SECOND))
    assert run(timed, data, interleaved=True) == table("""
        0: 0 3 2 @5 {a3 b2}
        0: 0 5 2 @6 {a5 b2}
    """)
    counted = join_last(Last(rows=1), Last(rows=1))
    assert run(counted, data, interleaved=True) == table("""
        0: 0 1 2 @5 {a1 b2}
        0: 0 3 2 @5 {a3 b2}
        0: 0 3 4 @- {a3 b4}
        0: 0 5 4 @6 {a5 b4}
    """)


def test_pairs_of_a_left_and_a_right_row_at_one_place_are_tied() -> None:
    data = """
        0 a 1 1 0 0
        0 b 2 2 0 0
        1 a 3 3 0 0
        1 b 4 4 0 0
    """
    # In batch 1 row 3 gives (3, 2), and row 4 at the same place gives (1, 4) and (3, 4).
    flow = join_last(Last(rows=2), Last(rows=2))
    with pytest.raises(TiedError):
        run(listed(flow), data)
    assert run(listed(flow, order_by="id b_id"), data) == table("""
        1: [1,1] @4 {a1 b2 b4}
        1: [3,3] @4 {a3 b2 b4}
    """)


# --- value joins --------------------------------------------------------------------------------


def test_a_left_row_meets_right_values_above_its_own() -> None:
    data = """
        0 a 1 1 0 10
        0 b 2 2 0 10
        0 b 3 3 0 11
        0 a 4 4 0 11
        1 b 5 5 0 13
        1 b 6 6 0 14
        1 a 7 7 1 9
        1 b 8 8 1 -
        1 b 9 9 1 10
    """
    # Both ends are excluded: 10 < x < 14 for row 1, 11 < x < 15 for row 4.
    assert run(join_value(4), data, interleaved=True) == table("""
        0: 0 1 3 @3 {a1 b3}
        1: 0 1 5 @5 {a1 b5}
        1: 0 4 5 @5 {a4 b5}
        1: 0 4 6 @6 {a4 b6}
        1: 1 7 9 @9 {a7 b9}
    """)


def test_what_the_other_side_has_gone_past_is_forgotten() -> None:
    data = """
        0 a 1 1 0 10
        0 b 2 2 0 14
        0 b 3 3 0 12
        1 b 4 4 0 30
        1 a 5 5 0 28
        1 a 6 6 0 40
        2 a 7 7 0 29
        2 b 8 8 0 41
        3 b 9 9 0 39
        3 a 0 9 0 37
    """
    # 14 makes row 1 forgotten, so that the 12 after it meets nobody. 28 is not far enough below
    # 30 to be forgotten, but meets it once. 40 forgets the 30, which the 29 then misses, and is
    # itself met by 41. The right's 39 is below a left value already seen: not remembered.
    assert run(join_value(4), data, interleaved=True) == table("""
        1: 0 5 4 @5 {a5 b4}
        2: 0 6 8 @8 {a6 b8}
    """)


def test_a_row_that_comes_too_late_still_meets_what_is_remembered() -> None:
    data = """
        0 b 1 1 0 12
        0 b 2 2 0 20
        0 a 3 3 0 10
        0 b 4 4 0 11
        0 a 5 5 0 10
    """
    # 20 is past 10 + 4: row 3 meets the 12 and is not remembered for the 11.
    assert run(join_value(4), data, interleaved=True) == table("""
        0: 0 3 1 @3 {a3 b1}
        0: 0 5 1 @5 {a5 b1}
        0: 0 5 4 @5 {a5 b4}
    """)


def test_values_may_be_times() -> None:
    data = """
        0 a 1 10 0 0
        0 b 2 12 0 0
        0 b 3 15 0 0
        0 b 4 14 0 0
    """
    assert run(join_value(5, "ts", "b_ts"), data, interleaved=True) == table("0: 0 1 2 @12 {a1 b2}")


# --- event times --------------------------------------------------------------------------------


@pytest.mark.parametrize("clock", ["left", "right"])
def test_the_event_time_of_the_clock_stays_one(clock: Literal["left", "right"]) -> None:
    data = """
        0 a 1 11 0 0
        0 b 2 12 0 0
        1 a 3 13 0 0
        1 b 4 14 0 0
    """
    inputs = (source("a"), shorter(source("b"), "b_"))
    joined = nodes.JoinLatest(step="join", inputs=inputs, on=("k",), clock=clock)
    kept, lost = ("ts", "b_ts") if clock == "left" else ("b_ts", "ts")
    expected = "1 @19.999999 {a3 b2}" if clock == "left" else "2 @19.999999 {a1 a3 b2 b4}"
    assert run(aggregate(joined, over=window(kept, 10)), data, [0, 0, 20]) == table(
        f"2: 10-20 {expected}"
    )
    with pytest.raises(InterpreterError, match="no key is the event time"):
        run(aggregate(joined, over=window(lost, 10)), data, [0, 0, 20])
