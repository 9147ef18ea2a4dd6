"""Streams: list, describe, declare, publish, read, follow, stop, remove."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow as pa
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import Field

from headwater.errors import PredicateError
from headwater.server.answers import ARROW, answer, as_json, columns, table
from headwater.server.failures import Refused
from headwater.server.routes.common import ERRORS, NAME, TABLE, Body, Limit, StreamName
from headwater.server.sending import Event, EventStream, follow, last_id
from headwater.server.service import PRODUCER
from headwater.server.unpacking import unpacked, written_out
from headwater.streams import StreamError
from headwater.streams.json_events import fitted
from headwater.streams.positions import Position

if TYPE_CHECKING:
    from headwater.server.service import Service
    from headwater.streams import Batch, Description

LINES = ("application/x-ndjson", "application/jsonl", "application/json-lines")
MOST = 10_000_000
"""Events of one request at most: columns of nothing take no bytes, however long."""
EVERY = 2.0
"""Seconds between two looks at all streams."""
LOOK = 0.2
"""Seconds between two looks for new events of one."""
Place = Annotated[
    str | None, Query(max_length=1_000, description="A position; events after it are meant.")
]


Intervals = Annotated[int, Query(ge=1, le=600, description="How many rates.")]
Interval = Annotated[float, Query(gt=0, le=3_600, description="Seconds that each is over.")]


class Declare(Body):
    """A stream to be."""

    name: Annotated[str, Field(pattern=NAME)]
    schema_: Annotated[
        str, Field(alias="schema", max_length=20_000, description="Columns, as Spark says them.")
    ]
    event_time: Annotated[str | None, Field(max_length=200)] = None
    id: Annotated[str | None, Field(max_length=200)] = None


def router(service: Service) -> APIRouter:
    """The routes of streams."""
    routes = APIRouter(prefix="/api/streams", tags=["streams"], responses=ERRORS)
    streams, work = service.streams, service.work

    @routes.get("")
    async def all_streams(intervals: Intervals = 30, interval: Interval = 1.0) -> Response:
        """Every stream as it is now."""

        look = partial(_all, service, intervals, interval)
        return answer({"streams": await work.look(look)})

    @routes.post("", status_code=201)
    async def declare(body: Declare) -> Response:
        """Declare a stream."""

        def make() -> dict[str, Any]:
            streams.create(
                body.name,
                body.schema_,
                event_time=body.event_time,
                id=body.id,
                producer=PRODUCER,
            )
            return described(service, streams.describe(body.name))

        return answer(await work.files(make), 201)

    @routes.get("/follow", response_class=EventStream)
    async def follow_all(
        request: Request, intervals: Intervals = 30, interval: Interval = 1.0
    ) -> Response:
        """Every stream, again and again, as server-sent events named `streams`."""
        return follow(service, request, _descriptions(service, intervals, interval))

    @routes.get("/{stream}")
    async def one(
        stream: StreamName, intervals: Intervals = 30, interval: Interval = 1.0
    ) -> Response:
        """A stream as it is now."""
        told = await work.look(
            lambda: streams.describe(stream, intervals=intervals, interval=interval)
        )
        return answer(described(service, told))

    @routes.delete("/{stream}")
    async def remove(
        stream: StreamName,
        force: Annotated[bool, Query(description="Also one that has readers.")] = False,
    ) -> Response:
        """Delete a stream with its events."""
        await work.change(lambda: streams.remove(stream, force=force))
        return answer({"removed": stream})

    @routes.post("/{stream}/stop")
    async def stop(stream: StreamName) -> Response:
        """Accept no more events."""
        await work.change(lambda: streams.stop(stream))
        return answer({"stream": stream, "stopped": True})

    @routes.post("/{stream}/resume")
    async def resume(stream: StreamName) -> Response:
        """Accept events again."""
        await work.change(lambda: streams.resume(stream))
        return answer({"stream": stream, "stopped": False})

    @routes.post(
        "/{stream}/events",
        openapi_extra={"requestBody": {"required": True, "content": _BODIES}},
    )
    async def publish(
        request: Request,
        stream: StreamName,
        key: Annotated[
            str | None,
            Query(min_length=1, max_length=200, description="Under a key, it is added once."),
        ] = None,
    ) -> Response:
        """Publish events, all or none: one, a list, lines of JSON, or Arrow. They are then safe."""
        body = await request.body()
        kind = request.headers.get("content-type", "application/json").split(";")[0].strip()

        def done() -> dict[str, Any]:
            schema = streams.declaration(stream).arrow
            events = _events(body, kind, schema, stream, service.settings.limits.unpacked)
            receipt = streams.publish(stream, events, key=key, producer=PRODUCER, consent=True)
            service.counts.publish(receipt.events)
            return {
                "stream": stream,
                "start": str(receipt.start),
                "position": str(receipt.end),
                "events": receipt.events,
                "duplicate": key is not None and events.num_rows > 0 and receipt.events == 0,
            }

        return answer(await work.files(done))

    @routes.get("/{stream}/events", responses=TABLE)
    async def events(
        request: Request,
        stream: StreamName,
        after: Place = None,
        limit: Limit = 100,
        newest: Annotated[bool, Query(description="The last events instead.")] = False,
    ) -> Response:
        """Some events of a stream, and the position to go on from."""
        most = min(limit, service.settings.limits.rows)
        rows, place = await work.look(lambda: _read(service, stream, after, most, newest))
        return table(request, rows, ids=(), after=place, position=place)

    @routes.get("/{stream}/follow", response_class=EventStream)
    async def follow_events(request: Request, stream: StreamName, after: Place = None) -> Response:
        """The events of a stream as they come, as server-sent events; ids are positions."""
        begin = last_id(request, after)
        start = await work.look(lambda: _position(service, stream, begin))
        return follow(service, request, stream_events(service, stream, start))

    @routes.get("/{stream}/letters")
    async def letters(stream: StreamName, limit: Limit = 100) -> Response:
        """Events that could not be published, with the reasons."""

        def look() -> list[dict[str, Any]]:
            return list(streams.letters(stream).read())[-min(limit, 1_000) :]

        return answer({"letters": await work.look(look)})

    return routes


_BODIES = {
    "application/json": {"schema": {"anyOf": [{"type": "object"}, {"type": "array"}]}},
    "application/x-ndjson": {"schema": {"type": "string"}},
    ARROW: {"schema": {"type": "string", "format": "binary"}},
}


def described(service: Service, told: Description) -> dict[str, Any]:
    """A stream as the API tells of it."""
    found = told.as_dict()
    found["producer"] = {**found["producer"], "text": str(told.producer)}
    # Secrets of a broker may be among the options.
    found.pop("options")
    found["fields"] = columns(service.streams.declaration(told.name).arrow)
    return found


def _events(body: bytes, kind: str, schema: pa.Schema, stream: str, most: int) -> pa.Table:
    """What was sent, as a table of the stream's columns; all of it, or an error."""
    try:
        if kind == ARROW:
            return _arrow(body, most)
        if kind in LINES:
            told = [json.loads(line) for line in body.splitlines() if line.strip()]
        elif kind == "application/json":
            read = json.loads(body)
            told = read if isinstance(read, list) else [read]
        else:
            known = ", ".join((*_BODIES, *LINES[1:]))
            raise Refused(415, f"{kind!r} can't be published; send one of {known}", "Type")
    except (ValueError, RecursionError, OSError, MemoryError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())[:200]
        raise PredicateError(f"what was sent can't be read as {kind}: {reason}") from error
    try:
        rows, reasons = fitted(told, schema)
    except UnicodeError as error:
        raise PredicateError("a text has half a character in it (a lone surrogate)") from error
    known_names = set(schema.names)
    for place, event in enumerate(told):
        if isinstance(event, dict) and not event.keys() <= known_names:
            unknown = ", ".join(repr(name) for name in event if name not in known_names)
            reasons.setdefault(place, f"{unknown[:200]} is none of its columns")
    if reasons:
        place, reason = min(reasons.items())
        more = "" if len(reasons) == 1 else f" (and {len(reasons) - 1:,} others)"
        raise PredicateError(f"event {place} does not fit stream {stream!r}: {reason}{more}")
    return rows


