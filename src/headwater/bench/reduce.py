"""What reducing foreign provenance costs, part by part; the first two run through Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.bench import disorder, entities, reduce_runs, reduce_stages

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from headwater.bench.harness import Progress
    from headwater.bench.report import Table

PARTS = ("throughput", "memory", "ceiling", "partitions", "disorder", "entities")

EDGES = {
    "throughput": 5_000_000,
    "memory": 5_000_000,
    "ceiling": 1_000_000,
    "partitions": 1_000_000,
    "disorder": disorder.EDGES,
    "entities": 10_000_000,
}
"""Edges of each part; of `entities`, dependencies."""

QUICK: dict[str, dict[str, Any]] = {
    "throughput": {"edges": 2_000, "pairs": 1, "cores": (1,)},
    "memory": {"edges": 2_000, "cores": (1,)},
    "ceiling": {"edges": 5_000, "pairs": 1},
    "partitions": {"edges": 30_000, "batches": (1_000, 30_000)},
    "disorder": {"edges": 1_000, "levels": (0, 50)},
    "entities": {"edges": 4_000, "lookups": 5},
}
"""Options of each part with which figures say nothing, but everything runs."""


def measure(
    part: str,
    *,
    edges: int | None = None,
    pairs: int = 3,
    cores: Sequence[int] = reduce_runs.CORES,
    batches: Sequence[int] = reduce_stages.BATCHES,
    lookups: int = entities.LOOKUPS,
    levels: Sequence[int] = disorder.LEVELS,
    folder: Path | None = None,
    progress: Progress = lambda doing, done, total: None,
) -> Iterator[Table]:
    """Measures one part."""
    number = edges or EDGES[part]
    match part:
        case "throughput":
            yield reduce_runs.throughput(number, pairs, cores, folder, progress)
        case "memory":
            yield reduce_runs.memory(number, max(cores), folder, progress)
        case "ceiling":
            yield reduce_stages.stages(number, pairs, folder, progress)
        case "partitions":
            yield from reduce_stages.partitionings(
                number, batches=batches, folder=folder, progress=progress
            )
        case "disorder":
            yield disorder.measure(edges=number, levels=levels, progress=progress)
        case "entities":
            yield entities.measure(number, lookups=lookups, folder=folder, progress=progress)
        case _:
            raise ValueError(f"there is no part {part!r}")
