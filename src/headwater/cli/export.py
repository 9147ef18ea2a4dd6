"""`headwater export`: results, records and what connects them, in formats that others read."""

from __future__ import annotations

import json as encoder
import re
import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from headwater.cli.output import Json, console, print_json
from headwater.cli.results import Store
from headwater.cli.spark import replaying
from headwater.cli.values import parse_id, parse_time


class Format(StrEnum):
    """The formats."""

    prov_json = "prov-json"
    prov_n = "prov-n"
    dot = "dot"
    graphml = "graphml"
    openlineage = "openlineage"


class Direction(StrEnum):
    """The ways to go from an entity."""

    backward = "backward"
    forward = "forward"


def export(
    store: Store,
    id: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID", help="With --backward or --forward: one id or several."),
    ] = None,
    format: Annotated[
        Format, typer.Option("--format", "-f", help="The format.")
    ] = Format.prov_json,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", help="The file to write; - is stdout."),
    ] = "-",
    backward: Annotated[
        str | None, typer.Option(metavar="SINK", help="Results of this sink, and their records.")
    ] = None,
    forward: Annotated[
        str | None,
        typer.Option(metavar="SOURCE", help="Records of this source, and their results."),
    ] = None,
    entity: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="An entity, and those it depends on, across jobs."),
    ] = None,
    direction: Annotated[
        Direction | None,
        typer.Option(help="With --entity: which way to go.", show_default="backward"),
    ] = None,
    sink: Annotated[
        str | None, typer.Option(metavar="SINK", help="Only results of this sink.")
    ] = None,
    where: Annotated[
        str | None, typer.Option(help="With --sink: SQL condition on the results' columns.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", "--from", help="Results from this event time on (ISO 8601, UTC)."),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", "--to", help="Results before this event time.")
    ] = None,
    batch: Annotated[
        str | None, typer.Option(metavar="N[-M]", help="Results of this batch, or of a span.")
    ] = None,
    no_columns: Annotated[
        bool, typer.Option("--no-columns", help="Leave out the rows' own columns.")
    ] = False,
    json: Json = False,
) -> None:
    """Write results, records and what connects them as PROV, DOT, GraphML or OpenLineage.

    Without a query it is all results, or those of a sink, of a span of event time or of batches.
    A file appears whole or not at all; what was written is then told in a line, or as `--json`.

    Example: `headwater export prov --backward stopped -5210391843019911841 --format prov-n`
    """
    asked = _asked(id, backward, forward, entity)
    if direction is not None and entity is None:
        raise typer.BadParameter("--direction goes with --entity")
    span: dict[str, Any] = {"sink": sink, "where": where, "batches": _batches(batch)}
    span |= {"since": parse_time(since), "until": parse_time(until)}
    if asked and any(value is not None for value in span.values()):
        raise typer.BadParameter("choose one of a query and a range")
    if json and output == "-":
        raise typer.BadParameter("--json tells of a file: name it with --output")

    import headwater as hw

    with hw.open(store) as opened, replaying(opened):
        done = opened.export(
            sys.stdout.buffer if output == "-" else Path(output),
            format=format.value,
            **(asked or span),
            direction=(direction or Direction.backward).value,
            columns=not no_columns,
        )
    if output == "-":
        sys.stdout.flush()
    elif json:
        print_json([encoder.dumps({"file": output, **asdict(done)}), "\n"])
    else:
        sizes = f"{done.entities:,} entities, {done.edges:,} edges, {done.bytes:,} bytes"
        console().print(f"{output}: {sizes}", soft_wrap=True)


def _asked(
    id: list[str] | None, backward: str | None, forward: str | None, entity: str | None
) -> dict[str, Any]:
    """The query that was asked for; none for a range."""
    given = [one for one in (backward, forward, entity) if one is not None]
    if len(given) > 1:
        raise typer.BadParameter("choose one of --backward, --forward and --entity")
    ids = [parse_id(text) for text in id or ()]
    if (backward is not None or forward is not None) and not ids:
        raise typer.BadParameter("say which: ids follow the name of the sink or source")
    if ids and backward is None and forward is None:
        raise typer.BadParameter("ids go with --backward SINK or --forward SOURCE")
    if backward is not None:
        return {"sink": backward, "result_id": ids}
    if forward is not None:
        return {"source": forward, "id": ids}
    return {} if entity is None else {"entity": entity}


def _batches(text: str | None) -> tuple[int | None, int | None] | None:
    """A span of batches as typed.

    >>> _batches("3"), _batches("3-7"), _batches("3-")
    ((3, 3), (3, 7), (3, None))
    """
    if text is None:
        return None
    match = re.fullmatch(r"(\d+)(?:(-)(\d*))?", text)
    if match is None:
        raise typer.BadParameter(f"{text!r} is no span of batches: write it as 3, 3-7 or 3-")
    first, span, last = match.groups()
    return int(first), int(first) if not span else int(last) if last else None
