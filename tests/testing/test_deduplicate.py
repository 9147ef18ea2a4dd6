"""Deduplication: who survives, for how long a value is remembered, what is late."""

from __future__ import annotations

from headwater.flow import nodes
from headwater.testing import Counters
from tests.testing.tables import col, expr, run, source, table


def distinct(*columns: str, delay: str = "0 seconds", within: bool = False) -> nodes.Node:
    return nodes.Deduplicate(
        step="distinct",
        inputs=(source(delay=delay),),
        columns=columns or None,
        within_watermark=within,
    )


def test_the_first_row_survives_and_the_others_are_in_no_set() -> None:
    data = """
        0 a 1 1 0 5
        1 a 2 2 0 6
        1 a 3 2 1 6
    """
    assert run(distinct("k"), data, [0, 1]) == table("""
        0: 1 1 0 5 @1 {a1}
        1: 3 2 1 6 @2 {a3}
    """)


def test_within_a_batch_the_survivor_is_a_choice() -> None:
    data = """
        0 a 1 1 0 5
        0 a 2 2 0 6
    """
    counters = Counters()
    last = run(distinct("k"), data, [0], choose=lambda *case: len(case[3]) - 1, counters=counters)
    assert last == table("0: 2 2 0 6 @2 {a2}")
    assert (counters.choices, counters.duplicates) == (1, 1)


def test_a_record_that_comes_twice_is_no_choice() -> None:
    counters = Counters()
    data = """
        0 a 1 1 0 5
        0 a 1 1 0 5
    """
    assert run(distinct(), data, [0], counters=counters) == table("0: 1 1 0 5 @1 {a1}")
    assert (counters.choices, counters.duplicates) == (0, 1)


def test_a_value_with_its_time_is_forgotten_and_late_when_the_watermark_passes() -> None:
    data = """
        0 a 1  5 0 5
        1 a 2  5 0 6
        2 a 3  5 0 7
    """
    # Batch 1 runs with watermark 5 and still knows the value; batch 2 finds the row late.
    counters = Counters()
    assert run(distinct("k", "ts"), data, [0, 5, 5], counters=counters) == table(
        "0: 1 5 0 5 @5 {a1}"
    )
    assert counters.never_counted() == {("a", 3)}


def test_within_the_watermark_a_value_is_remembered_for_the_delay() -> None:
    data = """
        0 a 1  5 0 5
        1 a 2 14 0 6
        2 a 3 30 0 7
        3 a 4 31 0 8
    """
    flow = distinct("k", delay="10 seconds", within=True)
    # The value of record 1 expires at 15: known in batch 1, forgotten after it, so 3 survives.
    assert run(flow, data, [0, 15, 20, 21]) == table("""
        0: 1 5 0 5 @5 {a1}
        2: 3 30 0 7 @30 {a3}
    """)


def test_spark_forgets_lateness_with_the_event_time_column() -> None:
    """A column of no further use is pruned, and without the time nothing is late (seen)."""
    data = """
        0 a 1 50 0 5
        2 a 2  5 1 6
    """
    assert run(distinct("k"), data, [0, 50, 50]) == table("0: 1 50 0 5 @50 {a1}")
    narrow = nodes.Project(step="k", inputs=(distinct("k"),), columns=(expr(col("k")),))
    assert run(narrow, data, [0, 50, 50]) == table("""
        0: 0 @50 {a1}
        2: 1 @5 {a2}
    """)
    watched = nodes.Deduplicate(
        step="distinct", inputs=(source(),), columns=("k",), within_watermark=True
    )
    narrow = nodes.Project(step="k", inputs=(watched,), columns=(expr(col("k")),))
    assert run(narrow, data, [0, 50, 50]) == table("0: 0 @50 {a1}")
