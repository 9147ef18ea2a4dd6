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
from headwater.bench.suites.windows import SMALL
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from headwater.bench.report import Table
    from headwater.bench.suites import Suite

BATCHES = 8
AXES = {
    "basic": "sizes",
    "nested": "aggregations",
    "windows": "small",
    "slides": "slides",
    "complex": "fronts",
    "chain": "components",
}
"""By suite: the option that says at which sizes it measures."""

QUICK: dict[str, Any] = {
    "modes": ("none", "eager"),
    "records": 1_000,
    "pairs": 1,
    "batches": 1,
    "warm_ups": 0,
}
"""Options with which figures say nothing, but everything runs."""
QUICK_OF: dict[str, dict[str, Any]] = {
    "linear-road": {"records": 2_000, "formats": ["csv"], "states": ["memory"]},
    "basic": {"sizes": [10]},
    "nested": {"aggregations": [2]},
    "windows": {"small": [20], "large": [200, 500_000]},
    "slides": {"slides": [20]},
    "complex": {"fronts": [2]},
    "retrieval": {"shares": [0.1, 1.0]},
    "chain": {"components": [15]},
    "operators": {
        "keys": (10,),
        "operators": ("count_window",),
    },
}
"""The same, of each suite and of the operators."""


def sizes(suite: str, points: Sequence[int]) -> dict[str, Any]:
    """The options by which a suite measures at these sizes only.

    >>> sizes("basic", [10]), sizes("windows", [50, 1_000])
    ({'sizes': [10]}, {'small': [50], 'large': [1000]})
    """
    if suite not in AXES:
        known = ", ".join(AXES)
        raise HeadwaterError(f"suite {suite} has no sizes to choose from; those that do: {known}")
    if suite == "windows":
        # Large ones slide by a tenth.
        return {
            "small": [size for size in points if size <= max(SMALL)],
            "large": [size for size in points if size > max(SMALL)],
        }
    return {AXES[suite]: list(points)}


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
