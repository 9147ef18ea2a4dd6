"""`headwater reduce`: reduce the provenance that a job publishes."""

from __future__ import annotations

import json as encoder
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.output import console, print_json
from headwater.cli.progress import Totals, progress
from headwater.cli.values import parse_option

if TYPE_CHECKING:
    from headwater.reduce.run import Reduction
    from headwater.reduce.validating import Report


class Strategy(StrEnum):
    """When an intermediate is eliminated."""

    grouping = "grouping"
    window = "window"
    watermark = "watermark"


class Partition(StrEnum):
    """What decides which local reducer gets an edge."""

    horizontal = "horizontal"
    vertical = "vertical"
    random = "random"


class Keep(StrEnum):
    """What is kept of a complete job."""

    reduced = "reduced"
    full = "full"


def reduce(
    input: Annotated[
        str,
        typer.Argument(
            metavar="DIR_OR_TOPIC",
            help="A directory of files, or kafka:TOPIC.",
            show_default=False,
        ),
    ],
    store: Annotated[
        Path | None,
        typer.Option(
            help="The store's folder, or delta:PLACE; made if missing.", show_default=False
        ),
    ] = None,
    job: Annotated[str | None, typer.Option(help="The job's name.", show_default=False)] = None,
    strategy: Annotated[
        Strategy, typer.Option(help="When an intermediate is eliminated.")
    ] = Strategy.grouping,
    partition: Annotated[
        Partition,
        typer.Option(help="Local reducers by function (horizontal), node (vertical) or neither."),
    ] = Partition.vertical,
    partitions: Annotated[
        int | None,
        typer.Option(min=1, help="How many local reducers.", show_default="one for each core"),
    ] = None,
    local_batch: Annotated[
        int, typer.Option(min=1, help="Elements that a local reducer takes at a time.")
    ] = 20_000,
    global_batch: Annotated[
        int, typer.Option(min=1, help="Edges that the global reducer takes at a time.")
    ] = 100_000,
    window: Annotated[
        int | None,
        typer.Option(
            min=1, help="With --strategy window: elements remembered.", show_default="1000"
        ),
    ] = None,
    watermark: Annotated[
        str | None,
        typer.Option(
            help="With --strategy watermark: how late an element may be.",
            show_default="10 minutes",
        ),
    ] = None,
    lifetime: Annotated[
        str | None,
        typer.Option(
            help="With --strategy watermark: how far apart edges of a vertex may be.",
            show_default="10 minutes",
        ),
    ] = None,
    functions: Annotated[
        bool, typer.Option("--functions", help="Keep the functions on the way of a dependency.")
    ] = False,
    keep: Annotated[
        Keep, typer.Option(help="Keep the dependencies, or all edges beside them.")
    ] = Keep.reduced,
    once: Annotated[bool, typer.Option("--once", help="Stop when the input there is is done.")] = (
        False
    ),
    finish: Annotated[
        bool, typer.Option("--finish", help="At the end complete the job: it can't be resumed.")
    ] = False,
    idle_after: Annotated[
        str | None, typer.Option(help="Complete the job after so long without new elements.")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Spark's checkpoint folder.", show_default="in the store")
    ] = None,
    dead_letters: Annotated[
        Path | None,
        typer.Option(help="The folder for what is rejected.", show_default="in the store"),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="An option of the input: bootstrap.servers=…"),
    ] = None,
    validate: Annotated[
        bool, typer.Option("--validate", help="Only say what is in the input, and what is wrong.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print what was done as JSON, at the end.")
    ] = False,
) -> None:
    """Reduce the W3C PROV that a job publishes to which outputs depend on which inputs.

    It goes on until the job's end is told, or you press Ctrl-C; then where it stopped next time.

    Example: `headwater reduce prov/count --store prov --job count --once --finish`
    """
    if validate:
        _validate(input, job, json)
        return
    if store is None or job is None:
        missing = "--store" if store is None else "--job"
        raise typer.BadParameter(f"{missing} is needed", param_hint=missing)
    given: dict[str, Any] = {
        "store": store,
        "job": job,
        "checkpoint": checkpoint,
        "strategy": strategy.value,
        "partition": partition.value,
        "partitions": partitions,
        "local_batch": local_batch,
        "global_batch": global_batch,
        "window": window,
        "watermark": watermark,
        "lifetime": lifetime,
        "functions": functions,
        "keep": keep.value,
        "once": once,
        "idle_after": idle_after,
        "dead_letters": dead_letters,
        "options": dict(map(parse_option, option or ())),
    }
    _run(input, given, finish, json)