def _arrow(body: bytes, most: int) -> pa.Table:
    """Events as Arrow, looked through: what others made may point beyond its end, or swell."""
    too_much = f"more than {most >> 20} MiB once it is unpacked; send it in pieces"
    if unpacked(body) > most:
        raise Refused(413, too_much, "TooLarge")
    batches, count, size = [], 0, 0
    with pa.ipc.open_stream(io.BytesIO(body)) as stream:
        for batch in stream:
            count += batch.num_rows
            if count > MOST:
                raise ValueError(f"more than {MOST:,} events at once")
            batch.validate(full=True)
            size += written_out(batch)
            if size > most:
                raise Refused(413, too_much, "TooLarge")
            batches.append(batch)
        return pa.Table.from_batches(batches, stream.schema)


def _position(service: Service, stream: str, text: str | None) -> Position:
    """A position as it was given; by default where the stream ends."""
    first, end = service.streams.log(stream).bounds()
    if text is None:
        return end
    place = Position.of(text)
    return max(first, place)


def _read(
    service: Service, stream: str, after: str | None, limit: int, newest: bool
) -> tuple[pa.Table, str]:
    log = service.streams.log(stream)
    first, end = log.bounds()
    if newest:
        # The positions of a topic have gaps: there it may be fewer.
        place = Position.of(max(int(first), int(end) - limit)) if len(end.offsets) == 1 else first
    else:
        place = first if after is None else max(first, Position.of(after))
    tables, count = [service.streams.declaration(stream).arrow.empty_table()], 0
    for batch in log.read(place):
        rows, place = _cut(batch, None if newest else limit - count)
        tables.append(rows)
        count += rows.num_rows
        if not newest and count >= limit:
            break
    found = pa.concat_tables(tables)
    return (found.slice(max(0, found.num_rows - limit)) if newest else found), str(place)


