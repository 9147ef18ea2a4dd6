"""The store in a file against the lake: the same flow by its edges, and who is faster where."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.bench.report import Table
from headwater.bench.scaling.flow import STORES, Shape, run
from headwater.bench.scaling.model import fitted
from headwater.bench.scaling.runs import RATES, Turns, ratio
from headwater.cli.spark import session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from headwater.bench.harness import Progress
    from headwater.bench.scaling.flow import Ran
    from headwater.bench.scaling.model import Model

RECORDS = (1_000, 10_000, 100_000, 1_000_000)
BASE = Shape(overlap=10)
COLUMNS = {
    "records": ",",
    "edges": ",",
    "store": "",
    **RATES,
    "ratio": ".3f",
    "95 %": ".3f",
    "bytes an edge": ",.1f",
}


def tables(
    *,
    records: Sequence[int] = RECORDS,
    base: Shape = BASE,
    pairs: int = 3,
    warm_ups: int = 1,
    folder: Path | None = None,
    progress: Progress = lambda doing, done, total: None,
) -> Iterator[Table]:
    """One table: both stores by the size of the stream."""
    title = f"The same flow into a file and into a lake; medians of {pairs}"
    table = Table(title, COLUMNS)
    points: dict[str, list[tuple[int, float]]] = {kind: [] for kind in STORES}
    with (
        tempfile.TemporaryDirectory(prefix="headwater-bench-", dir=folder) as name,
        session() as spark,
    ):
        place = Path(name)
        for many in records:
            shape = replace(base, records=many, window=min(base.window, many // 10))
            data = shape.data(place)
            calls: dict[str, Callable[[], Ran]] = {
                kind: partial(run, spark, shape, data, kind, place) for kind in STORES
            }
            turns = Turns({"records": shape.read}, shape.read, calls)
            outcome = turns.take(pairs, warm_ups, progress)
            for kind in STORES:
                last = turns.ran[kind][-1]
                points[kind] += [(edges, took) for _, edges, _, took in turns.batches(kind)]
                table.rows.append(
                    {
                        "records": shape.read,
                        "edges": last.edges,
                        "store": kind,
                        **turns.rates(kind, outcome),
                        **ratio(outcome, kind),
                        "bytes an edge": round(last.store_bytes / max(1, last.edges), 1),
                    }
                )
    table.notes.append(crossover(*(_line(points[kind]) for kind in STORES)))
    yield table


def _line(points: Sequence[tuple[int, float]]) -> Model:
    """The seconds of a batch by its edges alone."""
    amounts = [{"batch": 1, "edge": edges} for edges, _ in points]
    return fitted(amounts, [seconds for _, seconds in points])


def crossover(file: Model, lake: Model) -> str:
    """Where a batch into the lake takes as long as one into a file."""
    costs = [(1e3 * each.costs["batch"], 1e6 * each.costs["edge"]) for each in (file, lake)]
    said = " and ".join(f"{batch:,.0f} ms + {edge:.2f} µs an edge" for batch, edge in costs)
    (fixed, slope), (lakes_fixed, lakes_slope) = costs
    if lakes_slope >= slope:
        return f"a batch takes {said}: on this machine the lake is never faster"
    if lakes_fixed <= fixed:
        return f"a batch takes {said}: on this machine the lake is always faster"
    edges = (lakes_fixed - fixed) * 1e3 / (slope - lakes_slope)
    return f"a batch takes {said}: the lake is faster from {edges:,.0f} edges a batch on"
