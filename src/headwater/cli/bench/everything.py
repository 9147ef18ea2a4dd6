"""`headwater bench all`: every benchmark, one after the other, into one page."""

from __future__ import annotations

import json as encoder
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from headwater.cli.bench.common import Quick
from headwater.cli.output import Json, print_json

PAGE = Path("docs/benchmarks.md")
KEPT = Path("artifacts/bench")
QUICK = Path("artifacts/bench-quick")


class Size(StrEnum):
    """How much is measured."""

    small = "small"
    medium = "medium"
    full = "full"


def everything(
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this benchmark, or part.", show_default="all"),
    ] = None,
    size: Annotated[Size, typer.Option(help="How much is measured.")] = Size.small,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Choose sizes so that all is done in so many minutes.",
            show_default="as long as it takes",
        ),
    ] = None,
    quick: Quick = False,
    folder: Annotated[
        Path | None,
        typer.Option(
            help="Where reports are kept; what is there stays.", show_default="artifacts/bench"
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            help="The page to write.",
            show_default="docs/benchmarks.md if it is there and not --quick, else in the folder",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Every benchmark, warm and in turns, into a page with pictures beside the papers' figures.

    Each runs in a process of its own, and its report is kept as soon as it is done: a call that was
    cut off goes on where it was, with the same folder. One that fails is told on the page, and the
    others still run. Comparisons have at least five pairs in every size but --quick.

    Example: `headwater bench all --minutes 25 --folder reports`
    """
    from headwater.bench.everything import page as pages
    from headwater.bench.everything.parts import RUNS, chosen
    from headwater.bench.everything.running import Budget, Folder, ended_whole, run_all
    from headwater.bench.lab import uncompiled
    from headwater.cli.spark import session

    runs = chosen(only or ())
    # Tiny runs are not to take the place of measurements.
    place = folder or (QUICK if quick else KEPT)
    kept = Folder(place, say=lambda line: typer.echo(line, err=True))
    budget = None if minutes is None or quick else Budget(60 * minutes)
    with ExitStack() as stack:
        stack.enter_context(ended_whole())
        if quick:
            # All in this process, with one session.
            stack.enter_context(uncompiled(stack.enter_context(session())))
        well = run_all(runs, kept, size="quick" if quick else size.value, budget=budget)
    reports = kept.reports(RUNS)
    to = page or (PAGE if PAGE.exists() and not quick else place / PAGE.name)
    for file in pages.write(to, reports):
        kept.say(f"wrote {file}")
    if json:
        text = encoder.dumps(pages.everything(reports), ensure_ascii=False, indent=1)
        print_json([text, "\n"])
    if not well:
        raise typer.Exit(1)
