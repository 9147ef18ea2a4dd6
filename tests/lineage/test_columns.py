"""Column lineage: out of a flow's steps, each column's origins and what decides on its rows."""

from __future__ import annotations

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from headwater.lineage.columns import column_lineage
from tests.support.streams import Lab

pytestmark = pytest.mark.spark

A, B = "1 | 0 | 1 | 5", "2 | 0 | 1 | 5"


def columns(flow: hw.Flow, frame: hw.Frame) -> dict[str, dict[str, str]]:
    """Of each column: the columns of sources, and in which ways."""
    flow.sink("out", frame)
    found = column_lineage(flow, flow.sinks["out"])
    told = {name: _told(origins) for name, origins in found.columns.items()}
    return {**told, "*": _told(found.rows)}


def _told(origins: dict[tuple[str, str], frozenset[str]]) -> dict[str, str]:
    return {
        f"{source}.{column}": "+".join(sorted(ways)).lower()
        for (source, column), ways in sorted(origins.items())
    }


@pytest.fixture
def a(flow: hw.Flow, lab: Lab) -> hw.Frame:
    return lab.source(flow, "a", A)


@pytest.fixture
def b(flow: hw.Flow, lab: Lab) -> hw.Frame:
    return lab.source(flow, "b", B)


def test_rows_to_rows(flow: hw.Flow, a: hw.Frame) -> None:
    made = (
        a.filter("v > 1")
        .withColumn("twice", F.col("v") * 2)
        .withColumnRenamed("k", "key")
        .select(
            "key",
            a["id"].alias("number"),
            "twice",
            F.when(F.col("key") > 1, F.col("v")).otherwise(F.col("twice")).alias("chosen"),
            F.lit(1).alias("one"),
            F.expr("twice + 1 as more"),
            F.expr("more + id as most"),
        )
        .drop("one")
    )
    assert columns(flow, made) == {
        "key": {"a.k": "identity"},
        "number": {"a.id": "identity"},
        "twice": {"a.v": "transformation"},
        "chosen": {"a.k": "conditional", "a.v": "transformation"},
        "more": {"a.v": "transformation"},
        "most": {"a.id": "transformation", "a.v": "transformation"},
        "*": {"a.v": "filter"},
    }


def test_a_column_replaced(flow: hw.Flow, a: hw.Frame) -> None:
    made = a.withColumn("V", F.col("v") + F.col("k")).select("v", F.struct("id", "ts").alias("s"))
    assert columns(flow, made.select("v", "s.ts")) == {
        "v": {"a.k": "transformation", "a.v": "transformation"},
        "ts": {"a.id": "transformation", "a.ts": "transformation"},
        "*": {},
    }


def test_aggregates(flow: hw.Flow, a: hw.Frame) -> None:
    made = (
        a.groupBy(F.window("ts", "5 seconds"), "k")
        .agg(F.sum("v").alias("s"), F.count("*").alias("n"), F.max(F.col("v") + 1).alias("m"))
        .select("window.end", "k", "s", "n", "m")
    )
    assert columns(flow, made) == {
        "end": {"a.ts": "transformation"},
        "k": {"a.k": "identity"},
        "s": {"a.v": "aggregation"},
        "n": {},
        "m": {"a.v": "aggregation"},
        "*": {"a.k": "group_by", "a.ts": "group_by"},
    }


def test_joins_by_a_condition_and_by_names(flow: hw.Flow, a: hw.Frame, b: hw.Frame) -> None:
    near = F.expr("l.k = r.k and r.ts between l.ts and l.ts + interval 1 second")
    made = a.alias("l").join(b.alias("r"), near).select("l.v", F.col("r.v").alias("w"), "r.ts")
    assert columns(flow, made) == {
        "v": {"a.v": "identity"},
        "w": {"b.v": "identity"},
        "ts": {"b.ts": "identity"},
        "*": {"a.k": "join", "a.ts": "join", "b.k": "join", "b.ts": "join"},
    }


