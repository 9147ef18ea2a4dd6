"""The same flow with one core and two, and on one worker and two.

A master is chosen once in a process, so each variant has a process of its own that stays and is
warm; they take turns, and wait while another one works.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.bench.cluster import cluster
from headwater.bench.report import Table
from headwater.bench.scaling.flow import STORES, Shape
from headwater.bench.scaling.runs import RATES, Turns
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from multiprocessing.connection import Connection

    from headwater.bench.harness import Outcome, Progress
    from headwater.bench.scaling.flow import Kind, Ran

SHAPE = Shape(records=100_000, keys=1_000, overlap=10)
NUMBERS = (1, 2)
COLUMNS = {
    "store": "",
    "with": "",
    **RATES,
    "speed-up": ".2f",
    "95 %": ".2f",
    "edges": ",",
}


def cores(
    *,
    shape: Shape = SHAPE,
    pairs: int = 3,
    warm_ups: int = 1,
    folder: Path | None = None,
    progress: Progress = lambda doing, done, total: None,
) -> Iterator[Table]:
    """One table: by cores that all processes of a run are bound to."""
    own = len(os.sched_getaffinity(0))
    if own < max(NUMBERS):
        raise HeadwaterError(f"this process may use {own} cores, and {max(NUMBERS)} are needed")
    with ExitStack() as stack:
        place = _place(stack, folder)
        calls = {
            _named(number, "core"): stack.enter_context(_process(f"local[{number}]", number))
            for number in NUMBERS
        }
        title = f"One core and two: {shape.read:,} records; medians of {pairs}"
        table = Table(title, COLUMNS)
        table.notes.append(
            "a run is bound to its cores with its JVM, its workers and DuckDB's threads"
        )
        _compared(table, calls, shape, place, pairs, warm_ups, progress)
    yield table


def workers(
    *,
    shape: Shape = SHAPE,
    pairs: int = 3,
    warm_ups: int = 1,
    folder: Path | None = None,
    progress: Progress = lambda doing, done, total: None,
) -> Iterator[Table]:
    """One table: by workers of a standalone cluster on this machine, a core each."""
    with ExitStack() as stack:
        place = _place(stack, folder)
        calls = {}
        for number in NUMBERS:
            progress(f"starting {_named(number, 'worker')}", 0, 0)
            made = stack.enter_context(cluster(place / f"cluster-{number}", number))
            calls[_named(number, "worker")] = stack.enter_context(_process(made.address, None))
        title = f"One worker and two: {shape.read:,} records; medians of {pairs}"
        table = Table(title, COLUMNS)
        table.notes.append(
            f"workers have a core each; the driver and the master share the machine's "
            f"{os.cpu_count()} cores with them"
        )
        _compared(table, calls, shape, place, pairs, warm_ups, progress)
    yield table


def _named(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _place(stack: ExitStack, folder: Path | None) -> Path:
    made = tempfile.TemporaryDirectory(prefix="headwater-bench-", dir=folder)
    return Path(stack.enter_context(made))


def _compared(
    table: Table,
    calls: Mapping[str, Callable[..., Ran]],
    shape: Shape,
    place: Path,
    pairs: int,
    warm_ups: int,
    progress: Progress,
) -> None:
    data = shape.data(place)
    for kind in STORES:
        given = {
            name: partial(call, shape=shape, data=data, kind=kind, folder=place)
            for name, call in calls.items()
        }
        turns = Turns({"store": kind}, shape.read, given)
        outcome = turns.take(pairs, warm_ups, progress)
        for name in calls:
            table.rows.append(
                {
                    "store": kind,
                    "with": name,
                    **turns.rates(name, outcome),
                    **_speed_up(outcome, name),
                    "edges": turns.ran[name][-1].edges,
                }
            )


def _speed_up(outcome: Outcome, name: str) -> dict[str, Any]:
    if name == outcome.case.baseline:
        return {}
    known = outcome.interval(name)
    return {
        "speed-up": round(outcome.ratio(name), 3),
        "95 %": None if known is None else [round(known.low, 3), round(known.high, 3)],
    }


@contextmanager
def _process(master: str, cores: int | None) -> Iterator[Callable[..., Ran]]:
    """A process with a session of its own; what it gives runs the flow there."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there, master, cores))
    process.start()
    there.close()

    def call(**given: Any) -> Ran:
        try:
            here.send(given)
            told = here.recv()
        except (EOFError, OSError):
            process.join()
            raise HeadwaterError(f"a run on {master} ended with {process.exitcode}") from None
        if isinstance(told, str):
            raise HeadwaterError(told)
        ran: Ran = told
        return ran

    try:
        yield call
    finally:
        # It ends when nobody can ask it any more.
        here.close()
        process.join(30)
        if process.is_alive():
            process.terminate()
            process.join()


def _serve(asked: Connection, master: str, cores: int | None) -> None:
    """Run the flow whenever asked, until nobody asks any more."""
    from headwater.bench.scaling.flow import run
    from headwater.cli.spark import session

    if cores is not None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    os.environ["SPARK_MASTER"] = master
    with session() as spark:
        while True:
            try:
                shape, data, kind, folder = _given(asked.recv())
            except EOFError:
                return
            try:
                asked.send(run(spark, shape, data, kind, folder))
            except HeadwaterError as error:
                asked.send(str(error))


def _given(message: dict[str, Any]) -> tuple[Shape, Path, Kind, Path]:
    return message["shape"], message["data"], message["kind"], message["folder"]
