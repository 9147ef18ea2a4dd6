"""Deduplication: the set of a result is that of the row that survived."""

from __future__ import annotations

from pyspark.sql import functions as F

import headwater as hw
from tests.support.streams import Lab

RECORDS = """
1 | 0  | 1 | 5
--
2 | 1  | 1 | 5
3 | 20 | 2 | 5
--
4 | 21 | 1 | 6
1 | 0  | 1 | 5
--
5 | 99 | 1 | 5
--
6 | 99 | 2 | 5
"""


def test_drop_duplicates(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", RECORDS)
    flow.sink("by-k", a.dropDuplicates(["k"]).select("id", "k"))
    flow.sink("whole", a.dropDuplicates().select("id"))
    flow.sink("distinct", a.select("k", "v").distinct())
    flow.sink(
        "counted", a.dropDuplicates(["k", "ts"]).groupBy(F.window("ts", "50 seconds")).count()
    )
    told = lab.tell(flow)
    assert told["by-k"] == [((1, 1), {"a": {1}}), ((3, 2), {"a": {3}})]
    # Record 1 again, in the third batch, is late by then (watermark 1) and dropped.
    assert told["whole"] == [((i,), {"a": {i}}) for i in (1, 2, 3, 4, 5, 6)]
    assert told["distinct"] == [((1, 5), {"a": {1}}), ((1, 6), {"a": {4}}), ((2, 5), {"a": {3}})]
    assert told["counted"] == [(((0.0, 50.0), 4), {"a": {1, 2, 3, 4}})]


def test_within_the_watermark_a_value_is_forgotten(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", RECORDS, watermark="5 seconds")
    flow.sink("within", a.dropDuplicatesWithinWatermark(["k"]).select("id", "k"))
    # 1 is remembered until 5, which the watermark of the third batch (15) passes at its end: 4
    # still meets it, 5 does not. 3 is remembered until 25, which the watermark of the last batch
    # (94) passes only at its end: 6 still meets it.
    assert lab.tell(flow)["within"] == [
        ((1, 1), {"a": {1}}),
        ((3, 2), {"a": {3}}),
        ((5, 1), {"a": {5}}),
    ]
