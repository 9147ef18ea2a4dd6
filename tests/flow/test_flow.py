"""Flows: sources and sinks with their checks, stable steps, text and picture."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headwater as hw
from tests.support.streams import SCHEMA, Lab

A = "1 | 0 | 1 | 5"


def test_the_public_names_are_fixed() -> None:
    assert sorted(hw.__all__) == [
        "BatchInfo",
        "Composition",
        "CompositionError",
        "Flow",
        "FlowError",
        "Frame",
        "HeadwaterError",
        "IdCollision",
        "MapReduce",
        "PredicateError",
        "ReducedBatch",
        "Reduction",
        "Run",
        "RunError",
        "Store",
        "StoreError",
        "UnknownId",
        "UnknownName",
        "UnsupportedError",
        "deterministic",
        "length",
        "mapreduce",
        "open",
        "reduce_job",
        "time",
        "to_kafka",
        "to_spark",
    ]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"path": "nowhere"}, "source 'a' at test_flow.py:.*: there is no 'nowhere'"),
        ({"path": "nowhere", "stream": False}, "there is no 'nowhere' in /.*; check path="),
        ({"path": None}, "files need path="),
        ({"format": "cvs"}, r"Spark has no format 'cvs'; did you mean 'csv'\?$"),
        ({"path": __file__}, "test_flow.py' is one file, .* or stream=False to read it once"),
        ({"event_time": "when"}, "no column 'when' for event_time=; the schema has id, ts, k, v"),
        ({"event_time": "v"}, "event_time column 'v' is int, not timestamp"),
        ({"id": "key"}, "no column 'key' for id="),
        ({"id": ["k", "w"]}, "no column 'w' for id="),
        ({"watermark": "soon"}, "'soon' is not an interval"),
        ({"event_time": None}, "watermark= needs event_time="),
        ({"keep": "some"}, "keep='some' is not one of all, contributing, alive, none"),
        ({"schema": "id bigint, ts timestamp, __hw_v int"}, "'__hw_v' has the prefix __hw_"),
        ({"schema": "id bigint ts"}, "schema 'id bigint ts' at"),
        ({"schema": None}, r"give df=, or format= and schema=.*spark\.read\.parquet\(.*\)\.schema"),
        ({"schema": None, "format": "json"}, "such as schema='id bigint, at timestamp'$"),
        ({"df": "spark"}, "give either df= or"),
    ],
)
def test_a_wrong_source_is_refused_where_it_is_written(
    flow: hw.Flow, tmp_path: Path, spark: SparkSession, settings: dict[str, object], says: str
) -> None:
    given = {
        "format": "parquet",
        "path": str(tmp_path),
        "schema": SCHEMA,
        "event_time": "ts",
        "watermark": "1 second",
        "id": "id",
        **settings,
    }
    if given.get("df") == "spark":
        given["df"] = spark.createDataFrame([], SCHEMA)
    with pytest.raises(hw.FlowError, match=says) as refused:
        flow.source("a", **given)  # type: ignore[arg-type]
    assert "\n" not in str(refused.value)


def test_a_session_of_spark_connect_is_refused() -> None:
    there = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(hw.HeadwaterError, match="can't run through Spark Connect"):
        hw.Flow("far", there)


def test_names_are_given_once(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", A)
    flow.sink("out", a)
    with pytest.raises(hw.FlowError, match="source 'a' at .*: flow 'test' already has a source"):
        lab.source(flow, "a", A)
    with pytest.raises(hw.FlowError, match="sink 'out' at .*: flow 'test' already has a sink"):
        flow.sink("out", a)
    with pytest.raises(hw.FlowError, match="sink name 'a b'"):
        flow.sink("a b", a)
    with pytest.raises(hw.FlowError, match="write= takes a function"):
        flow.sink("other", a, write="parquet")


def test_steps_have_stable_names_and_places(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", A)
    small = a.filter("v < 9").named("small")
    flow.sink("one", small.select("id"))
    flow.sink("two", small.select("k"))
    assert small.step == "small"
    assert [n.step for n in flow.sinks["two"].upstream()] == ["a", "small", "project-2", "two"]
    text = flow.describe()
    assert "small      filter <- a: (v < 9)  [test_flow.py:" in text
    assert "(run 2 times, once for each of one, two)" in text
    with pytest.raises(hw.FlowError, match="name step 'small' before other steps use it"):
        small.named("tiny")


def test_a_flow_draws_itself(flow: hw.Flow, lab: Lab) -> None:
    flow.sink("out", lab.source(flow, "a", A).filter("v > 0"))
    lines = flow.to_mermaid().splitlines()
    assert lines[0] == "flowchart LR"
    assert lines[-2:] == ["  s_a --> s_filter_2d_1", "  s_filter_2d_1 --> s_out"]
