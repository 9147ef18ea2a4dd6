"""Whole reductions through Spark, each in a process of its own: how fast, and in how much memory.

A run may use so many cores and no more: its process is bound to them before Spark starts, and so
are the JVM, Spark's workers and DuckDB's threads. A small job warms it up.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.bench import reduce_stages
from headwater.bench.harness import GENERATION, Case, Outcome, Sample, compare
from headwater.bench.meter import Meter, Usage
from headwater.bench.paired import rounded
from headwater.bench.processes import ALL, Peaks, total_cpu
from headwater.bench.report import MIB, Row, Table
from headwater.errors import HeadwaterError
from headwater.examples.hashtags import provenance
from headwater.store.database import MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.connection import Connection

    from headwater.bench.harness import Progress, Variant
    from headwater.examples.hashtag_provenance import Made

CORES = (1, 2)
GOAL, STRETCH = 15, 40
"""MB a second for each core."""

WARM_UP = 100_000
"""Edges of the job before the one that counts."""

FILES = 16
SAMPLES = 12
HELD = "256MiB"
"""What the store may hold in memory where memory is measured."""
_JOB = "hashtags"

THROUGHPUT = {
    "cores": ",",
    "MB/s": ",.1f",
    "MB/s per core": ",.1f",
    "edges/s per core": ",.0f",
    "MB/CPU s": ",.1f",
    "speed-up": ".2f",
    "95 %": ".2f",
    "goal": "",
    "seconds": ",.1f",
    "of that finishing": ",.1f",
    "CPU s": ",.1f",
    "driver MiB": ",.0f",
    "JVM MiB": ",.0f",
    "workers MiB": ",.0f",
    "peak MiB": ",.0f",
}
PEAKS = {
    "edges so far": ",",
    "seconds": ",.1f",
    "driver MiB": ",.0f",
    "JVM MiB": ",.0f",
    "workers MiB": ",.0f",
    "peak MiB": ",.0f",
    "disk MiB": ",.0f",
}


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run in its own process tells."""

    usage: Usage
    finishing: Usage
    dependencies: int
    batches: list[Row]
    peaks: dict[str, int]


def throughput(
    edges: int,
    pairs: int,
    cores: Sequence[int],
    folder: Path | None,
    progress: Progress,
) -> Table:
    """MB and edges a second end to end by the number of cores, and parsing alone beside it."""
    own = len(os.sched_getaffinity(0))
    if not cores or min(cores) < 1 or max(cores) > own:
        raise HeadwaterError(f"cores={','.join(map(str, cores))}: this process may use {own}")
    with tempfile.TemporaryDirectory(prefix="headwater-bench-", dir=folder) as name:
        place = Path(name)
        progress("writing the provenance", 0, 0)
        made = _written(place, edges)
        runs: dict[str, list[Ran]] = {f"local[{n}]": [] for n in cores}
        variants = {f"local[{n}]": _variant(place, n, made, runs) for n in cores}
        case = Case({"job": _JOB}, made.edges, variants, baseline=f"local[{cores[0]}]")
        [outcome] = compare([case], pairs, Meter(), progress, warm_ups=0)
        title = (
            f"Reducing {made.edges:,} edges, {made.bytes / 1e6:,.0f} MB of JSON, end to end; "
            f"median of {pairs}"
        )
        table = Table(title, THROUGHPUT)
        table.rows.extend(_row(outcome, runs, n, cores[0], made) for n in cores)
        parsing = reduce_stages.parsing_rate(made.files)
    table.notes.append(f"parsing alone: {parsing:,.1f} MB for each second of CPU")
    table.notes.append(f"{made.dependencies:,} dependencies, as many as the generator counts")
    table.notes.append(
        "a run is bound to its cores with all its processes; MiB are the highest sums of what they "
        "hold, pages that several share counted once"
    )
    return table


def _row(
    outcome: Outcome, runs: dict[str, list[Ran]], cores: int, first: int, made: Made
) -> dict[str, Any]:
    variant = f"local[{cores}]"
    usage = outcome.usage(variant)
    rate = made.bytes / 1e6 / usage.seconds
    row: dict[str, Any] = {
        "cores": cores,
        "MB/s": round(rate, 2),
        "MB/s per core": round(rate / cores, 2),
        "edges/s per core": round(made.edges / usage.seconds / cores),
        "MB/CPU s": round(made.bytes / 1e6 / usage.cpu, 2),
        "speed-up": None if cores == first else round(outcome.ratio(variant), 2),
        "95 %": None if cores == first else rounded(outcome.interval(variant)),
        "goal": reached(rate / cores),
        "seconds": round(usage.seconds, 2),
        "of that finishing": round(outcome.usage(variant, "finish").seconds, 2),
        "CPU s": round(usage.cpu, 1),
        "rates": [
            round(made.bytes / 1e6 / sample.seconds, 2) for sample in outcome.samples[variant]
        ],
    }
    for who in ("driver", "JVM", "workers"):
        row[f"{who} MiB"] = round(max(ran.peaks.get(who, 0) for ran in runs[variant]) / MIB, 1)
    return row | {"peak MiB": round(usage.memory / MIB, 1)}


def reached(rate: float) -> str:
    """Whether so many MB a second for each core are enough.

    >>> reached(14.2), reached(20.0), reached(41.0)
    ('missed: < 15', 'met: ≥ 15', 'met: ≥ 40')
    """
    if rate < GOAL:
        return f"missed: < {GOAL}"
    return f"met: ≥ {STRETCH if rate >= STRETCH else GOAL}"


