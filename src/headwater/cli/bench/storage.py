"""`headwater bench storage`: bytes on disk for a chain of components."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from headwater.cli.bench.common import Folder, Mode, Quick, finish_one, modes
from headwater.cli.output import Json


def storage(
    events: Annotated[int, typer.Option(min=1_000, help="Events.")] = 100_000,
    payload: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Bytes of an event's content.", show_default="100 and 1024"),
    ] = None,
    components: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Length of the chain.", show_default="2, 5, 10 and 15"),
    ] = None,
    mode: Annotated[
        list[Mode] | None, typer.Option(help="Only this capture, beside none.", show_default="all")
    ] = None,
    quick: Quick = False,
    folder: Folder = None,
    json: Json = False,
) -> None:
    """Bytes on disk for a chain of components: every event, keys only, and Headwater's stores.

    The stream ancestor function's experiment, with the paper's formulas beside what is measured.

    Example: `headwater bench storage --payload 1024 --components 10`
    """
    from headwater.bench.harness import MODES
    from headwater.bench.storage import COMPONENTS, PAYLOADS, QUICK, measure
    from headwater.cli.progress import counted
    from headwater.cli.spark import session

    with session() as spark, counted("bench storage") as progress:
        options: dict[str, Any] = {
            "events": events,
            "payloads": payload or PAYLOADS,
            "components": components or COMPONENTS,
            "modes": modes(mode, MODES),
        }
        options |= QUICK if quick else {}
        table = measure(spark, folder=folder, progress=progress, **options)
    finish_one(table, json)
