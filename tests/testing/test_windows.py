"""Windows and sessions: which rows a group has, when it comes out, what is late."""

from __future__ import annotations

from headwater.flow import nodes
from headwater.flow.terms import Star
from headwater.testing import Counters
from tests.testing.tables import (
    COUNT,
    aggregate,
    call,
    col,
    expr,
    lit,
    named,
    run,
    session,
    source,
    table,
    window,
)


def test_a_window_comes_out_when_the_watermark_reaches_its_end() -> None:
    flow = aggregate(source(), "k", over=window("ts", 10))
    data = """
        0 a 1  3 0 5
        0 a 2  9 0 5
        0 a 3 10 0 5
        1 a 4 12 - 5
    """
    assert run(flow, data, [0, 9, 10, 20]) == table("""
        2: 0 0-10 2 @9.999999 {a1 a2}
        3: 0 10-20 1 @19.999999 {a3}
        3: - 10-20 1 @19.999999 {a4}
    """)


def test_a_row_is_late_by_the_watermark_of_the_batch_before() -> None:
    flow = aggregate(source(), over=window("ts", 10))
    counters = Counters()
    data = """
        0 a 1 25 0 0
        1 a 2  5 0 0
        2 a 3  6 0 0
    """
    # Record 2 comes in the batch that runs with watermark 25, after one with 0: in time.
    assert run(flow, data, [0, 25, 25, 40], counters=counters) == table("""
        1: 0-10 1 @9.999999 {a2}
        3: 20-30 1 @29.999999 {a1}
    """)
    assert counters.never_counted() == {("a", 3)}


def test_a_record_may_be_late_for_some_of_its_windows() -> None:
    flow = aggregate(source(), over=window("ts", 10, slide=5))
    counters = Counters()
    data = """
        0 a 1 12 0 0
        2 a 2  8 0 0
    """
    assert run(flow, data, [0, 12, 12, 30], counters=counters) == table("""
        3: 5-15 2 @14.999999 {a1 a2}
        3: 10-20 1 @19.999999 {a1}
    """)
    assert (counters.late_windows, counters.late_rows) == (1, 0)


def test_offsets_move_the_windows() -> None:
    flow = aggregate(source(), over=window("ts", 12, slide=5, offset=2))
    assert run(flow, "0 a 1 5 0 0", [0, 100]) == table("""
        1: -3-9 1 @8.999999 {a1}
        1: 2-14 1 @13.999999 {a1}
    """)


def test_aggregates_skip_nulls_and_count_rows() -> None:
    columns = (
        COUNT,
        named(call("count", col("v")), "known"),
        named(call("sum", col("v")), "total"),
        named(call("avg", col("v")), "mean"),
        named(call("size", call("collect_set", col("v"))), "kinds"),
    )
    flow = aggregate(source(), "k", over=window("ts", 10), columns=columns)
    data = """
        0 a 1 1 0 4
        0 a 2 2 0 -
        0 a 3 3 0 4
        0 a 4 4 1 -
    """
    assert run(flow, data, [0, 10]) == table("""
        1: 0 0-10 3 2 8 4.0 1 @9.999999 {a1 a2 a3}
        1: 1 0-10 1 0 - - 0 @9.999999 {a4}
    """)


def test_windows_of_windows_go_by_their_last_moment() -> None:
    inner = aggregate(source(), "k", over=window("ts", 10), step="inner")
    outer = aggregate(
        inner, over=window("window", 20), columns=(named(call("sum", col("n")), "n"),)
    )
    data = """
        0 a 1  3 0 0
        0 a 2 14 1 0
        1 a 3 16 1 0
    """
    # The inner windows close at 10 and 20; the outer one, which ends at 20, with the latter.
    assert run(outer, data, [0, 10, 20]) == table("2: 0-20 3 @19.999999 {a1 a2 a3}")


def test_an_existing_window_column_can_be_the_key() -> None:
    inner = aggregate(source(), "k", over=window("ts", 10), step="inner")
    outer = aggregate(inner, "window", columns=(named(call("max", col("n")), "most"),))
    data = """
        0 a 1 3 0 0
        0 a 2 4 0 0
        0 a 3 5 1 0
    """
    assert run(outer, data, [0, 10]) == table("1: 0-10 2 @9.999999 {a1 a2 a3}")


def test_stopped_cars_as_in_linear_road() -> None:
    """A car that reports one position four times running has stopped; its reports say why."""
    stopped = nodes.Filter(
        step="stopped",
        inputs=(
            aggregate(
                source(),
                "k",
                over=window("ts", 120, slide=30),
                columns=(
                    COUNT,
                    named(call("min", col("v")), "lo"),
                    named(call("max", col("v")), "hi"),
                ),
            ),
        ),
        condition=expr(call("and", call("=", col("n"), lit(4)), call("=", col("lo"), col("hi")))),
    )
    data = """
        0 a 1   0 7 55
        0 a 2  30 7 55
        1 a 3  60 7 55
        1 a 4  90 7 55
        2 a 5 120 7 60
        2 a 6   0 8 55
    """
    assert run(stopped, data, [0, 30, 90, 120, 300]) == table(
        "3: 7 0-120 4 55 55 @119.999999 {a1 a2 a3 a4}"
    )


def test_sessions_merge_when_a_row_bridges_them_ends_included() -> None:
    flow = aggregate(source(), "k", over=session("ts", 10))
    data = """
        0 a 1  0 0 0
        0 a 2 20 0 0
        1 a 3 10 0 0
        1 a 4 45 0 0
        1 a 5  5 1 0
    """
    assert run(flow, data, [0, 5, 30, 60]) == table("""
        2: 0 0-30 3 @29.999999 {a1 a2 a3}
        2: 1 5-15 1 @14.999999 {a5}
        3: 0 45-55 1 @54.999999 {a4}
    """)


def test_a_row_is_late_for_sessions_by_its_own_end() -> None:
    flow = aggregate(source(), "k", over=session("ts", 10))
    data = """
        0 a 1 30 0 0
        2 a 2 20 0 0
        2 a 3 21 0 0
    """
    counters = Counters()
    assert run(flow, data, [0, 30, 30, 60], counters=counters) == table(
        "3: 0 21-40 2 @39.999999 {a1 a3}"
    )
    assert counters.never_counted() == {("a", 2)}


def test_groups_by_event_time_have_that_time() -> None:
    flow = aggregate(source(), "ts", "k")
    data = """
        0 a 1 3 0 0
        0 a 2 3 0 0
        0 a 3 4 0 0
    """
    assert run(flow, data, [0, 3]) == table("1: 3 0 2 @3 {a1 a2}")


def test_sessions_as_a_key_are_merged_again() -> None:
    """Spark knows a session column by its metadata, and merges what overlaps (seen in 4.2)."""
    inner = aggregate(source(), "k", over=session("ts", 7), step="inner")
    outer = aggregate(inner, "n", "session_window", columns=(named(call("count", Star()), "c"),))
    data = """
        0 a 1 10 0 0
        0 a 2 13 1 0
        0 a 3 40 1 0
    """
    assert run(outer, data, [0, 30, 50]) == table("""
        1: 1 10-20 2 @19.999999 {a1 a2}
        2: 1 40-47 1 @46.999999 {a3}
    """)
