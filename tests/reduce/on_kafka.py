"""Jobs that are published on Kafka and reduced: `python -m tests.reduce.on_kafka HOME SERVERS`.

A process of its own, as its Spark needs the connector. What each reduction counted is printed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from headwater.reduce.run import Reduction
from tests.reduce.streams import delayed, job, shuffled
from tests.restart.job import session

PARTITIONS = 3
"""Of each topic, as `scripts/kafka` has the broker make them."""
TIMES = {"strategy": "watermark", "watermark": "1 minute", "lifetime": "100 seconds"}
TOLD = job(80, seed=1)
LINES = shuffled(TOLD, seed=2)
LATE = delayed(TOLD, seed=3, within=60)


def publish(
    spark: SparkSession,
    servers: str,
    topic: str,
    lines: Sequence[object],
    partitions: Sequence[int] = range(PARTITIONS),
) -> None:
    """Add messages to a topic, to its partitions in turn."""
    turns = cycle(partitions)
    rows = [(json.dumps(line), next(turns)) for line in lines]
    df = spark.createDataFrame(rows, "value string, partition int").coalesce(1)
    df = df.withColumn("topic", F.lit(topic))
    df.write.format("kafka").option("kafka.bootstrap.servers", servers).save()


def main(home: Path, servers: str) -> None:
    """Three jobs: one is left half done, one goes by time, one tells its end."""
    spark = session()

    def reduce(name: str, options: dict[str, str], **given: Any) -> Reduction:
        return hw.reduce_job(
            f"kafka:{name}",
            store=home / "store",
            job=name,
            partitions=3,
            local_batch=40,
            options={"bootstrap.servers": servers, **options},
            **given,
        )

    def tell(running: Reduction) -> None:
        counts = running.counts
        print(json.dumps([running.job, counts.batches, counts.elements]), flush=True)

    half = len(LINES) // 2
    publish(spark, servers, "halves", LINES[:half])
    running = reduce("halves", {}, once=True)
    running.wait()
    tell(running)
    publish(spark, servers, "halves", LINES[half:])

    few = {"maxOffsetsPerTrigger": "60"}
    publish(spark, servers, "times", LATE[:half])
    running = reduce("times", few, once=True, **TIMES)
    running.wait()
    tell(running)
    publish(spark, servers, "times", LATE[half:])
    running = reduce("times", few, once=True, **TIMES)
    running.finish()
    tell(running)

    # The end is read while most of the other partitions is not.
    publish(spark, servers, "ends", LINES, partitions=[1, 2])
    publish(spark, servers, "ends", [{"type": "end", "job": "ends"}], partitions=[0])
    with reduce("ends", few) as running:
        assert running.wait(180), "the end was told"
    tell(running)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
