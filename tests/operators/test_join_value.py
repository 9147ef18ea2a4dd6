"""Value joins: each left row with the right rows in a range above its own."""

from __future__ import annotations

from pyspark.sql import functions as F

import headwater as hw
from tests.support.readings import pair, sides
from tests.support.streams import Lab


def test_value_joins(flow: hw.Flow, lab: Lab) -> None:
    readings, limits = sides(flow, lab)
    ids = ["id", "limit_id"]
    others = limits.withColumnRenamed("k", "of")
    both = {"left": "k", "right": "of"}
    numbers = readings.join_value(others, F.col("v") / 10, "limit", 5, order_by=both)
    flow.sink("numbers", numbers.select(*ids))
    times = readings.join_value(limits, "ts", "since", "4 seconds", "k", order_by="k")
    flow.sink("times", times.select(*ids))
    told = lab.tell(flow)
    # 3 < 6 < 3 + 5 too, but by then the limits had come to 9: reading 3 is forgotten.
    assert told["numbers"] == [
        pair(3, 101),
        pair(4, 101),
        pair(4, 102),
        *(pair(5, limit) for limit in (101, 102, 103, 104)),
    ]
    assert told["times"] == [pair(1, 102), pair(2, 103)]
