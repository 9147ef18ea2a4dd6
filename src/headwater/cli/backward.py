"""`headwater backward`: the source records behind a result, or the inputs behind an entity."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.output import Json, print_table
from headwater.cli.results import Store
from headwater.cli.spark import replaying
from headwater.cli.values import parse_ids
from headwater.cli.workflow import Entity, Steps, ask_entity


def backward(
    store: Store,
    sink: Annotated[
        str | None, typer.Argument(metavar="SINK", help="The sink's name.", show_default=False)
    ] = None,
    result_id: Annotated[
        list[str] | None,
        typer.Argument(metavar="RESULT_ID", help="One result_id or several.", show_default=False),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="STEP", help="A step or source to stop at.", show_default="the sources"
        ),
    ] = None,
    entity: Entity = None,
    steps: Steps = False,
    json: Json = False,
) -> None:
    """List exactly the source records that a result came from.

    With `--to` they are the rows of a step on the way instead, such as `--to aggregate-1`. With
    `--entity` in place of a result: the inputs that it depends on, across jobs and flows.

    Example: `headwater backward prov stopped -5210391843019911841`
    """
    if entity is not None:
        if sink is not None or to is not None:
            raise typer.BadParameter("give either SINK and RESULT_ID, or --entity")
        ask_entity(store, "backward", entity, steps, json)
        return
    if sink is None or not result_id:
        raise typer.BadParameter("give SINK and RESULT_ID, or --entity")
    if steps:
        raise typer.BadParameter("--steps goes with --entity")
    ids = parse_ids(result_id)

    import headwater as hw

    with hw.open(store) as opened, replaying(opened, always=to is not None):
        table = opened.backward(sink, ids, to=to)
    rows = table.num_rows
    print_table(table, json, note=f"{rows} record{'' if rows == 1 else 's'}")
