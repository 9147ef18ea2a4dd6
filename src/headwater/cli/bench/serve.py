"""`headwater bench serve`: how fast the service publishes and answers."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Annotated

import typer

from headwater.cli.bench.common import Folder, Quick, report_parts
from headwater.cli.output import Json


class ServePart(StrEnum):
    """What is measured."""

    publish = "publish"
    ask = "ask"


def serve(
    part: Annotated[
        list[ServePart] | None, typer.Option(help="What to measure.", show_default="both")
    ] = None,
    clients: Annotated[
        list[int] | None,
        typer.Option(min=1, max=1_000, help="publish: clients.", show_default="1 … 128"),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.2, help="How long each time.")] = 1.0,
    pairs: Annotated[int, typer.Option(min=1, help="How many times, in turns.")] = 5,
    edges: Annotated[int, typer.Option(min=100_000, help="ask: edges in the store.")] = 10_000_000,
    quick: Quick = False,
    folder: Folder = None,
    json: Json = False,
) -> None:
    """How fast the service is: events published by REST, and requests answered.

    publish: events a second, single and in bulk, by 1 to 128 clients. ask: `backward` and
    `forward` of one id at a fixed rate of requests, alone and beside a running flow; times count
    from when a request was due.

    Example: `headwater bench serve --part publish --seconds 3 --pairs 1`
    """
    from headwater.bench.served import CLIENTS, PARTS, QUICK, measure
    from headwater.cli.serve import require_extra

    require_extra()
    chosen = [each.value for each in part] if part else list(PARTS)
    measured = partial(
        measure,
        clients=clients or CLIENTS,
        seconds=seconds,
        pairs=pairs,
        edges=edges,
        folder=folder,
    )
    report_parts("bench serve", chosen, measured, json, QUICK if quick else {})
