"""`headwater compact`: few large files, sorted for look-ups in both directions."""

from __future__ import annotations

import json as encoder
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from headwater.cli.output import Json, console, print_json
from headwater.cli.results import Store


def compact(
    store: Store,
    keep_hours: Annotated[
        int,
        typer.Option(min=0, help="Of a lake: how long files that were replaced stay for readers."),
    ] = 168,
    older_than: Annotated[
        str | None,
        typer.Option(help="Forget results older than so, like '30 days'.", show_default=False),
    ] = None,
    most: Annotated[
        str | None,
        typer.Option(help="Forget the oldest results beyond a size, like '10 GB'."),
    ] = None,
    json: Json = False,
) -> None:
    """Sort the edges that came since the last time, and put small files together.

    A store does this by itself after each million edges; a lake does when it is told. Flows may go
    on meanwhile if they run in this process, readers in any. With `--older-than` or `--most` the
    oldest results are forgotten first, with their edges and the records that nothing else has.

    Example: `headwater compact delta:/lake/prov --older-than "30 days" --keep-hours 24`
    """
    from headwater.store import retention
    from headwater.store.lake.place import is_lake

    limits = {
        "older_than": None if older_than is None else retention.age(older_than),
        "most": None if most is None else retention.size(most),
    }
    told = _lake(str(store), keep_hours, limits) if is_lake(store) else _embedded(store, limits)
    if json:
        print_json([encoder.dumps(told), "\n"])
        return
    out = console()
    if older_than or most:
        gone = told["forgotten"]
        counts = ", ".join(f"{count:,} {name}" for name, count in gone.items())
        out.print(f"forgotten: {counts}", highlight=False)
    out.print(f"{told['edges']:,} edges sorted by record", highlight=False)
    if is_lake(store):
        out.print(
            f"{told['replaced']:,} files put together, {told['deleted']:,} deleted",
            highlight=False,
        )


def _embedded(store: Path, limits: dict[str, Any]) -> dict[str, Any]:
    from headwater.store import EmbeddedWriter, StoreReader

    StoreReader(store).close()  # raises where there is none: writing would make one
    with EmbeddedWriter.open(store) as writer:
        gone = asdict(writer.forget(**limits))
        return {"forgotten": gone, "edges": writer.compact()}


def _lake(store: str, keep_hours: int, limits: dict[str, Any]) -> dict[str, Any]:
    from headwater.cli.spark import session
    from headwater.store.lake.compacting import compact as compacted
    from headwater.store.lake.forgetting import forget
    from headwater.store.lake.reader import LakeReader
    from headwater.store.lake.writer import LakeWriter

    LakeReader(store).close()
    with session() as spark, LakeWriter.open(store) as writer:
        gone = asdict(forget(writer, spark, **limits))
        return {"forgotten": gone, **asdict(compacted(writer, spark, keep_hours))}
