"""The plan of a reduction: from a directory or a topic to the rows of local reducers."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from headwater.errors import RunError
from headwater.kafka_errors import explained
from headwater.reduce import source
from headwater.reduce.hosting import REDUCED, LocalReducer, stateless
from headwater.reduce.intake import ROWS
from headwater.reduce.local import Grouping
from headwater.session import ROCKSDB
from headwater.spark_errors import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from headwater.reduce.intake import Intake
    from headwater.reduce.local import Strategy
    from headwater.reduce.settings import Given

SETTINGS = {
    **ROCKSDB,
    # Rows are few and large.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(32 << 20),
}


def opened(spark: SparkSession, given: Given, most: int) -> DataFrame | None:
    """Input that Spark reads itself, a column of elements, files in batches of so many bytes.

    None for a local directory.
    """
    if given.topic is not None:
        return _kafka(spark, given.topic, given.options)
    if given.directory is not None:
        return None
    options = {"maxBytesPerTrigger": str(most), **given.options}
    try:
        return spark.readStream.format("text").options(**options).load(given.input)
    except Exception as error:
        raise RunError(f"{given.input} can't be read: {one_line(error)}") from error


def rows_of_files(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """A local directory as rows for local reducers."""
    spark.dataSource.register(source.Files)
    return spark.readStream.format(source.Files.name()).options(**options).load()


def rows_of_values(values: DataFrame, intake: Intake) -> DataFrame:
    """Elements in a column as rows for local reducers."""
    return values.mapInArrow(intake.values, ROWS)


def reduced_rows(
    rows: DataFrame, strategy: Strategy, shuffles: int, bound: str | None
) -> DataFrame:
    """What local reducers make of the rows; with a `bound`, by time."""
    if isinstance(strategy, Grouping):
        return rows.repartition(shuffles, "bucket").mapInArrow(stateless(strategy), REDUCED)
    timed = bound is not None
    if bound is not None:
        rows = rows.withWatermark("time", bound)
    return rows.groupBy("bucket").transformWithStateInPandas(
        LocalReducer(strategy, timed), REDUCED, "Append", "EventTime" if timed else "None"
    )


def _kafka(spark: SparkSession, topic: str, options: Mapping[str, str]) -> DataFrame:
    servers = "kafka.bootstrap.servers"
    named = {servers if key == "bootstrap.servers" else key: v for key, v in options.items()}
    if servers not in named:
        raise RunError(
            f"kafka:{topic} needs to know a broker: give the option bootstrap.servers=HOST:PORT"
        )
    reader = spark.readStream.format("kafka").option("startingOffsets", "earliest")
    try:
        return reader.options(**named, subscribe=topic).load().select("value")
    except AnalysisException as error:
        told = explained(error) or f"it can't be read: {one_line(error)}"
        raise RunError(f"kafka:{topic}: {told}") from error


def bucket_keys(number: int, shuffles: int) -> tuple[int, ...]:
    """Numbers for so many buckets that Spark spreads evenly over so many tasks."""
    keys: list[int] = []
    for bucket in range(number):
        fitting = (k for k in count() if murmur3(k) % shuffles == bucket % shuffles)
        keys.append(next(k for k in fitting if k not in keys))
    return tuple(keys)


def murmur3(value: int, seed: int = 42) -> int:
    """Spark's hash of an int, by which it chooses a task."""
    mask = 0xFFFFFFFF

    def rotated(word: int, by: int) -> int:
        return (word << by | word >> (32 - by)) & mask

    mixed = rotated(value * 0xCC9E2D51 & mask, 15) * 0x1B873593 & mask
    found = (rotated((seed ^ mixed) & mask, 13) * 5 + 0xE6546B64) & mask
    found ^= 4
    found = (found ^ found >> 16) * 0x85EBCA6B & mask
    found = (found ^ found >> 13) * 0xC2B2AE35 & mask
    found ^= found >> 16
    return found - (1 << 32) if found >= 1 << 31 else found