async def stream_events(
    service: Service, stream: str, position: Position, most: int = 500
) -> AsyncIterator[Event | None]:
    """The events of a stream after a position, as they come."""
    while True:
        found = await service.work.files(partial(_next, service, stream, position, most))
        for rows, end in found:
            position = end
            told = {"position": str(end), **as_json(rows, ())}
            yield Event("events", told, str(end))
        if not found:
            if service.streams.declaration(stream).stopped:
                yield Event("ended", {"position": str(position)}, str(position))
                return
            yield None
            await asyncio.sleep(LOOK)


def _next(
    service: Service, stream: str, position: Position, most: int
) -> list[tuple[pa.Table, Position]]:
    if stream not in service.streams:
        raise StreamError(f"stream {stream!r} was removed")
    found = []
    for batch in service.streams.log(stream).read(position):
        found.append(_cut(batch, most))
        if found[-1][1] != batch.end or len(found) >= 20:
            break  # the rest with the next look
    return found


def _cut(batch: Batch, limit: int | None) -> tuple[pa.Table, Position]:
    """The first events of a batch, and where to go on; all, where positions don't count events."""
    rows = batch.table
    counted = batch.start.until(batch.end) == rows.num_rows and len(batch.start.offsets) == 1
    if limit is None or rows.num_rows <= limit or not counted:
        return rows, batch.end
    return rows.slice(0, limit), Position.of(int(batch.start) + limit)


def _all(service: Service, intervals: int, interval: float) -> list[dict[str, Any]]:
    found = service.streams.describe_all(intervals=intervals, interval=interval)
    return [described(service, each) for each in found]


async def _descriptions(
    service: Service, intervals: int, interval: float
) -> AsyncIterator[Event | None]:
    last = None
    while True:
        told = await service.work.files(partial(_all, service, intervals, interval))
        yield Event("streams", {"streams": told}) if told != last else None
        last = told
        await asyncio.sleep(EVERY)