def _run(input: str, given: dict[str, Any], finish: bool, json: bool) -> None:
    from headwater.cli.run import watch
    from headwater.cli.spark import session
    from headwater.reduce import settings
    from headwater.reduce.run import reduce_job

    settings.given(input, **given)  # what is wrong is told before Spark has started
    started = time.monotonic()
    with session(light=True), progress(given["job"], counting=_Elements) as totals:
        running = reduce_job(input, **given, on_batch=totals)
        watch(running)
        if finish:
            running.finish()
    done = _told(running, time.monotonic() - started)
    if json:
        print_json([encoder.dumps(done, ensure_ascii=False), "\n"])
    else:
        _print(done)


class _Elements(Totals):
    """What the batches of a job add up to."""

    def __init__(self, changed: Callable[[Totals], None]) -> None:
        super().__init__(changed)
        self.after_local = self.rejected = self.size = 0
        self._since = time.monotonic()

    def __call__(self, info: Any) -> None:
        """Counts one committed batch."""
        with self._lock:
            self.batches += 1
            self.edges += info.elements
            self.after_local += info.hot
            self.rejected += sum(info.rejected.values())
            self.size += info.bytes
            self._changed(self)

    def __str__(self) -> str:
        rate = self.size / 1e6 / max(time.monotonic() - self._since, 1e-9)
        told = [f"{self.batches} batches", f"{self.edges:,} edges", f"{self.after_local:,} on"]
        if self.rejected:
            told.append(f"{self.rejected:,} rejected")
        return " · ".join([*told, f"{rate:,.1f} MB/s"])


def _told(running: Reduction, seconds: float) -> dict[str, Any]:
    """What a run has done."""
    counts, finished = running.counts, running.counts.finished
    return {
        "job": running.job,
        "complete": finished is not None,
        "batches": counts.batches,
        "elements": counts.elements,
        "edges": counts.edges,
        "after_local": counts.after_local,
        "after_global": counts.after_global,
        "bytes": counts.bytes,
        "bytes_after_local": counts.bytes_local,
        "seconds": round(seconds, 3),
        "filtered": dict(counts.filtered),
        "rejected": dict(counts.rejected),
        "dead_letters": str(running.dead_letters),
        "dependencies": finished.dependencies if finished else None,
        "inputs": finished.inputs if finished else None,
        "outputs": finished.outputs if finished else None,
        "cycles": len(finished.cycles) if finished else None,
    }


def _print(done: dict[str, Any]) -> None:
    out = console()
    if done["complete"]:
        out.print(
            f"job {done['job']!r} is complete: {done['dependencies']:,} dependencies of "
            f"{done['outputs']:,} outputs on {done['inputs']:,} inputs"
        )
    else:
        out.print(f"job {done['job']!r} goes on: start it again with the same store")
    rows = [
        ("elements", f"{done['elements']:,}", _size(done["bytes"])),
        ("edges", f"{done['edges']:,}", ""),
        ("after local", f"{done['after_local']:,}", _size(done["bytes_after_local"])),
        ("after global", f"{done['after_global']:,}", ""),
    ]
    rows += [("filtered", f"{count:,}", kind) for kind, count in done["filtered"].items()]
    rows += [("rejected", f"{count:,}", reason) for reason, count in done["rejected"].items()]
    if done["cycles"]:
        rows.append(("cycles", f"{done['cycles']:,}", ""))
    width = max(len(number) for _, number, _ in rows)
    for name, number, more in rows:
        out.print(f"  {name:<13} {number:>{width}}  {more}".rstrip(), markup=False)
    if done["rejected"] or done["cycles"]:
        out.print(f"  dead letters  {done['dead_letters']}", markup=False, soft_wrap=True)


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


def _validate(input: str, job: str | None, json: bool) -> None:
    """Print what is in the input; exit code 1 if anything would be rejected."""
    from dataclasses import asdict

    from headwater.reduce.validating import validate

    report = validate(input, job)
    if json:
        print_json([encoder.dumps({"valid": report.valid, **asdict(report)}), "\n"])
    else:
        _print_report(report)
    if not report.valid:
        raise typer.Exit(1)


def _print_report(report: Report) -> None:
    out = console()
    out.print(f"{report.files:,} files ({report.documents:,} documents), {_size(report.bytes)}")
    for kind, counted in (("edges", report.edges), ("filtered", report.filtered)):
        for name, count in counted.items():
            out.print(f"  {kind:<9} {count:,} {name}", markup=False)
    for job in report.ends:
        out.print(f"  end of job {job!r}", markup=False)
    out.print(f"  rejected  {report.rejected:,}")
    for place in report.first:
        out.print(str(place), markup=False, soft_wrap=True)
    if (more := report.rejected - len(report.first)) > 0:
        out.print(f"… and {more:,} more", style="dim")
