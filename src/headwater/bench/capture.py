"""What capturing provenance costs: the stopped-vehicle flow with and without it.

A measurement is a whole run, from `Flow.start` until all input is in the store, into a new store
with a new checkpoint. Runs with and without capture alternate after a warm-up of each, because a
cold JVM is several times slower and a machine's speed drifts. Input is counted by the generator:
Spark counts rows after the filters that it pushes into a text file's reader.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headwater.errors import HeadwaterError
from headwater.examples import linear_road

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Format = Literal["parquet", "csv"]
State = Literal["memory", "rocksdb"]
Progress = Callable[[str, int, int], None]
"""Is told what runs now, how many runs are done and how many there are."""

FORMATS: tuple[Format, ...] = ("parquet", "csv")
STATES: tuple[State, ...] = ("memory", "rocksdb")
BATCHES = 8
FILES_PER_BATCH = 4

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_PACKAGE = "org.apache.spark.sql.execution.streaming.state"
_PROVIDERS: dict[State, str] = {
    "memory": f"{_PACKAGE}.HDFSBackedStateStoreProvider",
    "rocksdb": f"{_PACKAGE}.RocksDBStateStoreProvider",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One run: reports per second, and what it wrote."""

    capture: str
    seconds: float
    rate: float
    batches: int
    results: int
    edges: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """All runs over one format with one state store, in pairs."""

    format: Format
    state: State
    reports: int
    none: list[Sample] = field(default_factory=list)
    eager: list[Sample] = field(default_factory=list)

    @property
    def none_rate(self) -> float:
        """Median reports per second without capture."""
        return statistics.median(sample.rate for sample in self.none)

    @property
    def eager_rate(self) -> float:
        """Median reports per second with capture."""
        return statistics.median(sample.rate for sample in self.eager)

    @property
    def ratio(self) -> float:
        """The ratio of the medians: 1 means that capture costs nothing."""
        return self.eager_rate / self.none_rate

    @property
    def ratios(self) -> list[float]:
        """Each pair's ratio, lowest first: their spread says how far to trust the median."""
        pairs = zip(self.eager, self.none, strict=True)
        return sorted(eager.rate / none.rate for eager, none in pairs)

    def as_dict(self) -> dict[str, Any]:
        """The outcome for a JSON report."""
        last = self.eager[-1]
        return {
            "format": self.format,
            "state": self.state,
            "reports": self.reports,
            "batches": last.batches,
            "results": last.results,
            "edges": last.edges,
            "none_rates": [round(sample.rate) for sample in self.none],
            "eager_rates": [round(sample.rate) for sample in self.eager],
            "none_rate": round(self.none_rate),
            "eager_rate": round(self.eager_rate),
            "ratio": round(self.ratio, 4),
            "ratios": [round(ratio, 4) for ratio in self.ratios],
        }


def measure(
    spark: SparkSession,
    *,
    reports: int = 4_000_000,
    pairs: int = 5,
    batches: int = BATCHES,
    formats: Sequence[Format] = FORMATS,
    states: Sequence[State] = STATES,
    folder: Path | None = None,
    progress: Progress = lambda doing, done, total: None,
) -> Iterator[Outcome]:
    """Measures each format with each state store; yields an outcome as soon as it is there.

    `folder` is where streams, stores and checkpoints are put for the time being.
    """
    total = len(formats) * len(states) * 2 * (pairs + 1)
    done = 0
    with tempfile.TemporaryDirectory(prefix="headwater-bench-", dir=folder) as name:
        place = Path(name)
        for kind in formats:
            progress(f"writing {kind}", done, total)
            data = place / kind
            linear_road.generate(
                data, reports=reports, files=batches * FILES_PER_BATCH, format=kind
            )
            for state in states:
                outcome = Outcome(kind, state, reports)
                for pair in range(pairs + 1):
                    # Whichever runs second may find things warmer: take turns.
                    order = ("none", "eager") if pair % 2 else ("eager", "none")
                    for capture in order:
                        doing = "warm-up" if pair == 0 else f"{pair} of {pairs}"
                        progress(f"{kind}, {state}, {capture}: {doing}", done, total)
                        with _state_store(spark, state):
                            sample = _run(place, data, kind, capture, reports)
                        if pair:
                            getattr(outcome, capture).append(sample)
                        done += 1
                _same_results(outcome)
                yield outcome
            shutil.rmtree(data)
        progress("done", done, total)


def _run(place: Path, data: Path, format: Format, capture: str, reports: int) -> Sample:
    """One complete run of the flow into a new store."""
    batches: list[Any] = []
    with tempfile.TemporaryDirectory(prefix="run-", dir=place) as name:
        flow = linear_road.flow(
            data, format=format, options={"maxFilesPerTrigger": str(FILES_PER_BATCH)}
        )
        begin = time.perf_counter()
        run = flow.start(
            store=f"{name}/store",
            checkpoint=f"{name}/checkpoint",
            capture=capture,
            available_now=True,
            on_batch=batches.append,
        )
        run.wait()
        seconds = time.perf_counter() - begin
    return Sample(
        capture,
        seconds,
        reports / seconds,
        len(batches),
        sum(batch.results for batch in batches),
        sum(batch.edges for batch in batches),
    )


def _same_results(outcome: Outcome) -> None:
    """A rate counts only if every run did the same work."""
    counts = {sample.results for sample in (*outcome.none, *outcome.eager)}
    if len(counts) != 1:
        raise HeadwaterError(
            f"runs over {outcome.format} with {outcome.state} state differ in their number of "
            f"results ({', '.join(map(str, sorted(counts)))}): the measurement is void"
        )


@contextmanager
def _state_store(spark: SparkSession, state: State) -> Iterator[None]:
    """Chooses Spark's state store for queries started now."""
    before = spark.conf.get(_PROVIDER, None)
    spark.conf.set(_PROVIDER, _PROVIDERS[state])
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_PROVIDER)
        else:
            spark.conf.set(_PROVIDER, before)
