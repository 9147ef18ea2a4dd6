"""map: one row to one by a function of batches; each row comes from the row it was made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from headwater.capture.choosing import choose
from tests.support.oracle import interpreted
from tests.support.streams import Lab, times_of

RECORDS = """
1 | 0 | 1 | 5
2 | 1 | 2 | -
--
3 | 2 | 1 | 7
3 | 2 | 1 | 7
--
6 | 3 | 2 | 2
--
4 | 0 | 1 | 9
5 | 4 | 2 | 1
"""


@hw.deterministic
def doubled(rows: pd.DataFrame) -> pd.DataFrame:
    assert isinstance(rows, pd.DataFrame)
    return pd.DataFrame({"twice": rows["v"] * 2, "second": rows["ts"].dt.second})


@hw.deterministic
def negated(rows: pa.RecordBatch) -> dict[str, Any]:
    assert isinstance(rows, pa.RecordBatch)
    return {"minus": pc.negate(rows["v"]), "of": rows["id"]}


def test_map(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", RECORDS)
    made = a.map(doubled, "twice int, second int", keep=["ts", "k"])
    assert made.columns == ["ts", "k", "twice", "second"]
    flow.sink("rows", made.filter("twice > 2 or twice is null").drop("ts"))
    window = F.window("ts", "2 seconds")
    flow.sink("sums", made.groupBy(window).agg(F.sum("twice").alias("sum")))
    flow.sink("arrow", a.filter("v > 5").map(negated, "minus int, of bigint"))
    told = lab.tell(flow)
    assert told == {
        "rows": [
            ((1, 10, 0), {"a": {1}}),
            ((1, 14, 2), {"a": {3}}),
            ((1, 14, 2), {"a": {3}}),
            ((1, 18, 0), {"a": {4}}),
            ((2, 4, 3), {"a": {6}}),
            ((2, None, 1), {"a": {2}}),
        ],
        # Record 4 comes when its window has been given out.
        "sums": [(((0.0, 2.0), 10), {"a": {1, 2}}), (((2.0, 4.0), 32), {"a": {3, 6}})],
        "arrow": [((-7, 3), {"a": {3}}), ((-7, 3), {"a": {3}}), ((-9, 4), {"a": {4}})],
    }
    assert interpreted(flow, lab, 2) == told
    assert times_of(lab.store(1), "rows") == [0, 0, 1, 2, 2, 3]


def test_a_function_is_called_once_for_a_row_whatever_comes_after(
    spark: SparkSession, lab: Lab
) -> None:
    def random(rows: pd.DataFrame) -> dict[str, Any]:
        return {"x": np.random.default_rng().random(len(rows))}

    flow = hw.Flow("random", spark)
    a = flow.source("a", df=spark.range(200), id="id")
    flow.sink("few", a.map(random, "x double").filter("x < 0.5").select("x", F.col("x").alias("y")))
    rows = lab.run(flow, "eager").results("few")
    assert 50 < rows.num_rows < 150
    assert rows["x"].equals(rows["y"])
    assert pc.max(rows["x"]).as_py() < 0.5
    assert choose(flow, "auto")["few"].mode == "eager"
    with pytest.raises(hw.UnsupportedError, match="'random' is not declared with @headwater"):
        choose(flow, "ancestors")


def test_a_wrong_number_of_rows_stops_the_run_in_one_line(spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("wrong", spark)
    a = flow.source("a", df=spark.range(3), id="id")
    flow.sink("out", a.map(lambda rows: rows.head(0).rename(columns={"id": "x"}), "x bigint"))
    with pytest.raises(
        hw.RunError, match=r"^flow 'wrong' failed: ValueError: map 'map-1': .* gave 0 rows for \d"
    ) as failed:
        lab.run(flow, "eager")
    assert "\n" not in str(failed.value)
