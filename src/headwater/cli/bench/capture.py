"""`headwater bench capture` and `bench operators`: what capture costs flows and operators."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from headwater.cli.bench.common import Folder, Mode, Quick, finish, finish_one, machine, modes, show
from headwater.cli.output import Json


class Suite(StrEnum):
    """What is measured."""

    linear_road = "linear-road"
    basic = "basic"
    nested = "nested"
    windows = "windows"
    slides = "slides"
    complex = "complex"
    retrieval = "retrieval"
    chain = "chain"
    all = "all"


class Format(StrEnum):
    """What the reports are read from."""

    parquet = "parquet"
    csv = "csv"


class State(StrEnum):
    """Spark's state store."""

    memory = "memory"
    rocksdb = "rocksdb"


def capture(
    suite: Annotated[
        list[Suite] | None, typer.Option(help="What to measure.", show_default="linear-road")
    ] = None,
    mode: Annotated[
        list[Mode] | None, typer.Option(help="Only this capture, beside none.", show_default="all")
    ] = None,
    records: Annotated[
        int | None,
        typer.Option(min=1_000, help="Input records.", show_default="the suite's own"),
    ] = None,
    pairs: Annotated[int, typer.Option(min=1, help="Runs of each mode.")] = 5,
    batches: Annotated[int, typer.Option(min=1, max=100, help="Micro-batches of a run.")] = 8,
    format: Annotated[
        list[Format] | None,
        typer.Option(help="Linear Road: only this format.", show_default="both"),
    ] = None,
    state: Annotated[
        list[State] | None,
        typer.Option(help="Linear Road: only this state store.", show_default="both"),
    ] = None,
    at: Annotated[
        list[int] | None,
        typer.Option(
            min=1,
            help="Only at this size: window, slide or length.",
            show_default="the suite's own",
        ),
    ] = None,
    quick: Quick = False,
    folder: Folder = None,
    json: Json = False,
) -> None:
    """Throughput, CPU and memory with provenance, mode by mode, against without (none).

    After a warm-up of each, the modes take turns. The ratio is that of the median rates; beside it
    are the median of the rounds' own ratios and its 95 % confidence interval.

    Example: `headwater bench capture --suite basic --suite nested --mode eager --pairs 3`
    """
    from headwater.bench.capture import QUICK, QUICK_OF, measure, sizes
    from headwater.bench.harness import MODES
    from headwater.bench.suites import SUITES
    from headwater.cli.progress import counted
    from headwater.cli.spark import session

    chosen = [each.value for each in suite or [Suite.linear_road]]
    report: dict[str, Any] = {"machine": machine(), "suites": {}}
    with session() as spark:
        for name in SUITES if Suite.all in chosen else chosen:
            options: dict[str, Any] = {
                "modes": modes(mode, MODES),
                "records": records,
                "pairs": pairs,
                "batches": batches,
            }
            if name == Suite.linear_road:
                options |= {"formats": [each.value for each in format]} if format else {}
                options |= {"states": [each.value for each in state]} if state else {}
            options |= sizes(name, at) if at else {}
            options |= QUICK | QUICK_OF[name] if quick else {}
            with counted(f"bench {name}") as progress:
                tables = list(measure(spark, name, folder=folder, progress=progress, **options))
            report["suites"][name] = [table.as_dict() for table in tables]
            if not json:
                for table in tables:
                    show(table)
    finish(report, json)


def operators(
    operator: Annotated[
        list[str] | None, typer.Option(help="Only this operator.", show_default="all")
    ] = None,
    keys: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Numbers of keys.", show_default="1, 1000 and 100000"),
    ] = None,
    mode: Annotated[
        list[Mode] | None,
        typer.Option(help="Only this capture, beside none.", show_default="eager"),
    ] = None,
    records: Annotated[int, typer.Option(min=1_000, help="Events.")] = 1_000_000,
    pairs: Annotated[int, typer.Option(min=1, help="Runs of each mode.")] = 3,
    quick: Quick = False,
    folder: Folder = None,
    json: Json = False,
) -> None:
    """Throughput of the operators over arrival order, by the number of keys.

    A native time window stands beside them.

    Example: `headwater bench operators --operator count_window --keys 1000 --pairs 5`
    """
    from headwater.bench.capture import QUICK, QUICK_OF, measure
    from headwater.bench.suites.operators import KEYS, OPERATORS, tables
    from headwater.cli.progress import counted
    from headwater.cli.spark import session

    for name in operator or ():
        if name not in OPERATORS:
            known = ", ".join(OPERATORS)
            raise typer.BadParameter(f"there is no operator {name!r}; there are {known}")
    options: dict[str, Any] = {
        "modes": modes(mode, ["none", "eager"]),
        "records": records,
        "pairs": pairs,
        "keys": keys or KEYS,
        "operators": operator or tuple(OPERATORS),
    }
    options |= QUICK | QUICK_OF["operators"] if quick else {}
    with session() as spark, counted("bench operators") as progress:
        (table,) = measure(spark, tables, folder=folder, progress=progress, **options)
    finish_one(table, json)
