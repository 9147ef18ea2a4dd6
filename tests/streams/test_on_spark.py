"""Spark reads the folder of a stream as a stream: each event once, in order, through restarts."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from headwater.streams import Streams
from headwater.streams.schema import parse

pytestmark = pytest.mark.spark


def test_spark_reads_each_event_once_and_in_order(
    spark: SparkSession, radar: Streams, tmp_path: Path
) -> None:
    batches: list[list[int]] = []

    def take(df: DataFrame, _: int) -> None:
        # Files of one batch are read side by side: their names say which was first.
        in_order = sorted(df.collect(), key=lambda row: (row.file_name, row.row_index))
        batches.append([row.scan for row in in_order])

    def read() -> None:
        schema = radar.declaration("radar").schema
        source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 2)
        frame = source.parquet(str(radar.path("radar")))
        placed = frame.select("scan", "_metadata.file_name", "_metadata.row_index")
        writer = placed.writeStream.foreachBatch(take)
        options = {"checkpointLocation": str(tmp_path / "checkpoint")}
        writer.options(**options).trigger(availableNow=True).start().awaitTermination()

    chosen = random.Random(7)
    scan = 0
    for _ in range(2):
        for _ in range(5):
            size = chosen.randint(1, 4)
            events = [{"scan": scan + n, "dbz": [0.5], "station": "KIND"} for n in range(size)]
            radar.publish("radar", events, key=("writer", scan))
            radar.publish("radar", events, key=("writer", scan))  # again, as after a crash
            scan += size
        # What a killed process leaves, and what is not an event, is nothing to Spark.
        (radar.path("radar") / "_writing" / "1-dead").write_bytes(b"half")
        radar.letters("radar")
        radar.advance("radar", "spark", 0)
        read()
    assert [n for batch in batches for n in batch] == list(range(scan))
    assert len(batches) == 6  # two files each: the order of files is the order of events


@pytest.mark.parametrize(
    "ddl",
    [
        "a bigint, b int, c smallint, d tinyint, e float, f double, g string, h boolean, i date",
        "a timestamp, b timestamp_ntz, c decimal(12,3), d dec, e binary, `f g` int not null",
        "a array<array<int>>, b map<string, struct<x: int, y: date>>, c struct<d bigint>",
        "select bigint comment 'a keyword', at timestamp",
    ],
)
def test_schemas_are_read_as_spark_reads_them(spark: SparkSession, ddl: str) -> None:
    ours = parse(ddl)
    spark_s = to_arrow_schema(StructType.fromDDL(ddl), timezone="UTC")
    assert ours.names == spark_s.names
    for field in ours:
        assert str(field.type) == str(spark_s.field(field.name).type), field.name