def test_a_join_of_frames_without_aliases(flow: hw.Flow, a: hw.Frame, b: hw.Frame) -> None:
    made = a.join(b, (a.id == b.id) & (a.ts == b.ts)).select(a.v, b.v.alias("w"))
    found = columns(flow, made)
    assert found["v"] == {"a.v": "identity"}
    assert found["w"] == {"b.v": "identity"}
    assert set(found["*"]) == {"a.id", "b.id", "a.ts", "b.ts"}


def test_a_static_side_has_no_source(flow: hw.Flow, a: hw.Frame, spark: SparkSession) -> None:
    names = spark.createDataFrame([(1, "one")], "k int, name string")
    assert columns(flow, a.join(names, "k").select("k", "v", "name")) == {
        "k": {"a.k": "identity"},
        "v": {"a.v": "identity"},
        "name": {},
        "*": {"a.k": "join"},
    }


def test_unions(flow: hw.Flow, a: hw.Frame, b: hw.Frame) -> None:
    by_place = a.select("k", "v").union(b.select("v", "k")).select(F.col("k").alias("x"), "v")
    found = columns(flow, by_place)
    assert found["x"] == {"a.k": "identity", "b.v": "identity"}
    flow.sink("named", a.unionByName(b.select("v", "k", "ts", "id")))
    by_name = column_lineage(flow, flow.sinks["named"]).columns
    assert _told(by_name["v"]) == {"a.v": "identity", "b.v": "identity"}


def test_functions_are_from_all_that_they_get(flow: hw.Flow, a: hw.Frame) -> None:
    def doubled(rows: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"d": rows["v"] * 2})

    made = a.select("id", "ts", "v").map(doubled, "d int", keep=["ts"])
    assert columns(flow, made) == {
        "ts": {"a.ts": "identity"},
        "d": {f"a.{name}": "transformation" for name in ("id", "ts", "v")},
        "*": {},
    }


def test_explode_and_deduplicate(flow: hw.Flow, a: hw.Frame) -> None:
    exploded = a.select("id", "ts", F.posexplode(F.array("k", "v")).alias("at", "one"))
    both = {"a.k": "transformation", "a.v": "transformation"}
    assert columns(flow, exploded.dropDuplicates(["id", "ts"]).drop("ts")) == {
        "id": {"a.id": "identity"},
        "at": both,
        "one": both,
        "*": {"a.id": "group_by", "a.ts": "group_by"},
    }


def test_steps_over_arrival_order(flow: hw.Flow, a: hw.Frame, b: hw.Frame) -> None:
    windows = a.count_window(2).by("k").agg(F.sum("v").alias("s"), F.max("ts").alias("ts"))
    assert columns(flow, windows) == {
        "k": {"a.k": "identity"},
        "s": {"a.v": "aggregation"},
        "ts": {"a.ts": "aggregation"},
        "*": {"a.k": "group_by"},
    }
    other = b.select("k", F.col("v").alias("w"))
    flow.sink("latest", a.join_latest(other, on="k").select("k", "v", "w"))
    found = column_lineage(flow, flow.sinks["latest"])
    assert _told(found.columns["w"]) == {"b.v": "identity"}
    assert _told(found.rows) == {"a.k": "join", "b.k": "join"}


def test_patterns(flow: hw.Flow, a: hw.Frame) -> None:
    rising = a.match(
        "A B+",
        define={"B": "v > prev(v)"},
        measures={"top": "max(B.id)", "at": "max(ts)"},
        by="k",
    )
    found = columns(flow, rising)
    assert found["top"] == {"a.id": "aggregation"}
    assert found["*"] == {"a.k": "group_by", "a.v": "filter"}


def test_sql(flow: hw.Flow, a: hw.Frame) -> None:
    made = flow.sql("SELECT k, max(v) AS top FROM a WHERE v > 0 GROUP BY k, window(ts, '1 minute')")
    found = columns(flow, made)
    assert (found["k"], found["top"]) == ({"a.k": "identity"}, {"a.v": "aggregation"})
    assert found["*"]["a.v"] == "filter"
