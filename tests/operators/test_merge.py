"""Merge: the rows of several streams in the order of their arrival, each with its own set."""

from __future__ import annotations

from pyspark.sql import functions as F

import headwater as hw
from tests.support.streams import Lab

A = """
1 | 0 | 1 | 5
3 | 4 | 1 | 6
--
5 | 9 | 1 | 7
"""
B = """
2 | 0 | 2 | 5
4 | 4 | 2 | 6
--
6 | 9 | 2 | 7
"""


def test_merge(flow: hw.Flow, lab: Lab) -> None:
    a, b = lab.source(flow, "a", A), lab.source(flow, "b", B)
    ids = F.collect_list("id").alias("ids")
    merged = a.merge(b.select("v", "k", "ts", "id"), a.filter("v = 7"))
    flow.sink("rows", merged.select("id"))
    # Both sources' first files have one time, their rows one number: then the branch decides.
    flow.sink("places", a.merge(b).count_window(3).agg(ids))
    flow.sink("ordered", a.merge(b).count_window(3, order_by="id").agg(ids))
    flow.sink("windows", a.merge(b).groupBy(F.window("ts", "5 seconds")).count())
    told = lab.tell(flow)
    assert told["rows"] == [((i,), {"a" if i % 2 else "b": {i}}) for i in (1, 2, 3, 4, 5, 5, 6)]
    assert told["places"] == [
        (((1, 2, 3),), {"a": {1, 3}, "b": {2}}),
        (((4, 5, 6),), {"a": {5}, "b": {4, 6}}),
    ]
    assert told["ordered"] == told["places"]
    assert told["windows"] == [(((0.0, 5.0), 4), {"a": {1, 3}, "b": {2, 4}})]
