"""`headwater streams`: named streams, their rates and their readers."""

from __future__ import annotations

import json as encoder
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from headwater.cli.output import Json, console, print_json, print_table
from headwater.cli.values import parse_option, parse_time, text
from headwater.plain import plain

if TYPE_CHECKING:
    from headwater.streams import Description, Lag, Streams

Folder = Annotated[
    Path | None,
    typer.Option(
        "--streams",
        metavar="FOLDER",
        help="The streams folder; HEADWATER_STREAMS says it too.  [default: streams]",
        show_default=False,
    ),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The stream's name.", show_default=False)]
EventTime = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The column of event times.", show_default=False),
]
Id = Annotated[
    str | None,
    typer.Option("--id", metavar="COLUMN", help="The column of ids.", show_default=False),
]
Force = Annotated[bool, typer.Option("--force", help="Even if consumers have not read it all.")]
Intervals = Annotated[int, typer.Option(min=1, help="How many rates to show.")]
Interval = Annotated[float, typer.Option(min=0.1, help="Seconds that each rate is over.")]


class _Group(TyperGroup):
    """Takes a stream's name where a subcommand could stand."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["show", *args]
        return super().resolve_command(ctx, args)


app = typer.Typer(cls=_Group, rich_markup_mode="markdown")


@app.callback(invoke_without_command=True)
def streams(
    ctx: typer.Context,
    streams: Folder = None,
    intervals: Intervals = 10,
    interval: Interval = 1.0,
    json: Json = False,
) -> None:
    """List the streams: schema, producer, rates, last event, lag of each consumer, state.

    With a NAME, all about one stream.

    Example: `headwater streams radar --json`
    """
    ctx.obj = {"streams": streams, "json": json, "intervals": intervals, "interval": interval}
    if ctx.invoked_subcommand is not None:
        return
    found = _opened(ctx, None).describe_all(intervals=intervals, interval=interval)
    if json:
        print_value([described.as_dict() for described in found])
        return
    import pyarrow as pa

    rows = [_row(described) for described in found]
    names = "stream state events rate last_at producer lag schema".split()
    table = pa.table({name: pa.array([row[name] for row in rows], pa.string()) for name in names})
    print_table(table, json, note=f"{len(rows)} stream{'' if len(rows) == 1 else 's'}")


@app.command()
def show(
    ctx: typer.Context,
    name: Name,
    streams: Folder = None,
    intervals: Intervals = 10,
    interval: Interval = 1.0,
    json: Json = False,
) -> None:
    """Show all about one stream.

    Example: `headwater streams show radar`
    """
    given = ctx.obj
    described = _opened(ctx, streams).describe(
        name,
        intervals=intervals if intervals != 10 else given["intervals"],
        interval=interval if interval != 1.0 else given["interval"],
    )
    if json or given["json"]:
        print_value(described.as_dict())
        return
    out = console()
    for what, value in _told(described):
        out.print(f"{what:12} {value}", markup=False)


@app.command()
def create(
    ctx: typer.Context,
    name: Name,
    schema: Annotated[
        str, typer.Option(metavar="DDL", help="Columns as Spark says them.", show_default=False)
    ],
    event_time: EventTime = None,
    id: Id = None,
    log: Annotated[
        str | None,
        typer.Option(
            metavar="parquet|kafka:TOPIC",
            help="Where its events are.",
            show_default="parquet, or HEADWATER_LOG",
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="An option of its log; repeatable.", show_default=False
        ),
    ] = None,
    streams: Folder = None,
    json: Json = False,
) -> None:
    """Declare a stream.

    Example: `headwater streams create radar --schema "scan bigint, at timestamp" --event-time at`

    On Kafka: `headwater streams create radar --schema "scan bigint" --log kafka:radar --option
    bootstrap=127.0.0.1:9092`
    """
    opened = _opened(ctx, streams)
    options = dict(map(parse_option, option or ()))
    opened.create(name, schema, event_time=event_time, id=id, log=log, options=options)
    _say(ctx, json, name, "created")


@app.command()
def stop(ctx: typer.Context, name: Name, streams: Folder = None, json: Json = False) -> None:
    """Accept no more events; those who follow the stream end when they have read all.

    Example: `headwater streams stop radar`
    """
    _opened(ctx, streams).stop(name)
    _say(ctx, json, name, "stopped")


@app.command()
def resume(ctx: typer.Context, name: Name, streams: Folder = None, json: Json = False) -> None:
    """Accept events again.

    Example: `headwater streams resume radar`
    """
    _opened(ctx, streams).resume(name)
    _say(ctx, json, name, "resumed")


@app.command()
def remove(
    ctx: typer.Context, name: Name, force: Force = False, streams: Folder = None, json: Json = False
) -> None:
    """Delete a stream and its events; refused while it has consumers.

    Example: `headwater streams remove radar --force`
    """
    _opened(ctx, streams).remove(name, force=force)
    _say(ctx, json, name, "removed")


@app.command()
def forget(
    ctx: typer.Context,
    name: Name,
    consumer: Annotated[
        str, typer.Argument(metavar="CONSUMER", help="Its name.", show_default=False)
    ],
    streams: Folder = None,
    json: Json = False,
) -> None:
    """Remove a consumer: the stream waits for it no longer.

    Example: `headwater streams forget radar dashboard`
    """
    _opened(ctx, streams).forget(name, consumer)
    _say(ctx, json, name, f"without consumer {consumer}")


@app.command()
def expire(
    ctx: typer.Context,
    name: Name,
    before: Annotated[
        str, typer.Option(metavar="POSITION|TIME", help="What is older goes.", show_default=False)
    ],
    force: Force = False,
    streams: Folder = None,
    json: Json = False,
) -> None:
    """Delete old events, in whole files.

    Example: `headwater streams expire radar --before 2025-01-01T00:00`
    """
    moment = None if before.replace(",", "").isdigit() else parse_time(before)
    gone = _opened(ctx, streams).expire(name, moment or before, force=force)
    _say(ctx, json, name, f"without {gone:,} events", expired=gone)


@app.command()
def follow(
    ctx: typer.Context,
    name: Name,
    after: Annotated[
        str | None,
        typer.Option(metavar="POSITION|start", help="From where; by default only what comes."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="End after so many events.")] = None,
    idle: Annotated[
        float | None, typer.Option(min=0, help="End after so many seconds without an event.")
    ] = None,
    streams: Folder = None,
    json: Json = False,
) -> None:
    """Print the events of a stream as they come, one a line; `--json` adds their positions.

    Example: `headwater streams follow radar --after start --limit 10`
    """
    opened = _opened(ctx, streams)
    position = {"start": None}.get(after, after) if after else opened.describe(name).end
    json = json or ctx.obj["json"]
    printed = 0
    with opened.subscribe(name, position, idle=idle) as batches:
        for batch in batches:
            for number, row in enumerate(batch.table.to_pylist(), int(batch.start)):
                told = {"position": number, "event": row} if json else row
                print_json([encoder.dumps(plain(told), ensure_ascii=False), "\n"])
                printed += 1
                if printed == limit:
                    return


def _opened(ctx: typer.Context, folder: Path | None) -> Streams:
    import headwater.streams as named

    return named.open(folder or ctx.obj["streams"])


def _say(ctx: typer.Context, json: bool, name: str, what: str, **more: Any) -> None:
    if json or ctx.obj["json"]:
        print_value({"stream": name, "done": what, **more})
    else:
        typer.echo(f"{name}: {what}")


def print_value(value: Any) -> None:
    """Print a value as JSON."""
    print_json([encoder.dumps(plain(value), ensure_ascii=False, indent=1), "\n"])


def _row(told: Description) -> dict[str, str]:
    return {
        "stream": told.name,
        "state": told.state,
        "events": "" if told.state == "unreachable" else _number(told.events, told.at_most),
        "rate": _rates(told),
        "last_at": text(told.last_at),
        "producer": str(told.producer),
        "lag": ", ".join(f"{one.consumer} {_lag(one)}" for one in told.consumers),
        "schema": told.schema,
    }


def _told(told: Description) -> list[tuple[str, str]]:
    """The lines about one stream; what it has not is left out."""
    lines = [
        ("stream", told.name),
        ("state", told.state),
        ("schema", told.schema),
        ("event time", told.event_time or ""),
        ("id", told.id or ""),
        ("producer", str(told.producer)),
        ("log", "" if told.log == "parquet" else f"{told.log} {_options(told)}"),
        ("created", text(told.created)),
        ("events", f"{_number(told.events, told.at_most)} (positions {told.start} to {told.end})"),
        ("rate", f"{_rates(told)} events/s over {told.interval:g} s each"),
        ("last event", "" if told.last_event is None else text(dict(told.last_event))),
        ("published", text(told.last_at)),
        ("its time", text(told.last_time)),
        ("dead letters", f"{told.dead_letters:,}" if told.dead_letters else ""),
    ]
    lines += [
        ("consumer", f"{one.consumer}: {_lag(one)} behind, at {one.position}{_now(one.reading)}")
        for one in told.consumers
    ]
    return [(what, value) for what, value in lines if value]


def _lag(lag: Lag) -> str:
    return _number(lag.lag, lag.at_most)


def _number(number: int, at_most: bool) -> str:
    return f"at most {number:,}" if at_most else f"{number:,}"


def _options(told: Description) -> str:
    return " ".join(f"{name}={value}" for name, value in told.options.items())


def _now(reading: bool) -> str:
    return ", reading" if reading else ""


def _rates(told: Description) -> str:
    return " ".join(f"{rate:.4g}" for rate in told.rates)
