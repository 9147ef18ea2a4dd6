"""The clocked join: each row of the clock with the latest of the other stream."""

from __future__ import annotations

from pyspark.sql import functions as F

import headwater as hw
from tests.support.readings import pair, sides
from tests.support.streams import Lab


def test_the_clocked_join(flow: hw.Flow, lab: Lab) -> None:
    readings, limits = sides(flow, lab)
    ids = ["id", "limit_id"]
    flow.sink("left", readings.join_latest(limits, "k", order_by="k").select(*ids))
    outer = readings.join_latest(limits, ["k"], how="left_outer", order_by="k")
    flow.sink("outer", outer.select(*ids))
    others = limits.withColumnRenamed("k", "of")
    both = {"left": "k", "right": "of"}
    flow.sink("right", readings.join_latest(others, clock="right", order_by=both).select(*ids))
    shared = readings.join_latest(limits, "k", order_by="k")
    flow.sink("windows", shared.groupBy(F.window("ts", "3 seconds")).count())
    told = lab.tell(flow)
    # Sorted by k and place, the left first: in the first batch 1, 101, 102, 2.
    assert told["left"] == [pair(3, 102), pair(4, 103), pair(5, 102)]
    assert told["outer"] == [pair(1, None), pair(2, None), pair(3, 102), pair(4, 103), pair(5, 102)]
    assert told["right"] == [pair(1, 101), pair(1, 102), pair(3, 103), pair(5, 104)]
    assert told["windows"] == [
        (((3.0, 6.0), 1), {"limits": {102}, "readings": {3}}),
        (((6.0, 9.0), 1), {"limits": {103}, "readings": {4}}),
    ]
