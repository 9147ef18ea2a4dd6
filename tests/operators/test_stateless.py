"""Steps that make one row of one: the set of a result is that of its row."""

from __future__ import annotations

from pyspark.sql import functions as F

import headwater as hw
from tests.support.streams import Lab

RECORDS = """
1 | 0 | 1 | 5
2 | 1 | 2 | 0
--
3 | 2 | - | 7
3 | 2 | - | 7
"""


def test_filter_and_columns_keep_the_record(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", RECORDS)
    flow.sink("filter", a.filter("v > 0").select("id"))
    flow.sink("where", a.where((a.v == 0) | a["k"].isNull()).select("id"))
    flow.sink("select", a.select("*", (F.col("v") * 2).alias("w")).drop("ts", "k"))
    flow.sink("expr", a.selectExpr("id", "coalesce(k, -1) as k", "v % 2 = 1 as odd"))
    flow.sink("columns", a.withColumn("v", a.v + 1).withColumnRenamed("v", "w").drop(a.ts, "k"))
    flow.sink(
        "struct", a.select(F.to_json(F.struct("*")).alias("json")).selectExpr("length(json) > 0")
    )
    assert lab.tell(flow) == {
        "filter": [((1,), {"a": {1}}), ((3,), {"a": {3}}), ((3,), {"a": {3}})],
        "where": [((2,), {"a": {2}}), ((3,), {"a": {3}}), ((3,), {"a": {3}})],
        "select": [
            ((1, 5, 10), {"a": {1}}),
            ((2, 0, 0), {"a": {2}}),
            ((3, 7, 14), {"a": {3}}),
            ((3, 7, 14), {"a": {3}}),
        ],
        "expr": [
            ((1, 1, True), {"a": {1}}),
            ((2, 2, False), {"a": {2}}),
            ((3, -1, True), {"a": {3}}),
            ((3, -1, True), {"a": {3}}),
        ],
        "columns": [
            ((1, 6), {"a": {1}}),
            ((2, 1), {"a": {2}}),
            ((3, 8), {"a": {3}}),
            ((3, 8), {"a": {3}}),
        ],
        "struct": [((True,), {"a": {1}}), ((True,), {"a": {2}}), *[((True,), {"a": {3}})] * 2],
    }


def test_a_star_never_shows_what_headwater_adds(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", RECORDS)
    flow.sink("star", a.alias("l").select("l.*", F.struct("l.id", "l.v").alias("s")))
    store = lab.run(flow, "eager")
    assert store.results("star").column_names == [
        "result_id",
        "event_time",
        "id",
        "ts",
        "k",
        "v",
        "s",
    ]
