"""`headwater bench`: what provenance costs on this machine."""

from __future__ import annotations

import json as encoder
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from headwater.cli.output import Json, console, print_json, print_rich

app = typer.Typer(
    no_args_is_help=True,
    help="Measure what provenance costs on this machine.",
    add_completion=False,
)


class Suite(StrEnum):
    """What is measured."""

    linear_road = "linear-road"
    basic = "basic"
    nested = "nested"
    windows = "windows"
    slides = "slides"
    complex = "complex"
    retrieval = "retrieval"
    chain = "chain"
    all = "all"


class Mode(StrEnum):
    """How provenance is captured."""

    none = "none"
    ancestors = "ancestors"
    intervals = "intervals"
    eager = "eager"


class Format(StrEnum):
    """What the reports are read from."""

    parquet = "parquet"
    csv = "csv"


class State(StrEnum):
    """Spark's state store."""

    memory = "memory"
    rocksdb = "rocksdb"


class Ids(StrEnum):
    """How the records' ids are spread."""

    monotone = "monotone"
    random = "random"


class Part(StrEnum):
    """What of the live graph is measured."""

    throughput = "throughput"
    latency = "latency"
    grid = "grid"
    graph = "graph"
    alternatives = "alternatives"
    memory = "memory"
    all = "all"


class ReducePart(StrEnum):
    """What of reducing is measured."""

    throughput = "throughput"
    memory = "memory"
    ceiling = "ceiling"
    partitions = "partitions"
    disorder = "disorder"
    entities = "entities"
    all = "all"


class Domain(StrEnum):
    """The use cases of Ananke's evaluation, two queries each."""

    linear_road = "linear-road"
    smart_grid = "smart-grid"
    vehicle_tracking = "vehicle-tracking"
    object_annotation = "object-annotation"


Folder = Annotated[
    Path | None,
    typer.Option(help="Where to put streams and stores.", show_default="the temporary folder"),
]


@app.command()
def capture(
    suite: Annotated[
        list[Suite] | None, typer.Option(help="What to measure.", show_default="linear-road")
    ] = None,
    mode: Annotated[
        list[Mode] | None, typer.Option(help="Only this capture, beside none.", show_default="all")
    ] = None,
    records: Annotated[
        int | None,
        typer.Option(min=1_000, help="Input records.", show_default="the suite's own"),
    ] = None,
    pairs: Annotated[int, typer.Option(min=1, help="Runs of each mode.")] = 5,
    batches: Annotated[int, typer.Option(min=1, max=100, help="Micro-batches of a run.")] = 8,
    format: Annotated[
        list[Format] | None,
        typer.Option(help="Linear Road: only this format.", show_default="both"),
    ] = None,
    state: Annotated[
        list[State] | None,
        typer.Option(help="Linear Road: only this state store.", show_default="both"),
    ] = None,
    folder: Folder = None,
    json: Json = False,
) -> None:
    """Throughput, CPU and memory with provenance, mode by mode, against without (none).

    After a warm-up of each, the modes take turns. The ratio is that of the median rates; beside it
    are the median of the rounds' own ratios and its 95 % confidence interval.

    Example: `headwater bench capture --suite basic --suite nested --mode eager --pairs 3`
    """
    from headwater.bench.capture import measure
    from headwater.bench.harness import MODES
    from headwater.bench.suites import SUITES
    from headwater.cli.progress import counted
    from headwater.cli.spark import session

    chosen = [each.value for each in suite or [Suite.linear_road]]
    report: dict[str, Any] = {"machine": machine(), "suites": {}}
    with session() as spark:
        for name in SUITES if Suite.all in chosen else chosen:
            options: dict[str, Any] = {}
            if name == Suite.linear_road:
                options |= {"formats": [each.value for each in format]} if format else {}
                options |= {"states": [each.value for each in state]} if state else {}
            with counted(f"bench {name}") as progress:
                tables = list(
                    measure(
                        spark,
                        name,
                        modes=[each.value for each in mode] if mode else MODES,
                        records=records,
                        pairs=pairs,
                        batches=batches,
                        folder=folder,
                        progress=progress,
                        **options,
                    )
                )
            report["suites"][name] = [table.as_dict() for table in tables]
            if not json:
                for table in tables:
                    show(table)
    finish(report, json)


