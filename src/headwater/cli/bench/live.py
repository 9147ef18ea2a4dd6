"""`headwater bench live`: what the live graph costs, and when it knows."""

from __future__ import annotations

from contextlib import ExitStack
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import typer

from headwater.cli.bench.common import Folder, Quick, report_parts
from headwater.cli.output import Json


class Part(StrEnum):
    """What of the live graph is measured."""

    throughput = "throughput"
    latency = "latency"
    grid = "grid"
    graph = "graph"
    alternatives = "alternatives"
    memory = "memory"
    all = "all"


class Domain(StrEnum):
    """The use cases of Ananke's evaluation, two queries each."""

    linear_road = "linear-road"
    smart_grid = "smart-grid"
    vehicle_tracking = "vehicle-tracking"
    object_annotation = "object-annotation"


def live(
    part: Annotated[
        list[Part] | None, typer.Option(help="What to measure.", show_default="throughput")
    ] = None,
    domain: Annotated[
        list[Domain] | None,
        typer.Option(help="Throughput and latency: only this use case.", show_default="all four"),
    ] = None,
    size: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Records of a result.", show_default="10, 50 and 100"),
    ] = None,
    overlap: Annotated[
        list[int] | None,
        typer.Option(
            min=0, max=99, help="Percent shared by two results.", show_default="0, 25, 50 and 75"
        ),
    ] = None,
    records: Annotated[
        int | None,
        typer.Option(min=200, help="Input records through Spark.", show_default="the part's own"),
    ] = None,
    edges: Annotated[
        int | None,
        typer.Option(
            min=10_000, help="Edges of a run of the graph alone.", show_default="the part's own"
        ),
    ] = None,
    cap: Annotated[int, typer.Option(min=16, help="Memory: MiB that DuckDB may use.")] = 128,
    pairs: Annotated[int, typer.Option(min=1, help="Runs of each variant.")] = 5,
    batches: Annotated[int, typer.Option(min=1, max=100, help="Micro-batches of a run.")] = 8,
    quick: Quick = False,
    folder: Folder = None,
    json: Json = False,
) -> None:
    """What the live graph costs, and when it knows: Ananke's evaluation.

    throughput, latency and grid run flows through Spark. graph, alternatives and memory feed the
    graph alone, with results and sets that were made beforehand.

    Example: `headwater bench live --part throughput --domain smart-grid --pairs 3`
    """
    from headwater.bench.graphs import OVERLAPS, SIZES
    from headwater.bench.live import PARTS, QUICK, QUICK_OF, THROUGH_SPARK, measure
    from headwater.bench.suites.live import DOMAINS
    from headwater.cli.spark import session

    asked = [each.value for each in part or [Part.throughput]]
    chosen = [name for name in PARTS if name in asked or Part.all in asked]
    domains = tuple(each.value.replace("-", "_") for each in domain or ()) or DOMAINS
    with ExitStack() as stack:
        spark = stack.enter_context(session()) if set(chosen) & {*THROUGH_SPARK} else None
        options: dict[str, Any] = {
            "domains": domains,
            "records": records,
            "sizes": size or SIZES,
            "overlaps": overlap or OVERLAPS,
            "edges": edges,
            "cap": cap,
            "pairs": pairs,
            "batches": batches,
        }
        measured = partial(
            measure, spark=spark, folder=folder, **(options | (QUICK if quick else {}))
        )
        report_parts("bench live", chosen, measured, json, QUICK_OF if quick else {})
