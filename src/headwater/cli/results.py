"""`headwater results`: what a sink delivered."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headwater.cli.output import Json, print_table
from headwater.cli.values import parse_time

SHOWN = 20
"""Rows that a table shows unless `--limit` says otherwise."""

Store = Annotated[
    Path, typer.Argument(metavar="STORE", help="The store's folder.", show_default=False)
]


def results(
    store: Store,
    sink: Annotated[
        str | None,
        typer.Argument(metavar="SINK", help="The sink's name; not needed if there is one only."),
    ] = None,
    where: Annotated[
        str | None, typer.Option(help="SQL condition on the results' columns.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Results from this event time on (ISO 8601, UTC).")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Results before this event time.")] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=0,
            help=f"Show this many rows, 0 for all. Default: {SHOWN}; with --json, all.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List results: their ids, event times and columns.

    Example: `headwater results prov stopped --where "vid = 42" --since 2025-01-01T00:30 --json`
    """
    first, last = parse_time(since), parse_time(until)
    most = (None if json else SHOWN) if limit is None else (limit or None)

    import headwater as hw

    with hw.open(store) as opened:
        # One row more than asked tells whether there are more.
        asked = most + 1 if most and not json else most
        table = opened.results(sink, where=where, since=first, until=last, limit=asked)
    note = None
    if not json:
        rows = table.num_rows
        if most and rows > most:
            table, note = table.slice(0, most), f"the first {most} results; --limit 0 shows all"
        else:
            note = f"{rows} result{'' if rows == 1 else 's'}"
    print_table(table, json, note=note)