@app.command()
def operators(
    operator: Annotated[
        list[str] | None, typer.Option(help="Only this operator.", show_default="all")
    ] = None,
    keys: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Numbers of keys.", show_default="1, 1000 and 100000"),
    ] = None,
    mode: Annotated[
        list[Mode] | None,
        typer.Option(help="Only this capture, beside none.", show_default="eager"),
    ] = None,
    records: Annotated[int, typer.Option(min=1_000, help="Events.")] = 1_000_000,
    pairs: Annotated[int, typer.Option(min=1, help="Runs of each mode.")] = 3,
    folder: Folder = None,
    json: Json = False,
) -> None:
    """Throughput of the operators over arrival order, by the number of keys.

    A native time window stands beside them.

    Example: `headwater bench operators --operator count_window --keys 1000 --pairs 5`
    """
    from headwater.bench.capture import measure
    from headwater.bench.suites.operators import KEYS, OPERATORS, tables
    from headwater.cli.progress import counted
    from headwater.cli.spark import session

    for name in operator or ():
        if name not in OPERATORS:
            known = ", ".join(OPERATORS)
            raise typer.BadParameter(f"there is no operator {name!r}; there are {known}")
    with session() as spark, counted("bench operators") as progress:
        (table,) = measure(
            spark,
            tables,
            modes=[each.value for each in mode] if mode else ["none", "eager"],
            records=records,
            pairs=pairs,
            folder=folder,
            progress=progress,
            keys=keys or KEYS,
            operators=operator or tuple(OPERATORS),
        )
    finish_one(table, json)


@app.command()
def live(
    part: Annotated[
        list[Part] | None, typer.Option(help="What to measure.", show_default="throughput")
    ] = None,
    domain: Annotated[
        list[Domain] | None,
        typer.Option(help="Throughput and latency: only this use case.", show_default="all four"),
    ] = None,
    size: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Records of a result.", show_default="10, 50 and 100"),
    ] = None,
    overlap: Annotated[
        list[int] | None,
        typer.Option(
            min=0, max=99, help="Percent shared by two results.", show_default="0, 25, 50 and 75"
        ),
    ] = None,
    records: Annotated[
        int | None,
        typer.Option(min=200, help="Input records through Spark.", show_default="the part's own"),
    ] = None,
    edges: Annotated[
        int | None,
        typer.Option(
            min=10_000, help="Edges of a run of the graph alone.", show_default="the part's own"
        ),
    ] = None,
    cap: Annotated[int, typer.Option(min=16, help="Memory: MiB that DuckDB may use.")] = 128,
    pairs: Annotated[int, typer.Option(min=1, help="Runs of each variant.")] = 5,
    batches: Annotated[int, typer.Option(min=1, max=100, help="Micro-batches of a run.")] = 8,
    folder: Folder = None,
    json: Json = False,
) -> None:
    """What the live graph costs, and when it knows: Ananke's evaluation.

    throughput, latency and grid run flows through Spark. graph, alternatives and memory feed the
    graph alone, with results and sets that were made beforehand.

    Example: `headwater bench live --part throughput --domain smart-grid --pairs 3`
    """
    from headwater.bench.graphs import OVERLAPS, SIZES
    from headwater.bench.live import PARTS, THROUGH_SPARK, measure
    from headwater.bench.suites.live import DOMAINS
    from headwater.cli.spark import session

    asked = [each.value for each in part or [Part.throughput]]
    chosen = [name for name in PARTS if name in asked or Part.all in asked]
    domains = tuple(each.value.replace("-", "_") for each in domain or ()) or DOMAINS
    with ExitStack() as stack:
        spark = stack.enter_context(session()) if set(chosen) & {*THROUGH_SPARK} else None
        measured = partial(
            measure,
            spark=spark,
            domains=domains,
            records=records,
            sizes=size or SIZES,
            overlaps=overlap or OVERLAPS,
            edges=edges,
            cap=cap,
            pairs=pairs,
            batches=batches,
            folder=folder,
        )
        report_parts("bench live", chosen, measured, json)


