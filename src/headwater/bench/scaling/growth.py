"""Growth: what a flow costs as one of its sizes grows by steps of ten, into both stores."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.bench.report import Table
from headwater.bench.scaling.flow import STORES, Shape, run
from headwater.bench.scaling.model import fitted
from headwater.bench.scaling.runs import RATES, Turns
from headwater.cli.spark import session
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from headwater.bench.harness import Progress
    from headwater.bench.scaling.flow import Kind, Ran
    from headwater.bench.scaling.model import Model

AXES = ("records", "keys", "window", "overlap", "sinks", "partitions")
STEP = 10
BASE = Shape()
_SIZES = {
    "records": ",",
    "keys": ",",
    "window": ",",
    "overlap": ",",
    "sinks": ",",
    "partitions": ",",
}
GROWTH = {
    "grows": "",
    **_SIZES,
    "store": "",
    **RATES,
    "results": ",",
    "edges": ",",
    "state rows": ",",
    "state bytes": ",",
    "store bytes": ",",
    "bytes an edge": ",.1f",
}
MODEL = {"model": "", "store": "", "of": "", "costs": ",.4f", "unit": ""}
FIT = {
    "model": "",
    "store": "",
    "measurements": ",",
    "R²": ".3f",
    "half within %": ",.1f",
    "nine of ten within %": ",.1f",
}


def tables(
    *,
    base: Shape = BASE,
    axes: Sequence[str] = AXES,
    steps: int = 4,
    limit: float = 60.0,
    pairs: int = 3,
    warm_ups: int = 1,
    folder: Path | None = None,
    progress: Progress = lambda doing, done, total: None,
) -> Iterator[Table]:
    """The measurements, then the models and how well they fit.

    The first size has warm-ups; those after it run in a process that is warm.
    """
    grown = Table(f"A flow as it grows by steps of {STEP}; medians of {pairs}", GROWTH)
    done: list[tuple[Shape, Turns]] = []
    with (
        tempfile.TemporaryDirectory(prefix="headwater-bench-", dir=folder) as name,
        session() as spark,
    ):
        measured = partial(_measured, spark, Path(name), pairs, progress, grown)
        first = measured(base, "nothing", warm_ups=warm_ups)
        done.append((base, first))
        for axis in axes:
            done += _along(measured, axis, base, first, steps, limit, grown)
    yield grown
    yield from _models(done)


def _along(
    measured: Callable[[Shape, str], Turns],
    axis: str,
    base: Shape,
    first: Turns,
    steps: int,
    limit: float,
    grown: Table,
) -> Iterator[tuple[Shape, Turns]]:
    """Step after step along an axis, as long as the next one is likely to end in time."""
    shape, before = base, _longest(first)
    for _ in range(steps):
        shape = replace(shape, **{axis: getattr(shape, axis) * STEP})
        try:
            turns = measured(shape, axis)
        except HeadwaterError as error:
            told = " ".join(str(error).split())
            grown.notes.append(f"{axis} {getattr(shape, axis):,} did not run: {told}")
            return
        yield shape, turns
        now = _longest(turns)
        if now * max(1.0, now / before) > limit:
            grown.notes.append(
                f"{axis} ends at {getattr(shape, axis):,}: one more step would take more than "
                f"{limit:,.0f} s a run"
            )
            return
        before = now


def _longest(turns: Turns) -> float:
    return max(each.seconds for told in turns.ran.values() for each in told)


def _measured(
    spark: SparkSession,
    place: Path,
    pairs: int,
    progress: Progress,
    grown: Table,
    shape: Shape,
    axis: str,
    warm_ups: int = 0,
) -> Turns:
    data = shape.data(place)
    calls: dict[str, Callable[[], Ran]] = {
        kind: partial(run, spark, shape, data, kind, place) for kind in STORES
    }
    turns = Turns({"grows": axis, **shape.labels()}, shape.read, calls)
    outcome = turns.take(pairs, warm_ups, progress)
    for kind in STORES:
        last = turns.ran[kind][-1]
        grown.rows.append(
            {
                **turns.labels,
                "store": kind,
                **turns.rates(kind, outcome),
                "results": last.results,
                "edges": last.edges,
                "state rows": last.state_rows,
                "state bytes": last.state_bytes,
                "store bytes": last.store_bytes,
                "bytes an edge": round(last.store_bytes / max(1, last.edges), 1),
                "files": last.files,
                "held": shape.pairs - last.edges,
            }
        )
    return turns


def _models(done: Sequence[tuple[Shape, Turns]]) -> Iterator[Table]:
    costs = Table("The models: what one of each costs", MODEL)
    fits = Table("How well the models fit", FIT)
    for kind in STORES:
        _add(costs, fits, "seconds of a batch", kind, _of_time(done, kind), 1e6, "µs")
        _add(costs, fits, "bytes of the store", kind, _of_bytes(done, kind), 1, "bytes")
    _add(costs, fits, "bytes of state", "both", _of_state(done), 1, "bytes")
    yield costs
    yield fits


def _add(
    costs: Table, fits: Table, name: str, store: str, model: Model, times: float, unit: str
) -> None:
    for of, cost in model.costs.items():
        costs.rows.append(
            {"model": name, "store": store, "of": of, "costs": cost * times, "unit": unit}
        )
    fits.rows.append(
        {
            "model": name,
            "store": store,
            "measurements": len(model.measured),
            "R²": round(model.explained, 4),
            "half within %": round(100 * model.typical, 1),
            "nine of ten within %": round(100 * model.worst, 1),
        }
    )


def _of_time(done: Sequence[tuple[Shape, Turns]], kind: Kind) -> Model:
    """The seconds of a batch, by what it reads, holds and writes."""
    amounts: list[Mapping[str, float]] = []
    took: list[float] = []
    for shape, turns in done:
        for records, edges, results, seconds in turns.batches(kind):
            amounts.append(
                {
                    "a batch": 1,
                    "a task of a sink": shape.tasks,
                    "a record read by a sink": records * shape.sinks,
                    "a record in a window": records * shape.sinks * shape.overlap,
                    "an edge written": edges,
                    "a result written": results,
                }
            )
            took.append(seconds)
    return fitted(amounts, took)


def _of_bytes(done: Sequence[tuple[Shape, Turns]], kind: Kind) -> Model:
    """The bytes of a store, not compacted."""
    rows = [turns.ran[kind][-1] for _, turns in done]
    amounts: list[dict[str, float]] = [
        {"a store": 1, "a file": row.files, "an edge": row.edges, "a result": row.results}
        for row in rows
    ]
    return fitted(amounts, [row.store_bytes for row in rows])


def _of_state(done: Sequence[tuple[Shape, Turns]]) -> Model:
    """The bytes of state, by open windows and the ids that these hold."""
    amounts: list[dict[str, float]] = []
    held: list[float] = []
    for shape, turns in done:
        ran = turns.ran["embedded"][-1]
        amounts.append(
            {
                "a task of a sink": shape.tasks,
                "an open window of a key": ran.state_rows,
                "an id in an open window": shape.pairs - ran.edges,
            }
        )
        held.append(ran.state_bytes)
    return fitted(amounts, held)
