"""Answers as Spark DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.errors import RunError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def to_spark(table: pa.Table, spark: SparkSession | None = None) -> DataFrame:
    """An answer as a Spark DataFrame, in the given or the active session."""
    from pyspark.sql import SparkSession

    session = spark or SparkSession.getActiveSession()
    if session is None:
        raise RunError("no Spark session is running; give one: to_spark(table, spark=...)")
    return session.createDataFrame(table)
