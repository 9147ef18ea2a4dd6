"""Value windows: rows whose values lie close together, whenever they come."""

from __future__ import annotations

from pyspark.sql import functions as F

import headwater as hw
from tests.support.streams import Lab

A = """
1 | 0 | 1 | 1
2 | 1 | 1 | 2
--
3 | 2 | 1 | 3
4 | 3 | 2 | 9
5 | 4 | 1 | 4
--
6 | 5 | 1 | 3
7 | 6 | 1 | -
8 | 30 | 1 | 5
9 | 31 | 1 | 9
--
10 | 32 | 2 | 30
11 | 60 | 1 | 20
"""


def test_value_windows(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", A)
    ids = F.collect_list("id").alias("ids")
    flow.sink("numbers", a.value_window(2, 1, "v").by("k").agg(ids))
    flow.sink("times", a.value_window("2 seconds", "2 seconds", "ts").agg(ids))
    halves = a.value_window(1.0, 0.5, (F.col("v") / 2).alias("half"), order_by=["ts"])
    flow.sink("halves", halves.agg(F.count("*").alias("n")))
    told = lab.tell(flow)
    assert told["numbers"] == [
        ((1, (1, 2, 3)), {"a": {1, 2, 3}}),
        ((1, (3, 5, 6, 8)), {"a": {3, 5, 6, 8}}),
        ((1, (8,)), {"a": {8}}),
        ((1, (9,)), {"a": {9}}),
        ((2, (4,)), {"a": {4}}),
    ]
    assert told["times"] == [
        (((1, 2, 3),), {"a": {1, 2, 3}}),
        (((4, 5, 6),), {"a": {4, 5, 6}}),
        (((7,),), {"a": {7}}),
        (((8, 9, 10),), {"a": {8, 9, 10}}),
    ]
    assert [row for row, _ in told["halves"]] == [(1,), (3,), (3,)]


def test_several_windows_that_one_row_closes_come_out_in_order(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", A).filter("k = 1")
    windows = a.value_window(4, 1, "v").agg(F.first("v").alias("start"))
    flow.sink("in_a_row", windows.count_window(2, 1).agg(F.collect_list("start").alias("s")))
    assert [row for row, _ in lab.tell(flow)["in_a_row"]] == [((1, 3),), ((3, 5),), ((5, 9),)]
