"""min and max with concise provenance: only the rows that have the least or greatest value."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from headwater.capture.choosing import choose
from tests.support.oracle import interpreted
from tests.support.streams import Lab, tell

RECORDS = """
1 | 0 | 1 | 5
2 | 1 | 1 | 9
3 | 2 | 1 | 9
--
4 | 3 | 1 | 1
5 | 4 | 2 | -
6 | 5 | 2 | -
2 | 1 | 1 | 9
7 | 12 | 3 | 4
8 | 13 | 3 | -
--
11 | 14 | 3 | -
--
9 | 6 | 1 | 99
10 | 41 | 1 | 0
"""


def test_concise(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", RECORDS)
    groups = a.groupBy("k", F.window("ts", "10 seconds"))
    flow.sink("most", groups.max("v", concise=True).drop("window"))
    both = groups.agg(F.min("v").alias("lo"), F.max(F.col("v") % 5).alias("hi"), concise=True)
    flow.sink("both", both.drop("window"))
    flow.sink("nested", both.groupBy("window").agg(F.max("lo").alias("lo"), concise=True))
    told = lab.tell(flow)
    assert told == {
        # All ties count; where all values are null nothing decides; record 9 is late.
        "most": [
            ((1, 9), {"a": {2, 3}}),
            ((2, None), {"a": {5, 6}}),
            ((3, 4), {"a": {7}}),
        ],
        # 9 % 5 is the greatest remainder, 1 the least value.
        "both": [
            ((1, 1, 4), {"a": {2, 3, 4}}),
            ((2, None, None), {"a": {5, 6}}),
            ((3, 4, 4), {"a": {7}}),
        ],
        "nested": [(((0.0, 10.0), 1), {"a": {2, 3, 4}}), (((10.0, 20.0), 4), {"a": {7}})],
    }
    assert interpreted(flow, lab, 2) == told
    assert {choice.mode for choice in choose(flow, "auto").values()} == {lab.taken("ancestors")}
    # A result follows from its records alone.
    store = lab.store(1)
    for sink in ("most", "both", "nested"):
        for result in store.results(sink)["result_id"].to_pylist():
            assert store.replay(sink, result).matches


def test_rows_that_come_from_several_records_count_with_all_of_them(
    spark: SparkSession, lab: Lab
) -> None:
    flow = hw.Flow("batch", spark)

    def source(name: str, rows: list[tuple[int, str, int]]) -> hw.Frame:
        df = spark.createDataFrame(rows, "id bigint, k string, v int")
        return flow.source(name, df=df, id="id")

    a = source("a", [(1, "x", 1), (2, "x", 2), (3, "y", 5), (4, "z", 3)])
    b = source("b", [(7, "x", 4), (8, "z", 3)])
    sums = a.groupBy("k").agg(F.sum("v").alias("v"))
    pairs = sums.join(b.select("k", F.col("v").alias("w")), "k", "left_outer")
    # x has sum 3 and w 4, y 5 and none, z 3 and 3.
    flow.sink("most", pairs.agg(F.max("v").alias("v"), F.min("w").alias("w"), concise=True))
    flow.sink("least", pairs.groupBy().min("v", concise=True))
    store = lab.run(flow, "eager")
    assert tell(store, "most") == [((5, 3), {"a": {3, 4}, "b": {8}})]
    assert tell(store, "least") == [((3,), {"a": {1, 2, 4}, "b": {7, 8}})]
