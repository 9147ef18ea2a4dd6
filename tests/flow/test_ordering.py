"""Steps over arrival order: what is refused, on the line that wrote it, and what they are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F

import headwater as hw
from headwater.errors import FlowError, HeadwaterError
from headwater.flow.reach_rules import longest_wait

SCHEMA = "id bigint, ts timestamp, k int, v int, s string"


def count() -> Column:
    return F.count("*").alias("n")


@pytest.fixture
def a(flow: hw.Flow, tmp_path: Path) -> hw.Frame:
    return flow.source(
        "a", format="parquet", path=tmp_path, schema=SCHEMA, event_time="ts", watermark="1 second"
    )


@pytest.fixture
def b(flow: hw.Flow, tmp_path: Path) -> hw.Frame:
    other = flow.source("b", format="parquet", path=tmp_path, schema=SCHEMA, id="id")
    return other.selectExpr("id AS other", "ts AS at", "k", "v AS w", "s AS t")


REFUSED: dict[str, tuple[Callable[[hw.Frame, hw.Frame], object], str]] = {
    "size 0": (lambda a, b: a.count_window(0), "size is a number of rows, 1 at least, not 0"),
    "size of a half": (lambda a, b: a.count_window(2.5), "number of rows"),  # type: ignore[arg-type]
    "slide 0": (lambda a, b: a.count_window(3, 0), "slide is a number of rows"),
    "slide beyond size": (lambda a, b: a.count_window(3, 4), "slide 4 is greater than size 3"),
    "no aggregate": (lambda a, b: a.count_window(3).agg(), "at least one aggregate"),
    "unknown column": (
        lambda a, b: a.count_window(3).agg(F.sum("nope").alias("x")),
        r"count_window at test_ordering.py:\d+: .*nope",
    ),
    "unknown key": (lambda a, b: a.count_window(3).by("nope").agg(count()), "nope"),
    "no column": (
        lambda a, b: a.count_window(3).agg("sum(v)"),  # type: ignore[arg-type]
        "agg takes Columns, not str",
    ),
    "twice the name": (
        lambda a, b: a.count_window(3).by("k").agg(count().alias("k")),
        "two columns",
    ),
    "an expression over aggregates": (
        lambda a, b: a.count_window(3).agg((F.sum("v") / F.count("v")).alias("x")),
        "goes into a select behind",
    ),
    "another aggregate": (
        lambda a, b: a.count_window(3).agg(F.median("v").alias("x")),
        "not one of its aggregates",
    ),
    "a key without a name": (
        lambda a, b: a.count_window(3).by(F.col("v") + 1).agg(count()),
        "a name with alias",
    ),
    "windows over text": (lambda a, b: a.value_window(2, 1, "s"), "neither a number nor a time"),
    "a number for times": (lambda a, b: a.value_window(2, 1, "ts"), "an interval such as"),
    "an interval for numbers": (lambda a, b: a.value_window("2 minutes", 1, "v"), "is a number"),
    "no interval": (lambda a, b: a.value_window("2 parsecs", "1 second", "ts"), "interval"),
    "size below 0": (lambda a, b: a.value_window(-2, 1, "v"), "must be greater than 0"),
    "value slide beyond size": (lambda a, b: a.value_window(2, 3, "v"), "greater than size"),
    "slack below 0": (lambda a, b: a.b_sort(-1, "v"), "slack is a number of rows"),
    "sorted on nothing": (lambda a, b: a.b_sort(1, []), "on= names the columns"),
    "sorted on what is not there": (lambda a, b: a.b_sort(1, "nope"), "nope"),
    "merged with nothing": (lambda a, b: a.merge(), "at least one other"),
    "merged with other columns": (lambda a, b: a.merge(b), "select the same ones"),
    "merged with no frame": (
        lambda a, b: a.merge("b"),  # type: ignore[arg-type]
        "takes a headwater.Frame, not str",
    ),
    "no such clock": (lambda a, b: a.join_latest(b, "k", clock="top"), "neither 'left' nor"),
    "no such join": (lambda a, b: a.join_latest(b, "k", how="full"), "use 'inner' or 'left_outer'"),
    "the wrong clock": (
        lambda a, b: a.join_latest(b, "k", clock="right", how="left"),
        "must be the left",
    ),
    "no such key": (lambda a, b: a.join_latest(b, "v"), "the right side, .*, has no column 'v'"),
    "a key of two types": (
        lambda a, b: a.join_latest(b.withColumn("k", F.col("k").cast("string")), "k"),
        "'k' is int on the left and string on the right",
    ),
    "a column on both sides": (
        lambda a, b: a.join_latest(b.withColumnRenamed("w", "V"), "k"),
        "both sides have a column 'V'",
    ),
    "the last 0 rows": (lambda a, b: a.join_last(b, "k", left=0, right=1), "1 at least, not 0"),
    "the last half row": (
        lambda a, b: a.join_last(b, "k", left=1.5, right=1),  # type: ignore[arg-type]
        "a number of rows or an interval",
    ),
    "a number and a time": (
        lambda a, b: a.join_value(b, "v", "at", 3, "k"),
        "not both numbers or both times",
    ),
    "a range of nothing": (lambda a, b: a.join_value(b, "v", "w", 0, "k"), "greater than 0"),
    "no order behind an aggregate": (
        lambda a, b: a.groupBy("k", F.window("ts", "1 minute")).count().count_window(2),
        "rows of aggregate step 'aggregate-1' come in no order; .* order_by=",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused(case: str, a: hw.Frame, b: hw.Frame) -> None:
    make, message = REFUSED[case]
    with pytest.raises(HeadwaterError, match=message) as refused:
        make(a, b)
    assert "\n" not in str(refused.value)


def test_records_without_places_need_order_by(flow: hw.Flow, tmp_path: Path) -> None:
    texts = flow.source("texts", format="csv", path=tmp_path, schema=SCHEMA)
    with pytest.raises(FlowError, match="source 'texts' have no places"):
        texts.count_window(2)
    assert texts.count_window(2, order_by="ts").agg(count()).columns == ["n"]
    numbered = flow.source("numbered", format="csv", path=tmp_path, schema=SCHEMA, id="id")
    assert numbered.count_window(2).agg(count()).columns == ["n"]


def test_a_static_side_is_not_clocked(flow: hw.Flow, a: hw.Frame, tmp_path: Path) -> None:
    still = flow.source(
        "still", format="parquet", path=tmp_path, schema="k int, x int", stream=False
    )
    with pytest.raises(HeadwaterError, match="does not stream; use join"):
        a.join_latest(still, "k")


def test_columns_are_as_spark_would_have_them(a: hw.Frame, b: hw.Frame) -> None:
    windows = a.count_window(3).by("k", F.upper("s").alias("up")).agg(F.avg("v"), count())
    assert windows.dtypes == [("k", "int"), ("up", "string"), ("avg(v)", "double"), ("n", "bigint")]
    joined = a.join_last(b, "k", left=1, right="2 seconds")
    assert joined.columns == ["k", "id", "ts", "v", "s", "other", "at", "w", "t"]
    assert a.b_sort(1, "v").dtypes == a.dtypes


def test_steps_say_what_they_do(flow: hw.Flow, a: hw.Frame, b: hw.Frame) -> None:
    flow.sink("one", a.count_window(3, 1).by("k").agg(count()))
    flow.sink("two", a.join_last(b, "k", left=2, right="1 minute").b_sort(5, "ts", by="k"))
    text = flow.describe()
    assert "count_window <- a: 3 rows sliding by 1 by k: count(*) AS n" in text
    assert "join_last <- a, project-1: left window 2 rows, right window 60 seconds on k" in text
    assert "b_sort <- join_last-1: on ts, slack 5 by k" in text


def test_what_waits_for_rows_has_no_bound(flow: hw.Flow, a: hw.Frame) -> None:
    flow.sink("rows", a.filter("v > 1"))
    assert longest_wait(list(flow.sinks.values()), flow.sources["a"]) == 0
    flow.sink("windows", a.count_window(3).agg(count()))
    assert longest_wait(list(flow.sinks.values()), flow.sources["a"]) is None
