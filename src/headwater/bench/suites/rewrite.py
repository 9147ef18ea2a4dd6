"""Provenance by rewriting the query (Perm), the baseline of Ariadne's Figure 14.

Each aggregate is joined back to its own rewritten input, on the window that both belong to. It is
one streaming query of plain Spark: stream-stream joins in append mode, written as Parquet. A result
appears once for each path to a source tuple, so the rows multiply by the window's size with every
aggregate.
"""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pyarrow.dataset as ds

from headwater.bench import streams
from headwater.bench.harness import GENERATION, Sample, Variant
from headwater.bench.lab import OPTIONS, Lab
from headwater.errors import HeadwaterError
from headwater.spark_errors import one_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from headwater.bench.meter import Meter
    from headwater.bench.suites.network import Network

LIMIT = 120
"""Seconds after which a rewritten query is given up."""


def rewritten(spark: SparkSession, network: Network, data: Path) -> DataFrame:
    """The network's results, each beside the id of every source tuple behind it."""
    from pyspark.sql import functions as F

    source = (
        spark.readStream.format("parquet")
        .schema(streams.TUPLES)
        .options(**OPTIONS)
        .load(str(data))
        .withWatermark("ts", "0 seconds")
        .filter(f"pick < {network.selected}")
    )
    plain = source
    provenance = source.select("ts", F.col("id").alias("source_id"))
    for number in range(network.aggregations):
        time = F.window_time("window") if number else F.col("ts")
        window = F.window(time, *network.window)
        plain = plain.groupBy(window).agg(F.count("*").alias("n"), F.sum("value").alias("value"))
        inputs = provenance.select(window.alias("input_window"), "source_id")
        provenance = plain.join(inputs, plain["window"] == inputs["input_window"]).select(
            "window", "n", "value", "source_id"
        )
    return provenance


def variant(lab: Lab, network: Network, data: Path, limit: int = LIMIT) -> Variant:
    """A run of the rewritten network; refused by Spark or too slow, it raises."""

    def run(meter: Meter) -> Sample:
        with tempfile.TemporaryDirectory(prefix="rewrite-", dir=lab.folder) as name:
            target = f"{name}/rows"
            with meter.measure() as reading:
                _run(lambda: rewritten(lab.spark, network, data), name, target, limit)
            windows = ds.dataset(target, format="parquet").to_table(["window"])
        ends = windows["window"].combine_chunks().field("end")
        return Sample(
            {GENERATION: reading.usage},
            results=len(ends.unique()),
            edges=len(ends),
            answers={GENERATION: len(ends)},
        )

    return run


def _run(make: Callable[[], DataFrame], place: str, target: str, limit: int) -> None:
    try:
        query = (
            make()
            .writeStream.format("parquet")
            .outputMode("append")
            .option("checkpointLocation", f"{place}/checkpoint")
            .trigger(availableNow=True)
            .start(target)
        )
        try:
            ended = query.awaitTermination(limit)
        finally:
            query.stop()
    except Exception as error:
        raise HeadwaterError(f"the rewritten query failed: {one_line(error)}") from error
    if not ended:
        raise HeadwaterError(f"the rewritten query was given up after {limit} s")
