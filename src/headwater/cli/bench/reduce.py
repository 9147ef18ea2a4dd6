"""`headwater bench reduce`: what reducing foreign provenance costs."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Annotated

import typer

from headwater.cli.bench.common import Folder, Quick, report_parts
from headwater.cli.output import Json


class ReducePart(StrEnum):
    """What of reducing is measured."""

    throughput = "throughput"
    memory = "memory"
    ceiling = "ceiling"
    partitions = "partitions"
    disorder = "disorder"
    entities = "entities"
    all = "all"


def reduce(
    part: Annotated[
        list[ReducePart] | None, typer.Option(help="What to measure.", show_default="throughput")
    ] = None,
    edges: Annotated[
        int | None,
        typer.Option(
            min=1_000, help="Edges; of entities, dependencies.", show_default="the part's own"
        ),
    ] = None,
    pairs: Annotated[int, typer.Option(min=1, help="Runs of each variant.")] = 3,
    cores: Annotated[
        str, typer.Option(metavar="N,…", help="Through Spark: with so many cores.")
    ] = "1,2",
    quick: Quick = False,
    folder: Folder = None,
    json: Json = False,
) -> None:
    """What reducing foreign provenance costs, on the generated provenance of a hashtag count.

    throughput and memory run whole jobs through Spark, each in a process bound to its cores. The
    other parts feed the same reducers and the same store directly.

    Example: `headwater bench reduce --edges 1000000 --pairs 1 --cores 1,2`
    """
    from headwater.bench.reduce import PARTS, QUICK, measure

    asked = [each.value for each in part or [ReducePart.throughput]]
    chosen = [name for name in PARTS if name in asked or ReducePart.all in asked]
    numbers = _numbers("--cores", cores)
    measured = partial(measure, edges=edges, pairs=pairs, cores=numbers, folder=folder)
    report_parts("bench reduce", chosen, measured, json, QUICK if quick else {})


def _numbers(name: str, text: str) -> list[int]:
    """Numbers from 1, separated by commas."""
    found = [int(each) if each.strip().isdecimal() else 0 for each in text.split(",")]
    if min(found) < 1 or len(set(found)) < len(found):
        raise typer.BadParameter(f"{text!r} is not a list of numbers like 1,2", param_hint=name)
    return found
