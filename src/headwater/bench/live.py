"""What the live graph costs, part by part; some parts need Spark, others feed the graph alone."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.bench import alternatives, graphs, memory
from headwater.bench.lab import LIVE, Lab
from headwater.bench.meter import Meter
from headwater.bench.suites import live

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from headwater.bench.harness import Progress
    from headwater.bench.report import Table

THROUGH_SPARK = ("throughput", "latency", "grid")
ALONE = ("graph", "alternatives", "memory")
PARTS = (*THROUGH_SPARK, *ALONE)
MODES = ("none", "eager", LIVE)
QUICK: dict[str, Any] = {
    "domains": ("linear_road",),
    "sizes": (10,),
    "overlaps": (50,),
    "cap": 16,
    "pairs": 1,
    "batches": 1,
    "warm_ups": 0,
}
"""Options with which figures say nothing, but everything runs."""
QUICK_OF: dict[str, dict[str, Any]] = {
    "throughput": {"records": 2_000},
    "latency": {"records": 8_000, "steps": 2},
    "grid": {"records": 1_000},
    "graph": {"overlaps": (0, 50), "edges": 10_000},
    "alternatives": {"edges": 20_000, "relaxed": 0.1},
    "memory": {"times": 0.5, "samples": 4},
}
"""The same, of each part."""


def measure(
    part: str,
    spark: SparkSession | None = None,
    *,
    domains: Sequence[str] = live.DOMAINS,
    records: int | None = None,
    sizes: Sequence[int] = graphs.SIZES,
    overlaps: Sequence[int] = graphs.OVERLAPS,
    edges: int | None = None,
    cap: int = memory.CAP,
    times: float = memory.TIMES,
    samples: int = memory.SAMPLES,
    relaxed: float = alternatives.RELAXED,
    steps: int = live.STEPS,
    pairs: int = 5,
    batches: int = 8,
    folder: Path | None = None,
    progress: Progress = lambda doing, done, total: None,
    warm_ups: int = 1,
) -> Iterator[Table]:
    """Measures one part; those in `THROUGH_SPARK` need a session."""
    runs: dict[str, Any] = {"pairs": pairs, "warm_ups": warm_ups}
    at: dict[str, Any] = {"folder": folder, "progress": progress}
    match part:
        case "graph":
            yield from graphs.tables(
                sizes=sizes, overlaps=overlaps, edges=edges or graphs.EDGES, **runs, **at
            )
        case "alternatives":
            yield from alternatives.tables(
                sizes=sizes, edges=edges or alternatives.EDGES, relaxed=relaxed, **runs, **at
            )
        case "memory":
            yield from memory.tables(cap=cap, times=times, samples=samples, **at)
        case _:
            assert spark is not None, f"{part} runs through Spark"
            with tempfile.TemporaryDirectory(prefix="headwater-bench-", dir=folder) as name:
                lab = Lab(
                    spark,
                    Path(name),
                    Meter(spark),
                    modes=MODES,
                    records=records,
                    batches=batches,
                    progress=progress,
                    **runs,
                )
                if part == "throughput":
                    yield from live.throughput(lab, domains)
                elif part == "latency":
                    yield from live.latency(lab, domains, steps)
                else:
                    yield from live.grid(lab, sizes, overlaps)
