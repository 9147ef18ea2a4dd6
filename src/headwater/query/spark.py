"""Answers as Spark DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.errors import RunError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def to_spark(table: pa.Table, spark: SparkSession | None = None) -> DataFrame:
    """An answer as a Spark DataFrame, in the given or the active session."""
    return session(spark, "to_spark(table, spark=...)").createDataFrame(table)


def session(given: SparkSession | None, how: str = "frames(spark)") -> SparkSession:
    """The given session, or the active one."""
    from pyspark.sql import SparkSession

    found = given or SparkSession.getActiveSession()
    if found is None:
        raise RunError(f"no Spark session is running; give one: {how}")
    return found
