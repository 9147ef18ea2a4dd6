"""`headwater why-not`: what became of a source record, and why it reached no result."""

from __future__ import annotations

import json as encoder
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.output import Json, print_json, print_table
from headwater.cli.results import Store
from headwater.cli.spark import session
from headwater.cli.values import parse_id
from headwater.plain import plain

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN = ["sink", "kind", "detail", "values"]
"""What a table shows: the rest is said in `detail`."""


def why_not(
    store: Store,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="The source's name.", show_default=False)
    ],
    id: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="The record's id, as in the source's id column.", show_default=False
        ),
    ],
    sink: Annotated[
        str | None, typer.Option(help="Only what became of it on the way to this sink.")
    ] = None,
    json: Json = False,
) -> None:
    """Say what became of a source record: where it ended on its way to each sink, and why.

    It was late, a filter removed it, its window has not closed, a join found no partner, another
    record survived a deduplication; or it reached a result. Ids are written as in `forward`.

    Example: `headwater why-not prov reports 30990 --sink stopped`
    """
    record = parse_id(id)

    import headwater as hw

    with session(light=True), hw.open(store) as opened:
        answer = opened.why_not(source, record, sink=sink)
    if json:
        rows = [encoder.dumps(row, ensure_ascii=False) for row in _objects(answer)]
        print_json(["[\n", ",\n".join(rows), "\n]\n"])
    else:
        print_table(answer.select(SHOWN), json)


def _objects(answer: pa.Table) -> list[Any]:
    """The rows of an answer, in which `values` is an object of its own."""
    return [plain({**row, "values": encoder.loads(row["values"])}) for row in answer.to_pylist()]
