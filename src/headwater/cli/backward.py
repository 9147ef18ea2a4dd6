"""`headwater backward`: the source records behind a result."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.output import Json, print_table
from headwater.cli.results import Store
from headwater.cli.spark import replaying
from headwater.cli.values import parse_ids


def backward(
    store: Store,
    sink: Annotated[
        str, typer.Argument(metavar="SINK", help="The sink's name.", show_default=False)
    ],
    result_id: Annotated[
        list[str],
        typer.Argument(metavar="RESULT_ID", help="One result_id or several.", show_default=False),
    ],
    to: Annotated[
        str | None,
        typer.Option(
            metavar="STEP", help="A step or source to stop at.", show_default="the sources"
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List exactly the source records that a result came from.

    With `--to` they are the rows of a step on the way instead, such as `--to aggregate-1`.

    Example: `headwater backward prov stopped -5210391843019911841`
    """
    ids = parse_ids(result_id)

    import headwater as hw

    with hw.open(store) as opened, replaying(opened, always=to is not None):
        table = opened.backward(sink, ids, to=to)
    rows = table.num_rows
    print_table(table, json, note=f"{rows} record{'' if rows == 1 else 's'}")
