"""Joins of two streams: when rows meet, when they are given up, what the watermark becomes."""

from __future__ import annotations

from headwater.flow import nodes
from headwater.flow.terms import Term
from headwater.testing import Counters
from tests.testing.tables import (
    aggregate,
    call,
    col,
    expr,
    lit,
    named,
    run,
    seconds,
    source,
    table,
    window,
)


def joined(
    how: str = "inner", *more: Term, low: int = 10, high: int = 5, on: Term | None = None
) -> nodes.Node:
    """`a` and `b` with equal `k`, b's time within [a's - low, a's + high]."""
    within = call(
        "between",
        col("r.ts"),
        call("-", col("l.ts"), seconds(low)),
        call("+", col("l.ts"), seconds(high)),
    )
    conditions = on or call("and", call("=", col("l.k"), col("r.k")), call("and", within, *more))
    join = nodes.Join(
        step="join",
        inputs=(
            nodes.Alias(step="l", name="l", inputs=(source("a"),)),
            nodes.Alias(step="r", name="r", inputs=(source("b"),)),
        ),
        on=expr(conditions),
        how="inner" if how == "inner" else "left_outer",
    )
    chosen = (
        col("l.id"),
        named(col("r.id"), "rid"),
        col("l.ts"),
        named(call("+", col("r.v"), lit(0)), "rv"),
    )
    return nodes.Project(step="select", inputs=(join,), columns=tuple(map(expr, chosen)))


DATA = """
    0 a 1 20 0 1
    0 b 2 12 0 7
    1 b 3 25 0 8
    1 b 4 26 0 9
    1 b 5 20 - 9
    1 a 6 20 - 1
    2 a 7 30 0 1
"""


def test_rows_meet_within_the_range_across_batches() -> None:
    assert run(joined(), DATA, [0, 10, 20, 60]) == table("""
        0: 1 2 20 7 @20 {a1 b2}
        1: 1 3 20 8 @25 {a1 b3}
        2: 7 3 30 8 @30 {a7 b3}
        2: 7 4 30 9 @30 {a7 b4}
    """)


def test_an_outer_join_gives_a_row_up_when_no_partner_can_come() -> None:
    # A left row at 20 may meet b's rows up to 25: it waits until the watermark passes that,
    # and one millisecond more, for the range includes its end. A null key never matches.
    assert run(joined("left"), DATA, [0, 10, 25, 26, 60]) == table("""
        0: 1 2 20 7 @20 {a1 b2}
        1: 1 3 20 8 @25 {a1 b3}
        2: 7 3 30 8 @30 {a7 b3}
        2: 7 4 30 9 @30 {a7 b4}
        3: 6 - 20 - @20 {a6}
    """)


def test_late_rows_meet_nobody() -> None:
    data = """
        0 a 1 20 0 1
        2 b 2 20 0 7
        2 b 3 21 0 7
    """
    counters = Counters()
    assert run(joined(), data, [0, 20, 20, 20], counters=counters) == table(
        "2: 1 3 20 7 @21 {a1 b3}"
    )
    assert counters.never_counted() == {("b", 2)}


def test_an_outer_row_that_can_never_match_comes_out_at_once() -> None:
    data = """
        0 a 1 20 0 1
        0 a 2 20 0 5
        0 b 3 20 0 7
    """
    flow = joined("left", call("<", col("l.v"), lit(3)))
    assert run(flow, data, [0, 10]) == table("""
        0: 1 3 20 7 @20 {a1 b3}
        0: 2 - 20 - @20 {a2}
    """)


def test_spark_takes_a_number_for_a_time_bound() -> None:
    """With `l.v > 3` in an outer join's condition Spark waits for ever (seen in 4.2)."""
    data = """
        0 a 1 20 0 1
        0 a 2 20 0 5
    """
    flow = joined("left", call(">", col("l.v"), lit(3)))
    assert run(flow, data, [0, 50, 500, 5000]) == table("0: 1 - 20 - @20 {a1}")
    assert run(joined("inner", call(">", col("l.v"), lit(3))), data, [0, 50]) == []


def test_equal_times_as_keys_need_no_range() -> None:
    flow = joined("left", on=call("=", col("l.ts"), col("r.ts")))
    data = """
        0 a 1 20 0 1
        0 a 2 21 0 1
        1 b 3 21 1 9
    """
    assert run(flow, data, [0, 10, 20, 21]) == table("""
        1: 2 3 21 9 @21 {a2 b3}
        2: 1 - 20 - @20 {a1}
    """)


def test_an_aggregate_after_a_join_waits_for_the_join() -> None:
    # Rows of the join may be as old as the watermark less the range and a millisecond.
    flow = aggregate(joined(), over=window("ts", 10))
    data = """
        0 a 1 18 0 1
        0 b 2 10 0 7
    """
    assert run(flow, data, [0, 20, 30, 31]) == table("3: 10-20 1 @19.999999 {a1 b2}")
