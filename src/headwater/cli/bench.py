"""`headwater bench`: what provenance costs on this machine."""

from __future__ import annotations

import json as encoder
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from headwater.cli.output import Json, console, print_json

app = typer.Typer(
    no_args_is_help=True,
    help="Measure what provenance costs on this machine.",
    add_completion=False,
)


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


@app.command()
def capture(
    reports: Annotated[int, typer.Option(min=1_000, help="Position reports.")] = 4_000_000,
    pairs: Annotated[int, typer.Option(min=1, help="Runs with and without capture.")] = 5,
    batches: Annotated[int, typer.Option(min=1, max=100, help="Micro-batches of a run.")] = 8,
    format: Annotated[
        list[Format] | None, typer.Option(help="Only this format.", show_default="both")
    ] = None,
    state: Annotated[
        list[State] | None, typer.Option(help="Only this state store.", show_default="both")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(help="Where to put streams and stores.", show_default="the temporary folder"),
    ] = None,
    json: Json = False,
) -> None:
    """Throughput with provenance (eager) against without (none), for the stopped-vehicle flow.

    After a warm-up, runs with and without alternate. The ratio is that of the medians.

    Example: `headwater bench capture --reports 1000000 --pairs 3 --format parquet`
    """
    from rich.table import Table

    from headwater.bench.capture import FORMATS, STATES, measure
    from headwater.cli.progress import counted
    from headwater.cli.spark import session

    with counted("bench capture") as progress, session() as spark:
        outcomes = list(
            measure(
                spark,
                reports=reports,
                pairs=pairs,
                batches=batches,
                formats=[each.value for each in format] if format else FORMATS,
                states=[each.value for each in state] if state else STATES,
                folder=folder,
                progress=progress,
            )
        )
    if json:
        report = {"machine": machine(), "outcomes": [each.as_dict() for each in outcomes]}
        print_json([encoder.dumps(report, indent=1), "\n"])
        return
    table = Table(title=f"Linear Road, {reports:,} reports, medians of {pairs} runs each")
    table.add_column("format")
    table.add_column("state store")
    for name in ("none, reports/s", "eager, reports/s", "eager/none", "of pairs"):
        table.add_column(name, justify="right")
    for outcome in outcomes:
        table.add_row(
            outcome.format,
            outcome.state,
            f"{outcome.none_rate:,.0f}",
            f"{outcome.eager_rate:,.0f}",
            f"{outcome.ratio:.2f}",
            f"{outcome.ratios[0]:.2f} – {outcome.ratios[-1]:.2f}",
        )
    out = console()
    out.print(table)
    out.print(" · ".join(f"{key} {value}" for key, value in machine().items()), style="dim")


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
