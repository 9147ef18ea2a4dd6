"""Joins over the last events: each row with those in the other stream's window."""

from __future__ import annotations

from pyspark.sql import functions as F

import headwater as hw
from tests.support.readings import pair, sides
from tests.support.streams import Lab


def test_joins_over_the_last_events(flow: hw.Flow, lab: Lab) -> None:
    readings, limits = sides(flow, lab)
    ids = ["id", "limit_id"]
    rows = readings.join_last(limits, "k", left=1, right=1, order_by="k")
    flow.sink("rows", rows.select(*ids))
    others = limits.withColumnRenamed("k", "of")
    both = {"left": "k", "right": "of"}
    timed = readings.join_last(others, left="3 seconds", right="3 seconds", order_by=both)
    flow.sink("timed", timed.select(*ids))
    flow.sink("order", timed.count_window(2, 2).agg(F.collect_list("limit_id").alias("limits")))
    told = lab.tell(flow)
    assert told["rows"] == [
        pair(1, 101),
        pair(1, 102),
        pair(2, 103),
        pair(3, 102),
        pair(4, 103),
        pair(5, 102),
        pair(5, 104),
    ]
    assert told["timed"] == [
        pair(1, 101),
        pair(1, 102),
        pair(2, 101),
        pair(2, 102),
        pair(2, 103),
        pair(3, 102),
        pair(3, 103),
        pair(4, 103),
    ]
    assert [row for row, _ in told["order"]] == [
        ((101, 102),),
        ((101, 102),),
        ((102, 103),),
        ((103, 103),),
    ]