def memory(edges: int, cores: int, folder: Path | None, progress: Progress) -> Table:
    """What the processes of a run hold while it goes on, from batch to batch.

    The store may hold `HELD`: otherwise it keeps pages that it may need again, as far as it may.
    """
    with tempfile.TemporaryDirectory(prefix="headwater-bench-", dir=folder) as name:
        place = Path(name)
        progress("writing the provenance", 0, 1)
        made = _written(place, edges)
        progress(f"reducing with {cores} cores", 0, 1)
        each = max(1, made.bytes // SAMPLES)
        ran = _in_process(place, cores, {"maxBytesPerTrigger": str(each)}, held=HELD)
        _require_all(ran, made)
        progress("done", 1, 1)
    title = f"Memory of a reduction of {made.edges:,} edges, {made.bytes / 1e6:,.0f} MB of JSON"
    peak = {f"{who} MiB": round(size / MIB, 1) for who, size in ran.peaks.items()}
    note = f"at most {ran.peaks[ALL] / MIB:,.0f} MiB, its completion included; {MEMORY}={HELD}"
    last = {"edges so far": made.edges, "seconds": round(ran.usage.seconds, 1), **peak}
    last["peak MiB"] = last.pop(f"{ALL} MiB")
    return Table(title, PEAKS, [*ran.batches, last], [note, "the last row is of the whole run"])


def _written(place: Path, edges: int) -> Made:
    provenance(place / "warm-up", min(edges, WARM_UP), files=2)
    return provenance(place / "told", edges, files=FILES)


def _variant(place: Path, cores: int, made: Made, runs: dict[str, list[Ran]]) -> Variant:
    def run(_: Meter) -> Sample:
        ran = _in_process(place, cores, {})
        _require_all(ran, made)
        runs[f"local[{cores}]"].append(ran)
        return Sample({GENERATION: ran.usage, "finish": ran.finishing}, results=ran.dependencies)

    return run


def _require_all(ran: Ran, made: Made) -> None:
    if ran.dependencies != made.dependencies:
        raise HeadwaterError(
            f"{ran.dependencies:,} dependencies were found where {made.dependencies:,} are; the "
            "measurement is void"
        )


def _in_process(place: Path, cores: int, options: dict[str, str], held: str | None = None) -> Ran:
    """A run in a new process, whose memory is looked at from here: that costs the run nothing."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(there, place, cores, options, held))
    process.start()
    there.close()
    rows: list[Row] = []
    try:
        pids = _told(here.recv(), list)
        with Peaks(pids) as peaks:
            while isinstance(told := here.recv(), dict):
                now = {f"{who} MiB": round(size / MIB, 1) for who, size in peaks.since().items()}
                now["peak MiB"] = now.pop(f"{ALL} MiB")
                rows.append({**told, **now})
        process.join()
    except EOFError:
        process.join()
        raise HeadwaterError(f"a run with {cores} cores ended with {process.exitcode}") from None
    finally:
        here.close()
        if process.is_alive():
            process.terminate()
            process.join()
    usage, finishing, dependencies = _told(told, tuple)
    usage = Usage(usage.seconds, usage.cpu, peaks.highest[ALL])
    return Ran(usage, finishing, dependencies, rows, dict(peaks.highest))


def _told(message: Any, kind: type) -> Any:
    """What a run told; a text is its error."""
    if isinstance(message, str):
        raise HeadwaterError(message)
    assert isinstance(message, kind)
    return message


def _run(
    to: Connection, place: Path, cores: int, options: dict[str, str], held: str | None
) -> None:
    from headwater.cli.spark import session

    if held is not None:
        os.environ[MEMORY] = held
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    os.environ["SPARK_MASTER"] = f"local[{cores}]"
    try:
        with (
            tempfile.TemporaryDirectory(prefix="run-", dir=place) as folder,
            session(light=True) as spark,
        ):
            _reduced(place / "warm-up", Path(folder) / "warm-up", {}, lambda _: None)
            pids = Meter(spark).pids
            to.send(pids)
            to.send(_reduced(place / "told", Path(folder) / "store", options, to.send))
    except HeadwaterError as error:
        to.send(str(error))


def _reduced(
    told: Path, store: Path, options: dict[str, str], tell: Callable[[Row], None]
) -> tuple[Usage, Usage, int]:
    """What a job costs, and its completion alone; and its dependencies."""
    import headwater as hw

    cpu, begin, edges = total_cpu(os.getpid()), time.perf_counter(), 0

    def on_batch(batch: Any) -> None:
        nonlocal edges
        edges += batch.elements
        seconds = round(time.perf_counter() - begin, 2)
        size = sum(file.stat().st_size for file in store.iterdir() if file.is_file())
        tell({"edges so far": edges, "seconds": seconds, "disk MiB": round(size / MIB, 1)})

    running = hw.reduce_job(
        told, store=store, job=_JOB, once=True, options=options, on_batch=on_batch
    )
    running.wait()
    cpu_then, then = total_cpu(os.getpid()), time.perf_counter()
    running.finish()
    cpu_now, now = total_cpu(os.getpid()), time.perf_counter()
    finished = running.counts.finished
    assert finished is not None
    return (
        Usage(now - begin, cpu_now - cpu, 0),
        Usage(now - then, cpu_now - cpu_then, 0),
        finished.dependencies,
    )
