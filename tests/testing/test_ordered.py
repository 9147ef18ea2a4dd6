"""Steps over arrival order: which rows come together, in which batch, with which provenance."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import IntegerType, StructField, StructType

from headwater.flow import nodes
from headwater.testing import InterpreterError, TiedError
from tests.testing.sequences import IDS, b_sort, count_window, listed, made, merge, value_window
from tests.testing.tables import aggregate, col, expr, named, run, source, table, window

# --- count windows ------------------------------------------------------------------------------


def test_a_count_window_comes_out_with_its_last_row() -> None:
    data = """
        0 a 1 1 0 5
        0 a 2 2 0 6
        1 a 3 9 0 7
        1 a 4 4 0 8
    """
    # The second window has one row of three, and never comes out.
    assert run(count_window(source(), 3), data) == table("1: [1,2,3] @9 {a1 a2 a3}")


def test_count_windows_slide() -> None:
    data = """
        0 a 1 1 0 5
        0 a 2 2 0 6
        0 a 3 3 0 7
        1 a 4 4 0 8
        1 a 5 5 0 8
    """
    assert run(count_window(source(), 3, 2), data) == table("""
        0: [1,2,3] @3 {a1 a2 a3}
        1: [3,4,5] @5 {a3 a4 a5}
    """)
    assert run(count_window(source(), 2, 1), data) == table("""
        0: [1,2] @2 {a1 a2}
        0: [2,3] @3 {a2 a3}
        1: [3,4] @4 {a3 a4}
        1: [4,5] @5 {a4 a5}
    """)


def test_keys_count_for_themselves_and_null_is_one() -> None:
    data = """
        0 a 1 1 0 5
        0 a 2 2 - 5
        0 a 3 3 1 5
        1 a 4 4 - 5
        1 a 5 5 0 5
    """
    assert run(count_window(source(), 2, by="k"), data) == table("""
        1: 0 [1,5] @5 {a1 a5}
        1: - [2,4] @4 {a2 a4}
    """)


def test_a_record_that_comes_twice_counts_twice() -> None:
    data = """
        0 a 1 1 0 5
        1 a 1 1 0 5
    """
    assert run(count_window(source(), 2), data) == table("1: [1,1] @1 {a1}")


def test_aggregates_in_arrival_order_pass_over_nulls() -> None:
    data = """
        0 a 1 1 0 -
        0 a 2 2 0 3
        0 a 3 3 0 1
        0 a 4 4 0 3
        1 a 5 5 1 -
        1 a 6 6 1 -
        1 a 7 7 1 -
        1 a 8 8 1 -
    """
    v = col("v")
    names = "count count_distinct size_of_set sum min max first last collect_list collect_set"
    columns = (made("n", "count"), *(made(name, name, v) for name in names.split()))
    assert run(count_window(source(), 4, columns=columns), data) == table("""
        0: 4 3 2 2 7 1 3 - 3 [3,1,3] [1,3] @4 {a1 a2 a3 a4}
        1: 4 0 0 0 - - - - - [] [] @8 {a5 a6 a7 a8}
    """)


def test_averages_and_deviations() -> None:
    data = """
        0 a 1 1 0 2
        0 a 2 2 0 6
        1 a 3 3 0 5
        1 a 4 4 0 -
    """
    names = "avg var_pop stddev_pop var_samp"
    columns = tuple(made(name, name, col("v")) for name in names.split())
    assert run(count_window(source(), 2, columns=columns), data) == table("""
        0: 4.0 4.0 2.0 8.0 @2 {a1 a2}
        1: 5.0 0.0 0.0 - @4 {a3 a4}
    """)


# --- arrival order ------------------------------------------------------------------------------


def test_order_by_sorts_within_a_batch_and_never_across() -> None:
    data = """
        0 a 1 1 0 5
        0 a 2 2 0 -
        0 a 3 3 0 5
        0 a 4 4 0 2
        1 a 5 5 0 1
        1 a 6 6 0 9
    """
    assert run(listed(source(), size=6, order_by="v"), data) == table(
        "1: [2,4,1,3,5,6] @6 {a1 a2 a3 a4 a5 a6}"
    )


def test_places_of_the_source_count_not_the_order_given() -> None:
    data = """
        0 a 1 1 0 5
        0 b 2 2 0 5
        0 a 3 3 0 5
    """
    both = merge(source("a"), source("b"))
    assert run(listed(both, size=3), data) == table("0: [1,2,3] @3 {a1 a3 b2}")
    assert run(listed(both, size=3), data, interleaved=True) == table("0: [1,2,3] @3 {a1 a3 b2}")
    both = merge(source("b"), source("a"))
    assert run(listed(both, size=3), data) == table("0: [2,1,3] @3 {a1 a3 b2}")
    assert run(listed(both, size=3), data, interleaved=True) == table("0: [1,2,3] @3 {a1 a3 b2}")


def copies(row: Any) -> list[tuple[int]]:
    """Two rows of one, not in the order of their values."""
    return [(20 + row.id,), (10 + row.id,)]


def test_rows_of_one_row_are_in_the_order_in_which_they_were_made() -> None:
    schema = StructType([StructField("x", IntegerType())])
    twice = nodes.FlatMap(step="copies", inputs=(source(),), function=copies, schema=schema)
    data = """
        0 a 1 1 0 5
        0 a 2 2 0 5
    """
    assert run(listed(twice, "x", size=4), data) == table("0: [21,11,22,12] @2 {a1 a2}")
    # Beside a branch in which nothing made several rows of one: what is missing comes first.
    plain = nodes.Project(step="x", inputs=(source(),), columns=(expr(named(col("id"), "x")),))
    both = merge(twice, plain)
    assert run(listed(both, "x", size=6), data) == table("0: [1,21,11,2,22,12] @2 {a1 a2}")


def test_a_step_gives_its_rows_the_place_of_what_made_them_come_out() -> None:
    data = """
        0 a 1 1 0 5
        0 a 2 2 1 5
        0 a 3 3 1 5
        0 a 4 4 0 5
    """
    firsts = count_window(source(), 2, by="k", columns=(made("id", "first", col("id")),))
    # Key 0 came first, but its window is full only after that of key 1.
    assert run(listed(firsts), data) == table("0: [2,1] @4 {a1 a2 a3 a4}")


def test_what_a_step_was_ordered_by_stays_with_its_rows() -> None:
    data = """
        0 a 1 1 0 5
        0 a 2 2 0 3
        0 a 3 3 0 4
    """
    by_value = b_sort(source(), 0, order_by="v")
    assert run(listed(by_value, size=3), data) == table("0: [2,3,1] @3 {a1 a2 a3}")
    assert run(listed(by_value, size=3, order_by="id"), data) == table("0: [1,2,3] @3 {a1 a2 a3}")
    with pytest.raises(TiedError, match="ordered otherwise"):
        run(listed(merge(by_value, source()), size=3), data)


def test_of_rows_without_a_place_the_branch_still_counts() -> None:
    counted = aggregate(source(), over=window("ts", 10))
    again = aggregate(source(), over=window("ts", 10), step="again")
    data = "0 a 1 1 0 5"
    both = listed(merge(counted, again), "n", order_by="window")
    assert run(both, data, [0, 10]) == table("1: [1,1] @9.999999 {a1}")


def test_rows_without_a_place_need_order_by() -> None:
    data = """
        0 a 1 1 0 5
        0 a 2 2 1 5
        0 a 3 3 1 5
    """
    counted = aggregate(source(), "k", over=window("ts", 10))
    watermarks = [0, 10]
    with pytest.raises(InterpreterError, match="use order_by"):
        run(listed(counted, "k"), data, watermarks)
    assert run(listed(counted, "k", order_by="k"), data, watermarks) == table(
        "1: [0,1] @9.999999 {a1 a2 a3}"
    )
    with pytest.raises(TiedError, match="arrive at the same place"):
        run(listed(counted, "k", order_by="window"), data, watermarks)


def test_a_tie_between_keys_is_none() -> None:
    data = """
        0 a 1 1 0 5
        0 a 2 2 1 5
        1 a 3 11 0 5
        1 a 4 12 1 5
    """
    counted = aggregate(source(), "k", over=window("ts", 10))
    pairs = count_window(
        counted, 2, by="k", order_by="window", columns=(made("n", "sum", col("n")),)
    )
    assert run(pairs, data, [0, 0, 20]) == table("""
        2: 0 2 @19.999999 {a1 a3}
        2: 1 2 @19.999999 {a2 a4}
    """)


def test_which_of_two_equal_rows_survives_is_a_choice_when_places_count() -> None:
    data = """
        0 a 1 1 0 5
        0 a 2 2 1 5
        0 a 1 1 0 5
    """
    once = nodes.Deduplicate(step="once", inputs=(source(),), columns=("k",))
    assert run(listed(once), data) == table("0: [1,2] @2 {a1 a2}")
    last = run(listed(once), data, choose=lambda *case: len(case[3]) - 1)
    assert last == table("0: [2,1] @2 {a1 a2}")


# --- value windows ------------------------------------------------------------------------------


def test_value_windows_open_and_close_by_value() -> None:
    data = """
        0 a 1 1 0 1
        0 a 2 2 0 2
        0 a 3 3 0 3
        1 a 4 4 0 4
        1 a 5 5 0 5
        2 a 6 6 0 -
        2 a 7 7 0 9
    """
    # Windows start at 1, 3 and 5: each is the first value more than 1 above the start before.
    windows = value_window(source(), 2, 1)
    assert run(windows, data) == table("""
        1: [1,2,3] @3 {a1 a2 a3}
        2: [3,4,5] @5 {a3 a4 a5}
        2: [5] @5 {a5}
    """)
    # Windows that one row closes come out oldest first.
    firsts = value_window(source(), 2, 1, columns=(made("id", "first", col("id")),))
    assert run(listed(firsts, size=3), data) == table("2: [1,3,5] @5 {a1 a2 a3 a4 a5}")


def test_an_out_of_order_value_joins_the_windows_that_may_hold_it() -> None:
    data = """
        0 a 1 1 0 1
        0 a 2 2 0 3
        0 a 3 3 0 2
        0 a 4 4 0 -5
        0 a 5 5 0 6
    """
    # 2 is not more than 1 above the first window's start: no part of the second window.
    assert run(value_window(source(), 2, 1), data) == table("""
        0: [1,2,3,4] @4 {a1 a2 a3 a4}
        0: [2] @2 {a2}
    """)


def test_closed_windows_still_say_where_the_next_may_start() -> None:
    data = """
        0 a 1 1 0 5
        0 a 2 2 0 8
        0 a 3 3 0 9
        0 a 4 4 0 8
        0 a 5 5 0 99
    """
    # 8 closes the first window and is not more than 3 above its start: it is in no window, and
    # neither is the 8 after 9, for the window of 9 holds values of more than 5 + 3 only.
    assert run(value_window(source(), 2, 3), data) == table("""
        0: [1] @1 {a1}
        0: [3] @3 {a3}
    """)


def test_value_windows_over_time_and_for_each_key() -> None:
    data = """
        0 a 1 10 0 0
        0 a 2 12 1 0
        1 a 3 19 0 0
        1 a 4 21 0 0
        1 a 5 22 1 0
        1 a 6 23 1 0
    """
    # 22 is not greater than 12 + 10.
    assert run(value_window(source(), 10, 10, on="ts", by="k"), data) == table("""
        1: 0 [1,3] @19 {a1 a3}
        1: 1 [2,5] @22 {a2 a5}
    """)


# --- b-sort -------------------------------------------------------------------------------------


def test_b_sort_lets_the_least_go_when_there_are_more_than_the_slack() -> None:
    data = """
        0 a 1 1 0 3
        0 a 2 2 0 1
        0 a 3 3 0 2
        1 a 4 4 0 -
        1 a 5 5 0 2
    """
    assert run(b_sort(source(), 2), data) == table("""
        0: 2 2 0 1 @2 {a2}
        1: 4 4 0 - @4 {a4}
        1: 3 3 0 2 @3 {a3}
    """)
    # Two stay behind. What comes out is in the order of coming out: by the row that arrived.
    assert run(listed(b_sort(source(), 2), size=3), data) == table("1: [2,4,3] @4 {a2 a3 a4}")


def test_b_sort_has_a_buffer_for_each_key_and_may_have_none() -> None:
    data = """
        0 a 1 1 0 3
        0 a 2 2 1 1
        0 a 3 3 0 2
        0 a 4 4 1 -
    """
    assert run(b_sort(source(), 1, by="k"), data) == table("""
        0: 3 3 0 2 @3 {a3}
        0: 4 4 1 - @4 {a4}
    """)
    assert len(run(b_sort(source(), 0), data)) == 4


def test_b_sort_on_several_columns_in_another_order_of_arrival() -> None:
    data = """
        0 a 1 1 1 3
        0 a 2 2 0 9
        0 a 3 3 0 9
        0 a 4 4 0 4
    """
    assert run(listed(b_sort(source(), 3, on="k v"), size=1), data) == table("0: [4] @4 {a4}")
    # Arrival by v: 1, 4, 2, 3. With a slack of one, 4 leaves when it comes, then 2, then 3.
    ids = run(b_sort(source(), 1, on="k", order_by="v"), data)
    assert ids == table("""
        0: 4 4 0 4 @4 {a4}
        0: 2 2 0 9 @2 {a2}
        0: 3 3 0 9 @3 {a3}
    """)


# --- merge --------------------------------------------------------------------------------------


def test_merge_brings_any_number_of_streams_together_by_name() -> None:
    turned = tuple(expr(col(name)) for name in ("v", "k", "ts", "id"))
    other = nodes.Project(step="turned", inputs=(source("b"),), columns=turned)
    data = """
        0 a 1 1 0 5
        0 b 2 2 1 6
        0 c 3 3 2 7
        0 a 4 4 3 8
    """
    three = merge(source("c"), source("a"), other)
    assert run(three, data) == table("""
        0: 1 1 0 5 @1 {a1}
        0: 2 2 1 6 @2 {b2}
        0: 3 3 2 7 @3 {c3}
        0: 4 4 3 8 @4 {a4}
    """)
    # Equal places: the branches in turn.
    assert run(listed(three, size=4), data) == table("0: [3,1,2,4] @4 {a1 a4 b2 c3}")


def test_a_stream_merged_with_itself_has_each_row_twice() -> None:
    data = """
        0 a 1 1 0 5
        0 a 2 2 1 6
    """
    both = merge(source(), source())
    assert run(listed(both, size=4), data) == table("0: [1,1,2,2] @2 {a1 a2}")


# --- watermarks and columns ---------------------------------------------------------------------


def test_nothing_is_late_and_the_latest_event_time_is_one_again() -> None:
    data = """
        0 a 1 30 0 5
        1 a 2  5 0 6
        1 a 3  6 0 7
        1 a 4 31 0 8
    """
    columns = (made("last", "max", col("ts")), IDS)
    pairs = count_window(source(), 2, columns=columns)
    assert run(pairs, data, [0, 30]) == table("""
        1: 30 [1,2] @30 {a1 a2}
        1: 31 [3,4] @31 {a3 a4}
    """)
    counted = aggregate(pairs, over=window("last", 10))
    assert run(counted, data, [0, 30, 40]) == table("2: 30-40 2 @39.999999 {a1 a2 a3 a4}")
    # For the native window behind, rows may be late: in batch 2 those before 40 are.
    late = data.replace("1 a", "2 a")
    assert run(counted, late, [0, 40, 40, 50]) == []


def test_passing_columns_keep_the_event_time() -> None:
    data = """
        0 a 1 12 0 5
        0 a 2 11 0 4
        1 a 3 50 0 9
    """
    counted = aggregate(b_sort(merge(source(), source("b")), 1), over=window("ts", 10))
    assert run(counted, data, [0, 12, 50]) == table("2: 10-20 2 @19.999999 {a1 a2}")
    for name in ("min", "last"):
        columns = (made("t", name, col("ts")),)
        with pytest.raises(InterpreterError, match="no key is the event time"):
            run(aggregate(count_window(source(), 2, columns=columns), over=window("t", 10)), data)


@pytest.mark.parametrize(("on", "survivors"), [("v", "[1,2]"), ("ts", None)])
def test_a_column_that_the_step_reads_is_of_use(on: str, survivors: str | None) -> None:
    """A deduplication drops late rows only if something still uses the event time."""
    once = nodes.Deduplicate(step="once", inputs=(source(),), columns=("k",))
    data = """
        0 a 1 50 0 5
        2 a 2  5 1 6
    """
    found = run(count_window(once, 2, order_by=on), data, [0, 50, 50])
    assert found == ([f"2: {survivors} @50 {{a1 a2}}"] if survivors else [])