@app.command()
def reduce(
    part: Annotated[
        list[ReducePart] | None, typer.Option(help="What to measure.", show_default="throughput")
    ] = None,
    edges: Annotated[
        int | None,
        typer.Option(
            min=1_000, help="Edges; of entities, dependencies.", show_default="the part's own"
        ),
    ] = None,
    pairs: Annotated[int, typer.Option(min=1, help="Runs of each variant.")] = 3,
    cores: Annotated[
        str, typer.Option(metavar="N,…", help="Through Spark: with so many cores.")
    ] = "1,2",
    folder: Folder = None,
    json: Json = False,
) -> None:
    """What reducing foreign provenance costs, on the generated provenance of a hashtag count.

    throughput and memory run whole jobs through Spark, each in a process bound to its cores. The
    other parts feed the same reducers and the same store directly.

    Example: `headwater bench reduce --edges 1000000 --pairs 1 --cores 1,2`
    """
    from headwater.bench.reduce import PARTS, measure

    asked = [each.value for each in part or [ReducePart.throughput]]
    chosen = [name for name in PARTS if name in asked or ReducePart.all in asked]
    numbers = _numbers("--cores", cores)
    measured = partial(measure, edges=edges, pairs=pairs, cores=numbers, folder=folder)
    report_parts("bench reduce", chosen, measured, json)


@app.command()
def storage(
    events: Annotated[int, typer.Option(min=1_000, help="Events.")] = 100_000,
    payload: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Bytes of an event's content.", show_default="100 and 1024"),
    ] = None,
    components: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Length of the chain.", show_default="2, 5, 10 and 15"),
    ] = None,
    mode: Annotated[
        list[Mode] | None, typer.Option(help="Only this capture, beside none.", show_default="all")
    ] = None,
    folder: Folder = None,
    json: Json = False,
) -> None:
    """Bytes on disk for a chain of components: every event, keys only, and Headwater's stores.

    The stream ancestor function's experiment, with the paper's formulas beside what is measured.

    Example: `headwater bench storage --payload 1024 --components 10`
    """
    from headwater.bench.harness import MODES
    from headwater.bench.storage import COMPONENTS, PAYLOADS, measure
    from headwater.cli.progress import counted
    from headwater.cli.spark import session

    with session() as spark, counted("bench storage") as progress:
        table = measure(
            spark,
            events=events,
            payloads=payload or PAYLOADS,
            components=components or COMPONENTS,
            modes=[each.value for each in mode] if mode else MODES,
            folder=folder,
            progress=progress,
        )
    finish_one(table, json)


@app.command()
def replay(
    records: Annotated[int, typer.Option(min=10_000, help="Source records.")] = 10_000_000,
    asked: Annotated[int, typer.Option(min=1, help="Results asked for at once.")] = 1_000,
    repeats: Annotated[int, typer.Option(min=1, help="Answers of each kind.")] = 5,
    mode: Annotated[
        list[Mode] | None, typer.Option(help="Only this capture.", show_default="all but none")
    ] = None,
    folder: Folder = None,
    json: Json = False,
) -> None:
    """Latency of backward by replay over a large source, for one result and for many at once.

    Beside the seconds are the rows that came out of the source's files: the slice that was read.

    Example: `headwater bench replay --records 1000000 --mode ancestors`
    """
    from headwater.bench.replay import MODES, measure
    from headwater.cli.progress import counted
    from headwater.cli.spark import session

    with session(), counted("bench replay") as progress:
        table = measure(
            records=records,
            asked=asked,
            repeats=repeats,
            modes=[each.value for each in mode] if mode else MODES,
            folder=folder,
            progress=progress,
        )
    finish_one(table, json)


