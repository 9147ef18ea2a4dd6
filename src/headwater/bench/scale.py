"""How cost grows with work: the parts of `headwater bench scale`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headwater.bench.scaling import growth, lake, machines, stores
from headwater.bench.scaling.flow import Shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from headwater.bench.harness import Progress
    from headwater.bench.report import Table

PARTS = ("growth", "stores", "cores", "workers", "lake")
EDGES = (1_000_000, 10_000_000)
QUICK = Shape(records=2_000, keys=2, window=200, batches=2)
"""A size at which figures say nothing, but everything runs."""


def measure(
    part: str,
    *,
    edges: Sequence[int] = (),
    lookups: int = 100,
    pairs: int = 3,
    steps: int = 4,
    limit: float = 60.0,
    records: Sequence[int] = (),
    axes: Sequence[str] = growth.AXES,
    quick: bool = False,
    folder: Path | None = None,
    progress: Progress = lambda doing, done, total: None,
) -> Iterator[Table]:
    """Measures one part."""
    common: dict[str, Any] = {
        "pairs": pairs,
        "warm_ups": 0 if quick else 1,
        "folder": folder,
        "progress": progress,
    }
    if part == "lake":
        sizes = edges or ((2_000, 8_000) if quick else EDGES)
        yield from lake.tables(
            edges=sizes,
            lookups=2 if quick else lookups,
            files_of_tables=(10,) if quick else lake.FILES,
            folder=folder,
            progress=progress,
        )
    elif part == "growth":
        if quick:
            common |= {"base": QUICK, "axes": ("overlap",)}
            steps, limit = 2, 0.0
        elif records:
            common["base"] = replace(growth.BASE, records=records[0])
        yield from growth.tables(steps=steps, limit=limit, **({"axes": axes} | common))
    elif part == "stores":
        sizes = records or ((1_000,) if quick else stores.RECORDS)
        base = replace(stores.BASE, batches=QUICK.batches) if quick else stores.BASE
        yield from stores.tables(records=sizes, base=base, **common)
    elif part in ("cores", "workers"):
        measured = machines.cores if part == "cores" else machines.workers
        shape = QUICK if quick else machines.SHAPE
        if records:
            shape = replace(shape, records=records[0])
        yield from measured(shape=shape, **common)
    else:
        raise ValueError(f"there is no part {part!r}")
