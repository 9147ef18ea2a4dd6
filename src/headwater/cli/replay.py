"""`headwater replay`: a result computed again from its source records."""

from __future__ import annotations

import json as encoder
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.output import Json, console, print_json, print_rich, rich_table
from headwater.cli.results import Store
from headwater.cli.spark import session
from headwater.cli.values import json_rows, parse_ids, text

if TYPE_CHECKING:
    from headwater.replay.result import ReplayedResult


def replay(
    store: Store,
    sink: Annotated[
        str, typer.Argument(metavar="SINK", help="The sink's name.", show_default=False)
    ],
    result_id: Annotated[
        str, typer.Argument(metavar="RESULT_ID", help="The result.", show_default=False)
    ],
    step: Annotated[
        bool, typer.Option("--step", help="Show the rows of every step on the way.")
    ] = False,
    json: Json = False,
) -> None:
    """Compute a result again from its source records alone, and say whether it is the same.

    The exit code is 1 if it is not.

    Example: `headwater replay prov stopped -5210391843019911841 --step`
    """
    number = parse_ids([result_id])

    import headwater as hw

    with session(light=True), hw.open(store) as opened:
        replayed = opened.replay(sink, number, steps=step)
    if json:
        print_json([encoder.dumps(_as_json(replayed), default=str), "\n"])
    else:
        _print(replayed)
    if not replayed.matches:
        raise typer.Exit(1)


def _print(replayed: ReplayedResult) -> None:
    out = console()
    count = replayed.sources.num_rows
    for step in replayed.steps:
        out.print(f"{step.step}  {step.kind}: {step.describe}", style="bold")
        print_rich(out, rich_table(step.rows))
    if not replayed.steps:
        print_rich(out, rich_table(replayed.sources))
    records = f"{count} record{'' if count == 1 else 's'}"
    if replayed.row is None:
        out.print(f"nothing came out of its {records}")
        return
    for name, value in replayed.row.items():
        differs = replayed.differences.get(name)
        stored = f"   stored: {text(differs.stored)}" if differs else ""
        out.print(f"  {name} = {text(value)}{stored}", markup=False, highlight=False)
    if replayed.matches:
        out.print(f"the same as stored, from {records} alone")
    else:
        out.print(f"differs from what is stored in {', '.join(replayed.differences)}")


def _as_json(replayed: ReplayedResult) -> dict[str, Any]:
    def rows(table: Any) -> Any:
        return encoder.loads("".join(json_rows(table)))

    return {
        "matches": replayed.matches,
        "row": replayed.row,
        "differences": {
            name: {"stored": one.stored, "replayed": one.replayed}
            for name, one in replayed.differences.items()
        },
        "sources": rows(replayed.sources),
        "steps": [
            {"step": s.step, "kind": s.kind, "does": s.describe, "rows": rows(s.rows)}
            for s in replayed.steps
        ],
    }
