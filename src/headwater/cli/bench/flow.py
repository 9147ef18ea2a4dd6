"""`headwater bench flow`: what composing and coupling flows costs."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Annotated

import typer

from headwater.cli.bench.common import Folder, Quick, report_parts
from headwater.cli.output import Json


class FlowPart(StrEnum):
    """What is measured."""

    publish = "publish"
    labels = "labels"
    runtimes = "runtimes"
    deploy = "deploy"
    static = "static"
    window = "window"
    all = "all"


def flow(
    part: Annotated[
        list[FlowPart] | None, typer.Option(help="What to measure.", show_default="publish")
    ] = None,
    pairs: Annotated[int, typer.Option(min=1, help="Runs of each variant.")] = 3,
    seconds: Annotated[float, typer.Option(min=0.1, help="publish: how long each time.")] = 2.0,
    mib: Annotated[float, typer.Option(min=0.01, help="window: MiB of a file.")] = 32.0,
    quick: Quick = False,
    folder: Folder = None,
    json: Json = False,
) -> None:
    """What composing, deploying and coupling flows costs: Streamflow's evaluation.

    publish: events a second into one stream, by 1 to 128 publishers. labels: labelling and
    partitioning as flows grow. runtimes: events a second and latency of operators, functions and
    jobs. deploy: the time to deploy and to change flows as they grow. static: a step run once
    against one run for each event. window: map-reduce that keeps its map outputs, against
    mapping anew.

    Example: `headwater bench flow --part publish --part labels`
    """
    from headwater.bench.flow import PARTS, QUICK, measure

    asked = [each.value for each in part or [FlowPart.publish]]
    chosen = [name for name in PARTS if name in asked or FlowPart.all in asked]
    measured = partial(measure, pairs=pairs, seconds=seconds, size=mib, folder=folder)
    report_parts("bench flow", chosen, measured, json, QUICK if quick else {})
