"""Jobs, each a function of frames or DataFrames alike, for the tests of lowerings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import functions as F

SCHEMA = "id bigint, ts timestamp, k int, v int, xs array<int>"


def _join(a: Any, b: Any, how: str) -> Any:
    near = F.expr(
        "l.k = r.k AND l.ts BETWEEN r.ts - INTERVAL 3 SECONDS AND r.ts + INTERVAL 3 SECONDS"
    )
    return a.alias("l").join(b.alias("r"), near, how).selectExpr("l.id", "r.id AS other", "l.ts")


CASES: dict[str, Callable[[Any, Any], Any]] = {
    "filter": lambda a, b: a.filter("v > 0"),
    "project": lambda a, b: a.select("*", (F.col("v") + 1).alias("w")),
    "with_columns": lambda a, b: a.withColumn("v", F.col("v") * 2).withColumn("w", F.lit(1)),
    "rename": lambda a, b: a.withColumnRenamed("v", "w"),
    "drop": lambda a, b: a.drop("xs", "k"),
    "explode": lambda a, b: a.select("id", F.explode("xs").alias("x")),
    "union": lambda a, b: a.union(b),
    "union_by_name": lambda a, b: a.unionByName(b.drop("k"), allowMissingColumns=True),
    "aggregate": lambda a, b: a.groupBy("k", F.window("ts", "10 seconds", "5 seconds")).agg(
        F.sum("v").alias("v")
    ),
    "aggregate_twice": lambda a, b: (
        a.groupBy("k", F.window("ts", "10 seconds"))
        .agg(F.sum("v").alias("v"))
        .groupBy("window")
        .agg(F.max("v").alias("v"))
    ),
    "session": lambda a, b: a.groupBy("k", F.session_window("ts", "5 seconds")).count(),
    "join": lambda a, b: _join(a, b, "inner"),
    "left_join": lambda a, b: _join(a, b, "left_outer"),
    "deduplicate": lambda a, b: a.dropDuplicates(["k", "ts"]),
    "deduplicate_all": lambda a, b: a.dropDuplicates(),
    "within_watermark": lambda a, b: a.dropDuplicatesWithinWatermark(["k"]),
}
"""Every operator that PySpark itself has; flat_map is Headwater's own."""
