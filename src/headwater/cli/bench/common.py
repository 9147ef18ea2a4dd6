"""What the benchmarks' commands have in common: their options, and how they report."""

from __future__ import annotations

import json as encoder
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from headwater.cli.output import console, print_json, print_rich


class Mode(StrEnum):
    """How provenance is captured."""

    none = "none"
    ancestors = "ancestors"
    intervals = "intervals"
    eager = "eager"


Folder = Annotated[
    Path | None,
    typer.Option(help="Where to put streams and stores.", show_default="the temporary folder"),
]

Quick = Annotated[bool, typer.Option("--quick", help="Tiny sizes, to see that it runs.")]


def modes(given: Sequence[Mode] | None, default: Sequence[str]) -> list[str]:
    """The captures that were asked for."""
    return [each.value for each in given] if given else list(default)


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
    command: str,
    parts: Sequence[str],
    measure: Callable[..., Iterable[Any]],
    json: bool,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Measures some parts, one after the other, and prints the tables of each as it is done.

    `options` are those of single parts.
    """
    from headwater.cli.progress import counted

    report: dict[str, Any] = {"machine": machine(), "suites": {}}
    for name in parts:
        with counted(f"{command}, {name}") as progress:
            own = (options or {}).get(name, {})
            tables = list(measure(name, **{**own, "progress": progress}))
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
