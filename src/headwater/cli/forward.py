"""`headwater forward`: the results that a source record reached."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.output import Json, print_table
from headwater.cli.results import Store
from headwater.cli.spark import replaying
from headwater.cli.values import parse_ids


def forward(
    store: Store,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="The source's name.", show_default=False)
    ],
    id: Annotated[
        list[str],
        typer.Argument(
            metavar="ID",
            help="One record's id or several, as in the source's id column.",
            show_default=False,
        ),
    ],
    json: Json = False,
) -> None:
    """List the results that a source record reached, and whether more may come.

    `final` says that no later batch can add a result of this record. An id of several columns,
    or a text that looks like a number, is written as JSON: `'["bus", 7]'`, `'"42"'`.

    Example: `headwater forward prov reports 30990`
    """
    ids = parse_ids(id)

    import headwater as hw

    with hw.open(store) as opened, replaying(opened):
        table = opened.forward(source, ids)
    reached = table.num_rows - table.column("result_id").null_count
    print_table(table, json, note=f"{reached} result{'' if reached == 1 else 's'}")
