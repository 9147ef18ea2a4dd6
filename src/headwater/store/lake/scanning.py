"""A lake's data files for Spark: read by itself from folders, by its tasks from an object store.

Spark's own way to object stores needs Hadoop's libraries for each of them. Arrow has its own, which
tasks use to write the files, and so to read them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from headwater.store.lake.place import Place


_NAMES = (
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
)


def equip(spark: SparkSession, place: Place) -> None:
    """Have tasks find in their environment what this process has in its own of the storage.

    It goes where `spark.executorEnv` goes; what is said there stays.
    """
    if not place.is_local:
        told = {name: os.environ[name] for name in _NAMES if name in os.environ}
        given: dict[str, str] = spark.sparkContext.environment
        given.update({name: value for name, value in told.items() if name not in given})


def scanned(
    spark: SparkSession, place: Place, files: Sequence[str], columns: pa.Schema | StructType | str
) -> DataFrame:
    """The rows of some data files, which have these columns, as Arrow or as Spark tells them."""
    if place.is_local:
        # What Arrow wrote, Spark finds out by itself.
        reading = spark.read if isinstance(columns, pa.Schema) else spark.read.schema(columns)
        return reading.parquet(*files)
    equip(spark, place)
    form = _form(columns)
    names = spark.createDataFrame([(file,) for file in files], "path string")
    spread = names.repartition(min(len(files), 2 * spark.sparkContext.defaultParallelism))
    return spread.mapInArrow(_Scan(place, to_arrow_schema(form, timezone="UTC")), form)


def numbered(rows: DataFrame) -> DataFrame:
    """Rows for tasks that know the names: where one has a dot, Spark looks for part of a column."""
    return rows.toDF(*(f"_{number}" for number in range(len(rows.columns))))


def _form(columns: pa.Schema | StructType | str) -> StructType:
    if isinstance(columns, str):
        return cast("StructType", StructType.fromDDL(columns))
    if isinstance(columns, StructType):
        return columns
    return from_arrow_schema(columns, prefer_timestamp_ntz=True)


@dataclass(frozen=True, slots=True)
class _Scan:
    """Reads the data files that it is given the addresses of."""

    place: Place
    columns: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of some files."""
        filesystem, root = self.place.filesystem()
        for batch in batches:
            for address in batch["path"].to_pylist():
                within = address.removeprefix(self.place.root)
                with filesystem.open_input_file(f"{root}{within}") as file:
                    for rows in pq.ParquetFile(file).iter_batches(columns=self.columns.names):
                        found = pa.Table.from_batches([rows]).select(self.columns.names)
                        yield from found.cast(self.columns).to_batches()
