"""Ariadne's *Basic* and *Nested* networks on time windows: a selection, then aggregates in a row.

A selected tuple comes once a second on average, so a window of N seconds holds N of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.bench import streams
from headwater.bench.lab import OPTIONS, Lab

if TYPE_CHECKING:
    from pathlib import Path

    from headwater import Flow

SELECTED = 25
"""Per cent of the tuples that pass the selection, unless said otherwise."""


@dataclass(frozen=True, slots=True)
class Network:
    """A selection of so many per cent, then aggregates over sliding windows of seconds."""

    size: int
    slide: int
    aggregations: int = 1
    selected: int = SELECTED

    @property
    def per_second(self) -> int:
        """Tuples a second that leave one a second when selected."""
        return 100 // self.selected

    @property
    def window(self) -> tuple[str, str]:
        """Size and slide, as Spark reads them."""
        return f"{self.size} seconds", f"{self.slide} seconds"

    def data(self, lab: Lab, records: int) -> Path:
        """The stream of so many tuples, written once."""
        folder = lab.folder / f"tuples-{records}-{self.per_second}"
        if not folder.exists():
            lab.writing(f"{records:,} tuples")
            streams.tuples(folder, records, self.per_second, lab.files)
        return folder

    def flow(self, lab: Lab, data: Path) -> Flow:
        """The network over a stream."""
        from pyspark.sql import functions as F

        import headwater as hw

        flow = hw.Flow("network", lab.spark)
        frame = flow.source(
            "tuples",
            format="parquet",
            path=data,
            schema=streams.TUPLES,
            event_time="ts",
            watermark="0 seconds",
            id="id",
            options=OPTIONS,
        ).filter(f"pick < {self.selected}")
        for number in range(self.aggregations):
            time = F.window_time("window") if number else F.col("ts")
            frame = frame.groupBy(F.window(time, *self.window)).agg(
                F.count("*").alias("n"), F.sum("value").alias("value")
            )
        flow.sink("results", frame)
        return flow
