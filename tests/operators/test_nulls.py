"""Nulls and nested values: what differs gets different ids, of records and of results."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from tests.support.streams import Lab

RECORDS = """
1 | 0 | 5 | -
2 | 0 | - | 5
3 | 0 | - | -
"""


def test_groups_that_differ_in_where_the_null_is(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", RECORDS, stream=False, options={})
    flow.sink("out", a.groupBy("k", "v").count())
    assert lab.tell(flow)["out"] == [
        ((5, None, 1), {"a": {1}}),
        ((None, 5, 1), {"a": {2}}),
        ((None, None, 1), {"a": {3}}),
    ]


def test_contents_that_differ_in_nulls_and_nesting(
    flow: hw.Flow, lab: Lab, spark: SparkSession
) -> None:
    rows = [(5, None, [[1], [2, 3]]), (None, 5, [[1], [2, 3]]), (5, None, [[1, 2], [3]])]
    df = spark.createDataFrame(rows, "a int, b int, xs array<array<int>>")
    source = flow.source("s", df=df)
    flow.sink("out", source.select("*"))
    store = lab.run(flow, "eager")
    for result in store.results("out").to_pylist():
        (record,) = store.backward("out", result["result_id"]).to_pylist()
        assert [record[c] for c in ("a", "b", "xs")] == [result[c] for c in ("a", "b", "xs")]
    assert len(set(store.backward("out", where="true")["id"].to_pylist())) == 3


def test_ids_of_columns_with_nulls_can_be_asked_for(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", RECORDS, id=["k", "v"], stream=False, options={}, keep="all")
    flow.sink("out", a.select(F.col("id").alias("n")))
    store = lab.run(flow, "eager")
    assert [store.forward("a", key)["n"].to_pylist() for key in ((5, None), (None, 5))] == [
        [1],
        [2],
    ]
