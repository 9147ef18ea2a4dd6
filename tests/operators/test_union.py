"""Unions: the set of a row is that of its branch's row; equal rows of two branches stay two."""

from __future__ import annotations

from pyspark.sql import functions as F

import headwater as hw
from tests.support.streams import Lab

A = """
1 | 0 | 1 | 5
--
2 | 9 | 1 | 6
"""
B = """
1 | 0 | 1 | 5
--
8 | 9 | 2 | 6
"""


def test_union(flow: hw.Flow, lab: Lab) -> None:
    a, b = lab.source(flow, "a", A), lab.source(flow, "b", B)
    both = a.union(b)
    flow.sink("rows", both.select("id", "k"))
    flow.sink("twice", a.select("id").union(a.select("id")).union(a.select("id")))
    flow.sink("named", a.unionByName(b.drop("k"), allowMissingColumns=True).select("id", "k"))
    flow.sink("windows", both.groupBy(F.window("ts", "5 seconds")).count())
    counts = a.groupBy("id", F.window("ts", "5 seconds")).count().select("id")
    flow.sink("mixed", counts.union(b.select("id")))
    told = lab.tell(flow)
    assert told["rows"] == [
        ((1, 1), {"a": {1}}),
        ((1, 1), {"b": {1}}),
        ((2, 1), {"a": {2}}),
        ((8, 2), {"b": {8}}),
    ]
    assert told["twice"] == [*[((1,), {"a": {1}})] * 3, *[((2,), {"a": {2}})] * 3]
    assert told["named"] == [
        ((1, 1), {"a": {1}}),
        ((1, None), {"b": {1}}),
        ((2, 1), {"a": {2}}),
        ((8, None), {"b": {8}}),
    ]
    assert told["windows"] == [(((0.0, 5.0), 2), {"a": {1}, "b": {1}})]
    assert told["mixed"] == [((1,), {"a": {1}}), ((1,), {"b": {1}}), ((8,), {"b": {8}})]
