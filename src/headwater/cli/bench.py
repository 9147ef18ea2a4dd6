"""`headwater bench`: what provenance costs on this machine."""

from __future__ import annotations

import json as encoder
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


@app.command()
def capture(
    reports: Annotated[int, typer.Option(min=1_000, help="Position reports.")] = 4_000_000,
    pairs: Annotated[int, typer.Option(min=1, help="Runs with and without capture.")] = 5,
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
    edges: Annotated[int, typer.Option(min=1_000, help="Edges in the store.")] = 10_000_000,
    json: Json = False,
) -> None:
    """Latency of single-result backward and single-record forward queries.

    Example: `headwater bench queries --edges 1000000 --json`
    """
    from headwater.bench.queries import measure

    report: dict[str, Any] = measure(edges=edges)
    if json:
        print_json([encoder.dumps({"machine": machine(), **report}, indent=1), "\n"])


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
