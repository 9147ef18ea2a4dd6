"""applyInPandas: what a function makes of a group comes from the group, or from rows it names."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from headwater.capture.choosing import choose
from tests.support.oracle import interpreted
from tests.support.streams import Lab, times_of

RECORDS = """
2 | 3 | 1 | 5
1 | 1 | 1 | 9
3 | 4 | 2 | 4
--
4 | 4 | 1 | 7
4 | 4 | 1 | 7
5 | 12 | 2 | 8
--
9 | 13 | 3 | 1
--
6 | 5 | 1 | 99
7 | 14 | 2 | -
8 | 31 | 1 | 0
"""


@hw.deterministic
def told(key: tuple[Any, ...], rows: pd.DataFrame) -> pd.DataFrame:
    """The key, and the values in the order in which the rows are given."""
    k, window = key
    seconds = int(window["end"].second)
    return pd.DataFrame({"k": [k], "until": [seconds], "ids": [rows["id"].tolist()]})


@hw.deterministic
def steps(rows: pd.DataFrame) -> dict[str, list[Any]]:
    """The rise from each row to the next, and nothing for a row alone."""
    values = rows["v"].fillna(0).astype(int).tolist()
    rises = [later - before for before, later in pairwise(values)]
    return {"rise": rises, "of": [[i, i + 1] for i in range(len(rises))]}


def test_group_functions(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", RECORDS)
    groups = a.groupBy("k", F.window("ts", "10 seconds"))
    whole = groups.applyInPandas(told, "k int, until int, ids array<bigint>")
    assert whole.columns == ["k", "until", "ids"]
    flow.sink("whole", whole)
    some = groups.applyInPandas(steps, "rise int, of array<int>", "of", keep=["k", "window"])
    assert some.columns == ["k", "window", "rise"]
    flow.sink("some", some.drop("window"))
    # The window that is kept is the event time of what follows.
    flow.sink("most", some.groupBy("window").agg(F.max("rise").alias("most")))
    found = lab.tell(flow)
    assert found == {
        # By event time, whatever the order of arrival; record 4 is there twice, record 6 is late.
        "whole": [
            ((1, 10, (1, 2, 4, 4)), {"a": {1, 2, 4}}),
            ((2, 10, (3,)), {"a": {3}}),
            ((2, 20, (5, 7)), {"a": {5, 7}}),
            ((3, 20, (9,)), {"a": {9}}),
        ],
        "some": [
            ((1, -4), {"a": {1, 2}}),
            ((1, 0), {"a": {4}}),
            ((1, 2), {"a": {2, 4}}),
            ((2, -8), {"a": {5, 7}}),
        ],
        "most": [(((0.0, 10.0), 2), {"a": {1, 2, 4}}), (((10.0, 20.0), -8), {"a": {5, 7}})],
    }
    assert interpreted(flow, lab, 2) == found
    assert times_of(lab.store(1), "some") == [9.999999, 9.999999, 9.999999, 19.999999]
    assert {choice.mode for choice in choose(flow, "auto").values()} == {lab.taken("ancestors")}


def test_batch_sources_take_any_grouping_and_maps(spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("batch", spark)
    rows = [(3, "x", {"n": 3}), (1, "x", {"n": 1}), (2, "y", {"n": 2})]
    a = flow.source("a", df=spark.createDataFrame(rows, "id bigint, s string, m map<string,int>"))

    def all_of(key: tuple[Any, ...], rows: pd.DataFrame) -> pd.DataFrame:
        assert key == ()
        return pd.DataFrame({"n": [len(rows)], "of": [[]]})

    def first(rows: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"s": rows["s"].head(1), "n": len(rows), "of": [[0]]})

    flow.sink("all", a.groupBy().applyInPandas(all_of, "n bigint, of array<int>", "of"))
    flow.sink("by", a.groupBy("s").applyInPandas(first, "s string, n int, of array<bigint>", "of"))
    store = lab.run(flow, "eager")
    assert store.results("all")["n"].to_pylist() == [3]
    # A row may name no row at all.
    assert store.backward("all", store.results("all")["result_id"].to_pylist()).num_rows == 0
    by = store.results("by").to_pylist()
    assert sorted((row["s"], row["n"]) for row in by) == [("x", 2), ("y", 1)]
    for row in by:
        assert store.backward("by", row["result_id"]).num_rows == 1
    with pytest.raises(hw.UnsupportedError, match="'all_of' is not declared with @headwater"):
        choose(flow, "ancestors")


def test_a_position_out_of_range_names_step_and_group(spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("wrong", spark)
    a = flow.source("a", df=spark.range(3), id="id")

    def wrong(rows: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"n": [1], "of": [[5]]})

    flow.sink("out", a.groupBy("id").applyInPandas(wrong, "n int, of array<int>", "of"))
    with pytest.raises(
        hw.RunError,
        match=r"applyInPandas 'group_function-1', group \(\d,\): position 5 in 'of' is none of the "
        "group's 1 rows$",
    ):
        lab.run(flow, "eager")
