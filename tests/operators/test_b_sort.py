"""The bounded-pass sort: the same rows with the same sets, in another order."""

from __future__ import annotations

from pyspark.sql import functions as F

import headwater as hw
from tests.support.streams import Lab, times_of

A = """
1 | 3 | 1 | 5
2 | 1 | 2 | 6
--
3 | 2 | 1 | 7
4 | 9 | 2 | 1
--
5 | 8 | 1 | -
6 | 40 | 1 | 2
"""


def test_b_sort(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", A)
    sorted_ = a.b_sort(2, "ts")
    flow.sink("rows", sorted_)
    # The order shows in what follows: windows of one row after the other.
    flow.sink("order", sorted_.count_window(2, 1).agg(F.collect_list("id").alias("ids")))
    keyed = a.b_sort(1, ["v", "id"], by="k").count_window(4).agg(F.collect_list("id").alias("ids"))
    flow.sink("keyed", keyed)
    flow.sink("windows", a.b_sort(1, "ts").groupBy(F.window("ts", "5 seconds")).count())
    told = lab.tell(flow)
    assert told["rows"] == [
        ((1, 3.0, 1, 5), {"a": {1}}),
        ((2, 1.0, 2, 6), {"a": {2}}),
        ((3, 2.0, 1, 7), {"a": {3}}),
        ((5, 8.0, 1, None), {"a": {5}}),
    ]
    assert told["order"] == [
        (((1, 5),), {"a": {1, 5}}),
        (((2, 3),), {"a": {2, 3}}),
        (((3, 1),), {"a": {1, 3}}),
    ]
    # Key 1 gives 1 (pushed out by 3), 5 (by itself, null is least) and 6; key 2 gives 4.
    assert told["keyed"] == [(((1, 4, 5, 6),), {"a": {1, 4, 5, 6}})]
    assert told["windows"] == [
        (((0.0, 5.0), 3), {"a": {1, 2, 3}}),
        (((5.0, 10.0), 2), {"a": {4, 5}}),
    ]


def test_the_event_time_is_the_row_s_own(flow: hw.Flow, lab: Lab) -> None:
    flow.sink("rows", lab.source(flow, "a", A).b_sort(2, "ts"))
    assert times_of(lab.run(flow, "eager"), "rows") == [1.0, 2.0, 3.0, 8.0]
