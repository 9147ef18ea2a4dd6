"""Where suites run: the session, a folder, the modes to compare; and a flow's run in each mode."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from headwater.bench import harness
from headwater.bench.harness import BASELINE, GENERATION, MODES, Progress, Sample, Variant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from headwater import Flow
    from headwater.bench.meter import Meter, Usage

State: TypeAlias = Literal["memory", "rocksdb"]

STATES: tuple[State, ...] = ("memory", "rocksdb")
LIVE = "live"
"""Beside the modes of capture: eager, with the live graph."""

FILES_PER_BATCH = 4
OPTIONS = {"maxFilesPerTrigger": str(FILES_PER_BATCH)}

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_PACKAGE = "org.apache.spark.sql.execution.streaming.state"
_PROVIDERS: dict[State, str] = {
    "memory": f"{_PACKAGE}.HDFSBackedStateStoreProvider",
    "rocksdb": f"{_PACKAGE}.RocksDBStateStoreProvider",
}


@dataclass(frozen=True, slots=True)
class Lab:
    """What every suite needs. Without `records`, each suite takes its own number."""

    spark: SparkSession
    folder: Path
    meter: Meter
    modes: Sequence[str] = MODES
    pairs: int = 5
    records: int | None = None
    batches: int = 8
    progress: Progress = lambda doing, done, total: None
    warm_ups: int = 1

    @property
    def files(self) -> int:
        """Files of a stream."""
        return self.batches * FILES_PER_BATCH

    def compare(self, cases: Iterable[harness.Case]) -> Iterator[harness.Outcome]:
        """Measures case after case."""
        return harness.compare(cases, self.pairs, self.meter, self.progress, self.warm_ups)

    def writing(self, what: str) -> None:
        """Says that a stream is being written."""
        self.progress(f"writing {what}", 0, 0)

    def captured(
        self,
        make: Callable[[], Flow],
        *,
        state: State = "memory",
        shares: Mapping[str, float] | None = None,
    ) -> dict[str, Variant]:
        """A flow's runs by mode; `shares` of the results are then asked for their provenance."""
        modes = [BASELINE, *(mode for mode in self.modes if mode != BASELINE)]
        return {mode: self._variant(make, mode, state, shares or {}) for mode in modes}

    def _variant(
        self, make: Callable[[], Flow], mode: str, state: State, shares: Mapping[str, float]
    ) -> Variant:
        def run(meter: Meter) -> Sample:
            with (
                tempfile.TemporaryDirectory(prefix="run-", dir=self.folder) as name,
                state_store(self.spark, state),
            ):
                return run_flow(meter, make(), mode, Path(name), shares)

        return run


def run_flow(
    meter: Meter, flow: Flow, mode: str, place: Path, shares: Mapping[str, float]
) -> Sample:
    """One complete run of a flow into a new store, then the questions."""
    batches: list[Any] = []
    with meter.measure() as reading:
        flow.start(
            store=place / "store",
            checkpoint=place / "checkpoint",
            **started_with(mode),
            available_now=True,
            on_batch=batches.append,
        ).wait()
    parts = {GENERATION: reading.usage}
    answers: dict[str, int] = {}
    if mode != BASELINE:
        for part, share in shares.items():
            (sink,) = flow.sinks
            parts[part], answers[part] = ask(meter, place / "store", sink, share)
    return Sample(
        parts,
        results=sum(batch.results for batch in batches),
        edges=sum(batch.edges for batch in batches),
        batches=len(batches),
        answers=answers,
    )


def started_with(mode: str) -> dict[str, Any]:
    """How a flow is started in a mode.

    >>> started_with("eager"), started_with("live")
    ({'capture': 'eager'}, {'capture': 'eager', 'live': True})
    """
    return {"capture": "eager", "live": True} if mode == LIVE else {"capture": mode}


def ask(meter: Meter, store: Path, sink: str, share: float) -> tuple[Usage, int]:
    """Asks one store for the ids behind a share of a sink's results, at least of one."""
    import headwater as hw

    with hw.open(store) as opened:
        ids = np.sort(opened.results(sink)["result_id"].to_numpy())  # delivered in any order
        number = min(len(ids), max(1, round(share * len(ids))))
        chosen = np.random.default_rng(7).choice(ids, number, replace=False)
        with meter.measure() as reading:
            rows = opened.backward(sink, chosen.tolist(), columns=False).num_rows
    return reading.usage, rows


@contextmanager
def uncompiled(spark: SparkSession) -> Iterator[None]:
    """Lets Spark interpret its plans: for a few rows, compiling them takes far longer."""
    settings = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, was in before.items():
            if was is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, was)


@contextmanager
def state_store(spark: SparkSession, state: State) -> Iterator[None]:
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
