"""`headwater bench scale`: what grows with the work, and how."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Annotated

import typer

from headwater.cli.bench.common import Folder, Quick, report_parts
from headwater.cli.output import Json


class ScalePart(StrEnum):
    """What is measured."""

    growth = "growth"
    stores = "stores"
    cores = "cores"
    workers = "workers"
    lake = "lake"
    all = "all"


class Axis(StrEnum):
    """A size of the flow that can grow."""

    records = "records"
    keys = "keys"
    window = "window"
    overlap = "overlap"
    sinks = "sinks"
    partitions = "partitions"


def scale(
    part: Annotated[
        list[ScalePart] | None, typer.Option(help="What to measure.", show_default="lake")
    ] = None,
    edges: Annotated[
        list[int] | None,
        typer.Option(min=1_000, help="lake: edges at which it is asked.", show_default="1 M, 10 M"),
    ] = None,
    axis: Annotated[
        list[Axis] | None, typer.Option(help="growth: only along this.", show_default="all six")
    ] = None,
    lookups: Annotated[int, typer.Option(min=1, help="lake: lookups in each direction.")] = 100,
    pairs: Annotated[int, typer.Option(min=1, help="Runs of each variant.")] = 3,
    steps: Annotated[int, typer.Option(min=1, help="growth: steps of ten, at most.")] = 4,
    records: Annotated[
        list[int] | None,
        typer.Option(
            min=1_000,
            help="stores: records of a run; the others: the first.",
            show_default="the part's own",
        ),
    ] = None,
    limit: Annotated[
        float, typer.Option(min=0, help="growth: no step that would take more seconds a run.")
    ] = 60.0,
    quick: Quick = False,
    folder: Folder = None,
    json: Json = False,
) -> None:
    """How cost grows with work, on both stores.

    growth: a flow as its records, keys, windows, overlap, sinks and partitions grow by steps of
    ten, and a model of that. stores: the store in a file against the lake. cores and workers: one
    against two. lake: Spark's tasks write edges, results and records; at each size the lake is
    compacted, and single ids from all over it are asked for.

    Example: `headwater bench scale --part lake --edges 10000000 --edges 100000000`
    """
    from headwater.bench.scale import PARTS, measure

    asked = [each.value for each in part or [ScalePart.lake]]
    chosen = [name for name in PARTS if name in asked or ScalePart.all in asked]
    measured = partial(
        measure,
        edges=edges or (),
        lookups=lookups,
        pairs=pairs,
        steps=steps,
        limit=limit,
        records=records or (),
        axes=[each.value for each in axis or Axis],
        quick=quick,
        folder=folder,
    )
    report_parts("bench scale", chosen, measured, json)
