"""The flow that is grown: windows over keys, by how many records, keys, windows and sinks."""

from __future__ import annotations

import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from headwater.bench import streams
from headwater.bench.lab import state_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from headwater import Flow

Kind: TypeAlias = Literal["embedded", "lake"]

STORES: tuple[Kind, ...] = ("embedded", "lake")
BATCHES = 4
PER_SECOND = 1_000
"""Records of a second of event time."""
WINDOWS = 4
"""A stream lasts at least so many windows, so that most of them close."""
_PARTITIONS = "spark.sql.shuffle.partitions"


@dataclass(frozen=True, slots=True)
class Shape:
    """One size of the flow. A window is counted in records of all keys."""

    records: int = 100_000
    keys: int = 10
    window: int = 1_000
    overlap: int = 1
    sinks: int = 1
    partitions: int = 2
    batches: int = BATCHES

    @property
    def read(self) -> int:
        """Records of the stream.

        >>> Shape(records=1_000, window=10_000).read
        40000
        """
        return max(self.records, WINDOWS * self.window)

    @property
    def pairs(self) -> int:
        """Pairs of a window and a record in it, of all sinks: edges, once all windows are closed.

        >>> Shape(records=10_000, overlap=10, sinks=2).pairs
        200000
        """
        return self.read * self.overlap * self.sinks

    @property
    def tasks(self) -> int:
        """Tasks with state of their own in a batch."""
        return self.partitions * self.sinks

    def labels(self) -> dict[str, int]:
        """The sizes by name."""
        return {
            "records": self.read,
            "keys": self.keys,
            "window": self.window,
            "overlap": self.overlap,
            "sinks": self.sinks,
            "partitions": self.partitions,
        }

    def data(self, folder: Path) -> Path:
        """The stream, written once for all runs that have the same."""
        place = folder / f"stream-{self.read}-{self.keys}"
        if not place.exists():
            streams.keyed(place, self.read, self.keys, self.batches, per_second=PER_SECOND)
        return place

    def flow(self, spark: SparkSession, data: Path) -> Flow:
        """Counts and sums by key and window, once for each sink."""
        from pyspark.sql import functions as F

        import headwater as hw

        flow = hw.Flow("growth", spark)
        events = flow.source(
            "events",
            format="parquet",
            path=data,
            schema=streams.KEYED,
            event_time="ts",
            watermark="0 seconds",
            options={"maxFilesPerTrigger": "1"},
        )
        size = self.window * 1_000_000 // PER_SECOND
        time = F.window("ts", f"{size} microseconds", f"{size // self.overlap} microseconds")
        for number in range(self.sinks):
            # Each sink has a state of its own: a condition that holds for all records tells them
            # apart, so that no step is shared.
            seen = events.filter(f"v >= {-number}")
            made = seen.groupBy("k", time).agg(F.count("*").alias("n"), F.sum("v").alias("v"))
            flow.sink(f"windows_{number}", made)
        return flow


@dataclass(frozen=True, slots=True)
class Batch:
    """What one batch did, and the seconds that it took."""

    records: int
    edges: int
    results: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Ran:
    """A whole run: what it did, what it took, and what it left."""

    seconds: float
    results: int
    edges: int
    batches: tuple[Batch, ...]
    state_rows: int
    state_bytes: int
    """Of the state after the last batch."""
    store_bytes: int
    files: int


def address(kind: Kind, place: Path) -> str:
    """Where a run of a kind puts its store."""
    return f"delta:{place}/store" if kind == "lake" else str(place / "store")


def run(spark: SparkSession, shape: Shape, data: Path, kind: Kind, folder: Path) -> Ran:
    """Run the flow once, into a new store."""
    told: list[Any] = []
    with (
        tempfile.TemporaryDirectory(prefix="run-", dir=folder) as name,
        state_store(spark, "memory"),
        _partitions(spark, shape.partitions),
    ):
        place = Path(name)
        flow = shape.flow(spark, data)
        began = time.perf_counter()
        running = flow.start(
            store=address(kind, place),
            checkpoint=place / "checkpoint",
            capture="eager",
            available_now=True,
            on_batch=told.append,
        )
        running.wait()
        seconds = time.perf_counter() - began
        assert running.query is not None
        progress = [dict(each) for each in running.query.recentProgress]
        stored = [file for file in (place / "store").rglob("*") if file.is_file()]
        size = sum(file.stat().st_size for file in stored)
    state = progress[-1]["stateOperators"]
    return Ran(
        seconds,
        sum(batch.results for batch in told),
        sum(batch.edges for batch in told),
        tuple(_batches(shape, told, progress)),
        sum(int(each["numRowsTotal"]) for each in state),
        sum(int(each["customMetrics"]["stateOnCurrentVersionSizeBytes"]) for each in state),
        size,
        len(stored),
    )


def _batches(shape: Shape, told: list[Any], progress: list[dict[str, Any]]) -> Iterator[Batch]:
    took = {int(each["batchId"]): each["durationMs"] for each in progress}
    for batch in told:
        if "triggerExecution" in took.get(batch.batch, {}):
            # The files are alike; batches after the last file only close windows.
            records = shape.read // shape.batches if batch.batch < shape.batches else 0
            seconds = took[batch.batch]["triggerExecution"] / 1e3
            yield Batch(records, batch.edges, batch.results, seconds)


@contextmanager
def _partitions(spark: SparkSession, number: int) -> Iterator[None]:
    before = spark.conf.get(_PARTITIONS)
    spark.conf.set(_PARTITIONS, str(number))
    try:
        yield
    finally:
        spark.conf.set(_PARTITIONS, str(before))
