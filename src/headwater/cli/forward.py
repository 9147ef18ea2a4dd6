"""`headwater forward`: the results that a source record reached, or the outputs of an entity."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from headwater.cli.output import Json, print_table
from headwater.cli.results import Store
from headwater.cli.spark import replaying
from headwater.cli.values import parse_ids
from headwater.cli.workflow import Entity, Steps, ask_entity


def forward(
    store: Store,
    source: Annotated[
        str | None, typer.Argument(metavar="SOURCE", help="The source's name.", show_default=False)
    ] = None,
    id: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID",
            help="One record's id or several, as in the source's id column.",
            show_default=False,
        ),
    ] = None,
    entity: Entity = None,
    steps: Steps = False,
    json: Json = False,
) -> None:
    """List the results that a source record reached, and whether more may come.

    `final` says that no later batch can add a result of this record. An id of several columns,
    or a text that looks like a number, is written as JSON: `'["bus", 7]'`, `'"42"'`. With
    `--entity` in place of a record: the outputs that depend on it, across jobs and flows.

    Example: `headwater forward prov reports 30990`
    """
    if entity is not None:
        if source is not None:
            raise typer.BadParameter("give either SOURCE and ID, or --entity")
        ask_entity(store, "forward", entity, steps, json)
        return
    if source is None or not id:
        raise typer.BadParameter("give SOURCE and ID, or --entity")
    if steps:
        raise typer.BadParameter("--steps goes with --entity")
    ids = parse_ids(id)

    import headwater as hw

    with hw.open(store) as opened, replaying(opened):
        table = opened.forward(source, ids)
    reached = table.num_rows - table.column("result_id").null_count
    note = f"{reached} result{'' if reached == 1 else 's'}"
    if not reached and len(id) == 1 and not json:
        # A row that has nothing but its label would only look broken.
        shown = shlex.join(["headwater", "why-not", str(store), source, id[0]])
        more = {True: ", and none can come", False: ", but one may come"}
        table, note = table.slice(0, 0), f"{note}{more.get(table['final'][0].as_py(), '')}; {shown}"
    print_table(table, json, note=note)
