"""`headwater bench flow`: what composing and coupling flows costs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from headwater.cli.bench import Folder, finish, machine, show
from headwater.cli.output import Json


class FlowPart(StrEnum):
    """What is measured."""

    publish = "publish"
    labels = "labels"
    window = "window"
    all = "all"


def flow(
    part: Annotated[
        list[FlowPart] | None, typer.Option(help="What to measure.", show_default="publish")
    ] = None,
    pairs: Annotated[int, typer.Option(min=1, help="Runs of each variant.")] = 3,
    seconds: Annotated[float, typer.Option(min=0.1, help="publish: how long each time.")] = 2.0,
    folder: Folder = None,
    json: Json = False,
) -> None:
    """What composing and coupling flows costs: Streamflow's evaluation, as far as it is built.

    publish: events a second into one stream, by 1 to 128 publishers. labels: labelling and
    partitioning as flows grow. window: map-reduce that keeps its map outputs, against mapping anew.

    Example: `headwater bench flow --part publish --part labels`
    """
    from headwater.bench.flow import PARTS, measure
    from headwater.cli.progress import counted

    asked = [each.value for each in part or [FlowPart.publish]]
    chosen = [name for name in PARTS if name in asked or FlowPart.all in asked]
    report: dict[str, Any] = {"machine": machine(), "suites": {}}
    for name in chosen:
        with counted(f"bench flow, {name}") as progress:
            tables = list(
                measure(name, pairs=pairs, seconds=seconds, folder=folder, progress=progress)
            )
        report["suites"][name] = [table.as_dict() for table in tables]
        if not json:
            for table in tables:
                show(table)
    finish(report, json)
