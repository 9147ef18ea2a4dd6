"""What capturing provenance costs: suites of flows, each run with and without it.

A measurement is a whole run, from `Flow.start` until all input is in the store, into a new store
with a new checkpoint. Input is counted by the generators: Spark counts rows after the filters that
it pushes into a text file's reader.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.bench.harness import MODES, Progress
from headwater.bench.lab import Lab
from headwater.bench.meter import Meter
from headwater.bench.suites import SUITES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from headwater.bench.report import Table
    from headwater.bench.suites import Suite

BATCHES = 8


def measure(
    spark: SparkSession,
    suite: str | Suite,
    *,
    modes: Sequence[str] = MODES,
    records: int | None = None,
    pairs: int = 5,
    batches: int = BATCHES,
    folder: Path | None = None,
    progress: Progress = lambda doing, done, total: None,
    warm_ups: int = 1,
    **options: Any,
) -> Iterator[Table]:
    """Measures one suite, by name or itself; `options` are its own, such as sizes of windows.

    `folder` is where streams, stores and checkpoints are put for the time being.
    """
    with tempfile.TemporaryDirectory(prefix="headwater-bench-", dir=folder) as name:
        lab = Lab(
            spark,
            Path(name),
            Meter(spark),
            modes=modes,
            pairs=pairs,
            records=records,
            batches=batches,
            progress=progress,
            warm_ups=warm_ups,
        )
        tables = SUITES[suite] if isinstance(suite, str) else suite
        yield from tables(lab, **options)
