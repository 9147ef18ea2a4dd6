"""`headwater bench replay` and `bench queries`: how soon questions are answered."""

from __future__ import annotations

import json as encoder
import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from headwater.cli.bench.common import Folder, Mode, Quick, finish_one, machine, modes
from headwater.cli.output import Json, console, print_json


class Ids(StrEnum):
    """How the records' ids are spread."""

    monotone = "monotone"
    random = "random"


def replay(
    records: Annotated[int, typer.Option(min=10_000, help="Source records.")] = 10_000_000,
    asked: Annotated[int, typer.Option(min=1, help="Results asked for at once.")] = 1_000,
    repeats: Annotated[int, typer.Option(min=1, help="Answers of each kind.")] = 5,
    mode: Annotated[
        list[Mode] | None, typer.Option(help="Only this capture.", show_default="all but none")
    ] = None,
    quick: Quick = False,
    folder: Folder = None,
    json: Json = False,
) -> None:
    """Latency of backward by replay over a large source, for one result and for many at once.

    Beside the seconds are the rows that came out of the source's files: the slice that was read.

    Example: `headwater bench replay --records 1000000 --mode ancestors`
    """
    from headwater.bench.replay import MODES, QUICK, measure
    from headwater.cli.progress import counted
    from headwater.cli.spark import session

    options: dict[str, Any] = {
        "records": records,
        "asked": asked,
        "repeats": repeats,
        "modes": modes(mode, MODES),
    }
    options |= QUICK if quick else {}
    with session(), counted("bench replay") as progress:
        table = measure(folder=folder, progress=progress, **options)
    finish_one(table, json)


def queries(
    edges: Annotated[int, typer.Option(min=200_000, help="Edges in the store.")] = 10_000_000,
    ids: Annotated[Ids, typer.Option(help="How the records' ids are spread.")] = Ids.monotone,
    lookups: Annotated[int, typer.Option(min=1, help="Queries of each kind.")] = 200,
    quick: Quick = False,
    json: Json = False,
) -> None:
    """Latency of single-result backward and single-record forward queries.

    Asked by the process that writes the store, by another one meanwhile, and by a reader after.

    Example: `headwater bench queries --edges 1000000 --json`
    """
    from rich.table import Table

    from headwater.bench.queries import QUICK, measure

    if quick:
        edges, lookups = QUICK["edges"], QUICK["lookups"]
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
