"""Joins: the set of a pair unites those of its partners; an unmatched row keeps its own."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from tests.support.streams import Lab, times_of

A = """
1 | 0  | 1 | 5
2 | 4  | 2 | 6
--
3 | 10 | 1 | 7
--
4 | 40 | 1 | 8
--
5 | 90 | 9 | 8
"""
B = """
11 | 2  | 1 | 0
--
12 | 11 | 1 | 0
13 | 12 | 1 | 0
--
14 | 41 | 3 | 0
--
15 | 91 | 9 | 0
"""
WITHIN = "l.k = r.k and l.ts between r.ts - interval 3 seconds and r.ts + interval 3 seconds"


def test_two_streams(flow: hw.Flow, lab: Lab) -> None:
    a, b = lab.source(flow, "a", A), lab.source(flow, "b", B)
    near = (a.ts >= b.ts - F.expr("interval 3 seconds")) & (
        a.ts <= b.ts + F.expr("interval 3 seconds")
    )
    pairs = a.join(b, (a.k == b.k) & near)
    flow.sink("inner", pairs.select(a.id, b.id.alias("other")))
    outer = a.alias("l").join(b.alias("r"), F.expr(WITHIN), "left_outer")
    flow.sink("outer", outer.selectExpr("l.id", "r.id as other"))
    flow.sink("counts", pairs.groupBy(F.window(a.ts, "20 seconds")).count())
    told = lab.tell(flow)
    matched = [
        ((1, 11), {"a": {1}, "b": {11}}),
        ((3, 12), {"a": {3}, "b": {12}}),
        ((3, 13), {"a": {3}, "b": {13}}),
        ((5, 15), {"a": {5}, "b": {15}}),
    ]
    assert told["inner"] == matched
    # The last batch, with no data, runs with watermark 90: by then 2 and 4 can have no partner.
    alone = [((2, None), {"a": {2}}), ((4, None), {"a": {4}})]
    assert told["outer"] == sorted([*matched, *alone], key=repr)
    assert told["counts"] == [(((0.0, 20.0), 3), {"a": {1, 3}, "b": {11, 12, 13}})]


def test_a_stream_with_itself(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", A)
    left, right = a.filter("v < 7").named("small"), a.filter("v >= 7").named("big")
    later = (right.ts > left.ts) & (right.ts <= left.ts + F.expr("interval 10 seconds"))
    pairs = left.join(right, later & (left.k == right.k))
    flow.sink("pairs", pairs.select(left.id, right.id.alias("next"), left.v, right["v"].alias("w")))
    store = lab.run(flow, "eager")
    assert lab.tell(flow)["pairs"] == [((1, 3, 5, 7), {"a": {1, 3}})]
    assert times_of(store, "pairs") == [10.0]


def test_a_static_side_may_be_traced_or_not(flow: hw.Flow, lab: Lab, spark: SparkSession) -> None:
    zones = spark.createDataFrame(
        [(100, 1, "one"), (101, 1, "uno"), (200, 2, "two")], "z long, k int, name string"
    )
    a = lab.source(flow, "a", A)
    traced = flow.source("zones", df=zones, id="z")
    flow.sink("traced", a.join(traced, "k").select("id", "name"))
    flow.sink("untraced", a.join(zones, "k", "left").select("id", "name"))
    told = lab.tell(flow)
    names = {1: [(100, "one"), (101, "uno")], 2: [(200, "two")]}
    keys = {1: 1, 2: 2, 3: 1, 4: 1}
    assert told["traced"] == sorted(
        [((i, name), {"a": {i}, "zones": {z}}) for i, k in keys.items() for z, name in names[k]],
        key=repr,
    )
    assert told["untraced"] == sorted(
        [((i, name), {"a": {i}}) for i, k in keys.items() for _, name in names[k]]
        + [((5, None), {"a": {5}})],
        key=repr,
    )


def test_what_a_join_refuses(flow: hw.Flow, lab: Lab) -> None:
    a, b = lab.source(flow, "a", A), lab.source(flow, "b", B)
    with pytest.raises(hw.FlowError, match="state grows forever"):
        a.join(b, a.k == b.k)
    with pytest.raises(hw.FlowError, match="state grows forever"):
        a.join(b, (a.k == b.k) & (a.ts >= b.ts))
    alone = F.expr(WITHIN + " and l.v > 2")
    with pytest.raises(hw.FlowError, match="put it into a filter before the join"):
        a.alias("l").join(b.alias("r"), alone, "left_outer")
    with pytest.raises(hw.UnsupportedError, match="how='full'"):
        a.join(b, a.k == b.k, "full")
    with pytest.raises(hw.UnsupportedError, match="needs on="):
        a.join(b)
    with pytest.raises(hw.FlowError, match="has no column 'nope'"):
        a.join(b, "nope")
