"""Aggregates: the set of a group is the union of its rows' sets, late rows left out."""

from __future__ import annotations

from pyspark.sql import functions as F

import headwater as hw
from tests.support.streams import Lab, times_of

RECORDS = """
1 | 0  | 1 | 5
2 | 3  | 1 | 1
3 | 4  | 2 | 2
--
4 | 12 | 1 | 3
5 | 2  | 1 | 9
--
6 | 13 | 1 | 3
7 | 4  | 1 | 100
8 | 6  | 2 | 100
6 | 13 | 1 | 3
--
9 | 60 | 1 | 1
"""
# The watermark is 0 in the first batch, 4 in the second, 12 in the third, 13 in the fourth.
# Rows of batch b are late by the watermark of b - 1: 5 counts in [0, 10) since 10 > 4; 7 and 8
# come in the third batch, when 4 is what late means: they count in [0, 10) too, which is emitted
# in that batch. In windows of 5 seconds sliding by 5, [0, 5) was emitted in the third batch.


def test_tumbling_and_sliding_windows(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", RECORDS)
    sums = F.sum("v").alias("v")
    flow.sink("tumbling", a.groupBy("k", F.window("ts", "10 seconds")).agg(sums))
    flow.sink("all", a.groupBy(F.window("ts", "10 seconds")).count())
    flow.sink(
        "offset", a.groupBy("k", F.window("ts", "10 seconds", "10 seconds", "5 seconds")).agg(sums)
    )
    told = lab.tell(flow)
    assert told["tumbling"] == [
        ((1, (0.0, 10.0), 115), {"a": {1, 2, 5, 7}}),
        ((1, (10.0, 20.0), 9), {"a": {4, 6}}),
        ((2, (0.0, 10.0), 102), {"a": {3, 8}}),
    ]
    assert told["all"] == [
        (((0.0, 10.0), 6), {"a": {1, 2, 3, 5, 7, 8}}),
        (((10.0, 20.0), 3), {"a": {4, 6}}),
    ]
    # [-5, 5) closed with watermark 12, in the third batch; late there means watermark 4.
    assert told["offset"] == [
        ((1, (-5.0, 5.0), 115), {"a": {1, 2, 5, 7}}),
        ((1, (5.0, 15.0), 9), {"a": {4, 6}}),
        ((2, (-5.0, 5.0), 2), {"a": {3}}),
        ((2, (5.0, 15.0), 100), {"a": {8}}),
    ]


LATE = """
1 | 1  | 1 | 1
--
2 | 20 | 1 | 1
--
3 | 21 | 1 | 1
--
4 | 9  | 1 | 1
5 | 19 | 1 | 1
--
6 | 99 | 1 | 1
"""


def test_a_late_pair_of_row_and_window_is_in_no_set(flow: hw.Flow, lab: Lab) -> None:
    """Late for one window, a record may still count in the next: only the late pair is absent."""
    a = lab.source(flow, "a", LATE)
    flow.sink("sliding", a.groupBy(F.window("ts", "10 seconds", "5 seconds")).count())
    store = lab.run(flow, "eager")
    told = lab.tell(flow)["sliding"]
    # In the fourth batch late means watermark 20: record 4 (windows up to 10 and 15) is wholly
    # late; record 5 is late for [10, 20) but not for [15, 25).
    assert told == [
        (((-5.0, 5.0), 1), {"a": {1}}),
        (((0.0, 10.0), 1), {"a": {1}}),
        (((15.0, 25.0), 3), {"a": {2, 3, 5}}),
        (((20.0, 30.0), 2), {"a": {2, 3}}),
    ]
    assert times_of(store, "sliding") == [4.999999, 9.999999, 24.999999, 29.999999]


def test_sessions(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", RECORDS)
    flow.sink("sessions", a.groupBy("k", F.session_window("ts", "5 seconds")).count())
    assert lab.tell(flow)["sessions"] == [
        ((1, (0.0, 9.0), 4), {"a": {1, 2, 5, 7}}),
        ((1, (12.0, 18.0), 3), {"a": {4, 6}}),
        ((2, (4.0, 11.0), 2), {"a": {3, 8}}),
    ]


def test_aggregates_of_aggregates(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", RECORDS)
    by_key = a.groupBy("k", F.window("ts", "10 seconds")).agg(F.sum("v").alias("v"))
    flow.sink("same", by_key.groupBy("window").agg(F.max("v").alias("v")))
    flow.sink("longer", by_key.groupBy(F.window("window", "20 seconds")).agg(F.sum("v").alias("v")))
    flow.sink(
        "by-time",
        by_key.groupBy(F.window(F.window_time("window"), "20 seconds")).agg(F.sum("v").alias("v")),
    )
    told = lab.tell(flow)
    every = {"a": {1, 2, 3, 4, 5, 6, 7, 8}}
    assert told["same"] == [
        (((0.0, 10.0), 115), {"a": {1, 2, 3, 5, 7, 8}}),
        (((10.0, 20.0), 9), {"a": {4, 6}}),
    ]
    assert told["longer"] == told["by-time"] == [(((0.0, 20.0), 226), every)]


def test_shortcuts_name_columns_as_spark_does(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", RECORDS)
    groups = a.groupBy(F.window("ts", "100 seconds"))
    assert groups.count().columns == ["window", "count"]
    assert groups.sum("v").columns == ["window", "sum(v)"]
    assert groups.min("v").columns == ["window", "min(v)"]
    assert groups.avg("v", "k").columns == ["window", "avg(v)", "avg(k)"]
    assert groups.agg({"v": "max", "*": "count"}).columns == ["window", "max(v)", "count(1)"]
