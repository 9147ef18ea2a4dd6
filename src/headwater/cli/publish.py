"""`headwater publish`: the events of a file into a stream."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.output import Json, console
from headwater.cli.streams import EventTime, Folder, Id, Name, print_value
from headwater.cli.values import text

if TYPE_CHECKING:
    from headwater.streams.intake import Intake


def publish(
    name: Name,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A file; - is stdin.", show_default=False)
    ],
    format: Annotated[
        str | None,
        typer.Option(help="json, xml, csv, avro or parquet; else by the name.", show_default=False),
    ] = None,
    bind: Annotated[
        list[str] | None,
        typer.Option(metavar="BINDING", help="'lat := /radar/lat : NUMBER'; may be repeated."),
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(metavar="DDL", help="Columns as Spark says them.", show_default=False),
    ] = None,
    event_time: EventTime = None,
    id: Id = None,
    create: Annotated[bool, typer.Option("--create", help="Declare the stream.")] = False,
    into_existing: Annotated[
        bool, typer.Option("--into-existing", help="Also into a stream of another producer.")
    ] = False,
    rate: Annotated[
        float | None, typer.Option(min=0.001, help="Events per second at most.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(help="Skip what was published of this file under the same key."),
    ] = None,
    streams: Folder = None,
    json: Json = False,
) -> None:
    """Publish the events of a file to a stream; bad ones become dead letters.

    Example: `headwater publish radar scans.jsonl --create --event-time at`
    """
    import headwater.streams as named
    from headwater.streams.binding import parse
    from headwater.streams.intake import publish_file

    with _counting(shown=not json) as progress:
        done = publish_file(
            named.open(streams),
            name,
            file,
            format=format,
            bindings=[parse(one) for one in bind or []],
            schema=schema,
            event_time=event_time,
            id=id,
            create=create,
            consent=into_existing,
            rate=rate,
            key=key,
            progress=progress,
        )
    told = {"stream": name, "created": done.created, "published": done.published}
    told |= {"rejected": done.rejected, "skipped": done.skipped}
    if json:
        print_value({**told, "reasons": dict(done.reasons.most_common(20))})
        return
    said = f"{name}: {done.published:,} events published"
    said += f", {done.skipped:,} were there already" if done.skipped else ""
    said += f", {done.rejected:,} rejected" if done.rejected else ""
    typer.echo(said)
    for reason, count in done.reasons.most_common(5):
        typer.echo(f"  {count:,} × {text(reason)}")


@contextmanager
def _counting(shown: bool) -> Iterator[Any]:
    """A line on stderr that counts."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    out = console(sys.stderr)
    shown = shown and out.is_terminal  # in a log, the last line says it all
    with Progress(*columns, console=out, transient=True, disable=not shown) as bar:
        task = bar.add_task("publishing", total=None)

        def progress(done: Intake) -> None:
            said = f"{done.published:,} published · {done.rejected:,} rejected"
            bar.update(task, description=said)

        yield progress
