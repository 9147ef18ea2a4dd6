"""Server-sent events: what is followed, sent as it comes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from fastapi.responses import StreamingResponse

from headwater.errors import HeadwaterError
from headwater.server.answers import encoded
from headwater.server.failures import Refused, unexpected

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fastapi import Request
    from starlette.types import Receive, Scope, Send

    from headwater.server.service import Service

TYPE = "text/event-stream"
_BREAKS = [(sign.encode(), f"\\u{ord(sign):04x}".encode()) for sign in "\u0085\u2028\u2029"]
"""No ends of lines here, but some clients take them for such."""
ALIVE = 15.0
"""Seconds after which a line is sent so that nobody takes the connection for dead."""


class Event:
    """Something that is told, under a name and, where one can go on after it, an id."""

    __slots__ = ("data", "id", "name")

    def __init__(self, name: str, data: Any, id: str | None = None) -> None:
        self.name, self.data, self.id = name, data, id

    def text(self) -> bytes:
        """As it is sent."""
        place = "" if self.id is None else f"id: {self.id}\n"
        data = encoded(self.data)
        for sign, escaped in _BREAKS:
            data = data.replace(sign, escaped)
        return f"event: {self.name}\n{place}data: ".encode() + data + b"\n\n"


def follow(
    service: Service, request: Request, events: AsyncIterator[Event | None]
) -> StreamingResponse:
    """Send events as they come; None is nothing yet. An error is told, and ends it."""
    limit = service.settings.limits.followers
    if service.counts.followers >= limit:
        text = f"{limit} connections follow already; end one first"
        raise Refused(503, text, "Busy", {"retry-after": "5"})
    return _Following(service, request, events)


class EventStream(StreamingResponse):
    """Server-sent events."""

    media_type = TYPE


class _Following(EventStream):
    """Events on their way to one who follows; has its place from when it is promised to its end."""

    def __init__(
        self, service: Service, request: Request, events: AsyncIterator[Event | None]
    ) -> None:
        headers = {"x-accel-buffering": "no"}
        super().__init__(_sent(service, request, events), headers=headers)
        self._counts = service.counts
        self._counts.followers += 1

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._counts.followers -= 1


async def _sent(
    service: Service, request: Request, events: AsyncIterator[Event | None]
) -> AsyncIterator[str | bytes]:
    clock = asyncio.get_running_loop().time
    last = clock()
    try:
        yield ": headwater\n\n"
        async for event in events:
            if event is not None:
                last = clock()
                yield event.text()
            elif clock() - last > ALIVE:
                last = clock()
                yield ": \n\n"
            if service.ending.is_set() or await request.is_disconnected():
                return
    except HeadwaterError as error:
        yield Event("trouble", {"error": str(error)}).text()
    except Exception as error:  # noqa: BLE001 - told, as everything that ends it
        said = unexpected(error, request.method, request.url.path)
        yield Event("trouble", {"error": said["error"]}).text()


def last_id(request: Request, given: str | None) -> str | None:
    """Where to go on: after the last event that the client saw, or where it asks to begin."""
    return request.headers.get("last-event-id") or given