@app.command()
def queries(
    edges: Annotated[int, typer.Option(min=200_000, help="Edges in the store.")] = 10_000_000,
    ids: Annotated[Ids, typer.Option(help="How the records' ids are spread.")] = Ids.monotone,
    lookups: Annotated[int, typer.Option(min=1, help="Queries of each kind.")] = 200,
    json: Json = False,
) -> None:
    """Latency of single-result backward and single-record forward queries.

    Asked by the process that writes the store, by another one meanwhile, and by a reader after.

    Example: `headwater bench queries --edges 1000000 --json`
    """
    from rich.table import Table

    from headwater.bench.queries import measure

    with console(sys.stderr).status(f"{edges:,} edges: writing and asking"):
        figures = measure(edges=edges, ids=ids.value, lookups=lookups)
    if json:
        print_json([encoder.dumps({"machine": machine(), **figures}, indent=1), "\n"])
        return
    by_asker = {name: value for name, value in figures.items() if isinstance(value, dict)}
    table = Table("asked by", title=f"One lookup in {edges:,} edges, median and p95 of {lookups}")
    for column in next(iter(by_asker.values())):
        table.add_column(column, justify="right")
    for asker, spread in by_asker.items():
        table.add_row(asker, *(f"{value:,.1f}" for value in spread.values()))
    out = console()
    out.print(table)
    facts = {name: value for name, value in figures.items() if name not in by_asker}
    for line in (facts, machine()):
        out.print(" · ".join(f"{name} {value}" for name, value in line.items()), style="dim")


def _numbers(name: str, text: str) -> list[int]:
    """Numbers from 1, separated by commas."""
    found = [int(each) if each.strip().isdecimal() else 0 for each in text.split(",")]
    if min(found) < 1 or len(set(found)) < len(found):
        raise typer.BadParameter(f"{text!r} is not a list of numbers like 1,2", param_hint=name)
    return found


def show(table: Any) -> None:
    """Prints a table of measurements, and its notes."""
    from rich.table import Table

    shown = Table(title=table.title)
    for name, form in table.columns.items():
        shown.add_column(name, justify="right" if form else "left")
    for cells in table.cells():
        shown.add_row(*cells)
    out = console()
    print_rich(out, shown)
    for note in table.notes:
        out.print(note, style="dim")


def report_parts(
    command: str, parts: Sequence[str], measure: Callable[..., Iterable[Any]], json: bool
) -> None:
    """Measures some parts, one after the other, and prints the tables of each as it is done."""
    from headwater.cli.progress import counted

    report: dict[str, Any] = {"machine": machine(), "suites": {}}
    for name in parts:
        with counted(f"{command}, {name}") as progress:
            tables = list(measure(name, progress=progress))
        report["suites"][name] = [table.as_dict() for table in tables]
        if not json:
            for table in tables:
                show(table)
    finish(report, json)


def finish(report: dict[str, Any], json: bool) -> None:
    """Ends a report: all of it as JSON, or the machine in a line."""
    if json:
        print_json([encoder.dumps(report, indent=1), "\n"])
        return
    line = " · ".join(f"{key} {value}" for key, value in report["machine"].items())
    console().print(line, style="dim")


def finish_one(table: Any, json: bool) -> None:
    """Ends a report that is one table."""
    if not json:
        show(table)
    finish({"machine": machine(), **table.as_dict()}, json)


def machine() -> dict[str, Any]:
    """What a rate depends on."""
    import os
    import platform
    from importlib.metadata import version

    return {
        "cores": os.cpu_count(),
        "memory GiB": round(
            os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30), 1
        ),
        "python": platform.python_version(),
        "pyspark": version("pyspark"),
        "duckdb": version("duckdb"),
    }
