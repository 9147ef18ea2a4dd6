"""Frames: PySpark's methods and columns, and clear refusals on the line that is wrong."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from tests.support.streams import Lab

A = "1 | 0 | 1 | 5"


@pytest.fixture
def a(flow: hw.Flow, lab: Lab) -> hw.Frame:
    return lab.source(flow, "a", A)


def test_a_frame_looks_like_a_dataframe(a: hw.Frame, capsys: pytest.CaptureFixture[str]) -> None:
    assert a.columns == ["id", "ts", "k", "v"]
    assert a.dtypes == [("id", "bigint"), ("ts", "timestamp"), ("k", "int"), ("v", "int")]
    assert a.schema["v"].dataType.simpleString() == "int"
    assert a.isStreaming
    assert a.withColumn("w", a.v + 1)[["w", "v"]].columns == ["w", "v"]
    assert a[a.v > 1].columns == a.columns
    assert "v" in dir(a)
    a.printSchema()
    assert "|-- v: integer" in capsys.readouterr().out
    a.filter("v > 1").explain()
    assert "filter-2  filter <- a: (v > 1)" in capsys.readouterr().out


def test_a_job_written_for_dataframes_runs_on_frames(a: hw.Frame, spark: SparkSession) -> None:
    def job(df):  # type: ignore[no-untyped-def]
        big = df.where(df.v > 2).withColumn("w", F.when(df["k"] == 1, df.v).otherwise(F.lit(0)))
        return big.transform(lambda d: d.select("id", d.w.cast("string").alias("w")))

    expected = job(spark.createDataFrame([], a.schema))
    assert job(a).schema == expected.schema


def test_references_outlive_the_steps_between(a: hw.Frame) -> None:
    later = a.filter(a.v > 1).withColumn("w", a.v * 2).select("w", a.id, a["ts"])
    assert later.filter(a.id > 0).columns == ["w", "id", "ts"]
    with pytest.raises(hw.FlowError, match="column 'k' of step 'a' is no longer there"):
        later.filter(a.k == 1)
    with pytest.raises(hw.FlowError, match="no longer there"):
        a.withColumn("v", F.lit(1)).filter(a.v > 1)


def test_references_tell_the_sides_of_a_join_apart(flow: hw.Flow, lab: Lab, a: hw.Frame) -> None:
    b = lab.source(flow, "b", A)
    within = (a.ts >= b.ts) & (a.ts <= b.ts + F.expr("interval 1 second"))
    pairs = a.join(b, (a.k == b.k) & within)
    assert pairs.select(a.v, b.v.alias("w")).columns == ["v", "w"]
    assert pairs.drop(b.id, b.ts, b.k, b.v).columns == ["id", "ts", "k", "v"]
    with pytest.raises(hw.FlowError, match="two columns are called 'id'"):
        flow.sink("doubled", pairs)


@pytest.mark.parametrize(
    ("attempt", "says"),
    [
        (
            lambda a: a.limit(3),
            "Frame.limit is not supported on step 'a': a stream has no first rows",
        ),
        (lambda a: a.sort("v"), "Frame.sort is not supported .* sort the answer"),
        (lambda a: a.orderBy("v"), "Frame.orderBy is not supported"),
        (lambda a: a.show(), "Frame.show is not supported .* run the flow"),
        (lambda a: a.writeStream, "Frame.writeStream is not supported .* flow.sink"),
        (lambda a: a.vv, "step 'a' has no column or method 'vv'; did you mean 'v'"),
        (lambda a: a["nope"], "step 'a' has no column 'nope'; it has id, ts, k, v"),
        (lambda a: a.filter("nope > 1"), r"filter at test_frame.py:\d+: .*nope"),
        (lambda a: a.filter("v >"), "filter: Spark can't parse 'v >'"),
        (lambda a: a.filter(1), "filter takes a Column or a SQL string, not int"),
        (lambda a: a.select(3), "select takes Columns or column names, not int"),
        (lambda a: a.withColumn("w", 3), r"withColumn takes a Column, not int; wrap it in F.lit"),
        (lambda a: a.withColumn("__hw_w", F.lit(3)), "'__hw_w' has the prefix __hw_"),
        (lambda a: a.select(F.window("ts", "1 second")), "put window.* into groupBy"),
        (lambda a: a.groupBy("k").pivot("v"), r"groupBy\(…\).pivot is not supported"),
        (lambda a: a.groupBy("k").agg(), "agg needs at least one aggregate"),
        (lambda a: a.groupBy("k").agg(F.count_distinct("v")), "collect_set"),
        (lambda a: a.groupBy("k", F.col("v").alias("k")).count(), "two keys named 'k'"),
        (lambda a: a.groupBy(F.window("ts", "soon")).count(), "'soon' is not an interval"),
        (lambda a: a.dropDuplicates("v"), r"dropDuplicates takes a list of column names: \['v'\]"),
        (lambda a: a.dropDuplicates(["w"]), "has no column 'w'"),
        (lambda a: a.withWatermark("ts", "soon"), "'soon' is not an interval"),
        (lambda a: a.flat_map(3, "x int"), "flat_map takes a function"),
        (lambda a: a.flat_map(list, "x int", keep=["w"]), "keep names 'w'"),
        (lambda a: a.flat_map(list, "x in t"), "schema 'x in t' at test_frame.py"),
        (lambda a: a.union(3), "union takes a headwater.Frame, not int"),
        (lambda a: a.select(F.explode(F.create_map("k", "v"))), "map_entries"),
        (lambda a: a.select(F.explode(F.array("k")), F.explode(F.array("v"))), "takes one explode"),
    ],
)
def test_refusals_say_what_to_use(a: hw.Frame, attempt, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(hw.HeadwaterError, match=says) as refused:
        attempt(a)
    assert "\n" not in str(refused.value)


def test_frames_of_two_flows_do_not_mix(a: hw.Frame, lab: Lab, spark: SparkSession) -> None:
    other = lab.source(hw.Flow("other", spark), "b", A)
    with pytest.raises(hw.FlowError, match="belongs to flow 'other', not to 'test'"):
        a.union(other)
    with pytest.raises(hw.FlowError, match="needs a frame of flow 'test'"):
        a.flow.sink("s", other)
