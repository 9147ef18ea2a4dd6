"""The door of the service: who comes in, how often, with how much; and what answers must say."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from headwater.server.failures import body_of, told, unexpected

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from headwater.server.counting import Counts
    from headwater.server.settings import Settings

READING = frozenset({"GET", "HEAD", "OPTIONS"})
CHECKS = frozenset({"/api/flows/check", "/api/flows/write", "/api/replay"})
"""What is posted and changes nothing: it is reading."""
ALWAYS = frozenset({"/api/health"})
"""What is told without a token, so that it can be known whether one is needed."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_CLIENTS = 10_000
"""Clients whose rates are remembered; the one that was away longest is forgotten first."""


SLOWEST = 60.0
"""Seconds in which a request must have come whole."""


class TooLarge(HTTPException):
    """More was sent than a request may hold."""

    def __init__(self) -> None:
        super().__init__(413, "too much was sent")


class TooSlow(HTTPException):
    """A request that does not come to its end."""

    def __init__(self) -> None:
        super().__init__(408, f"the request did not come whole within {SLOWEST:g} s")


class Guard:
    """Stands before the application (ASGI): refuses, limits, and adds what browsers must know."""

    def __init__(self, app: ASGIApp, settings: Settings, counts: Counts) -> None:
        self._app, self._settings, self._counts = app, settings, counts
        self._rates = Rates(settings.limits.rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status, sent = time.perf_counter(), 500, False
        api = scope["path"].startswith(("/api", "/metrics"))

        async def sending(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status, sent = message["status"], True
                more = [*_HEADERS, (b"cache-control", b"no-store" if api else b"no-cache")]
                message["headers"] = [*message.get("headers", ()), *more]
            await send(message)

        try:
            wrong = self._wrong(scope)
            if wrong is not None:
                await _refuse(sending, *wrong)
            else:
                await self._app(scope, self._limited(receive), sending)
        except ClientDisconnect:
            status = 499
        except Exception as error:  # noqa: BLE001 - told as JSON, whatever it is
            said = unexpected(error, scope["method"], scope["path"][:200])
            if not sent:
                await _respond(sending, 500, said, {})
        finally:
            self._counts.request(scope["method"], status, time.perf_counter() - begun)

    # --- what can be wrong --------------------------------------------------------------------

    def _wrong(self, scope: Scope) -> tuple[int, str, str, dict[str, str]] | None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if not self._is_known(headers.get(b"host", "")):
            return 421, "the service is not known by this name; see --allow-host", "Host", {}
        client = (scope.get("client") or ("", 0))[0]
        if (wait := self._rates.wait(client)) > 0:
            retry = {"retry-after": str(int(wait) + 1)}
            return 429, "too many requests; slow down", "TooMany", retry
        method, path = scope["method"], scope["path"]
        writing = method not in READING and path not in CHECKS
        origin = headers.get(b"origin")
        if method not in READING and origin is not None and not self._is_known(_place(origin)):
            return 403, "pages of other places may not write here", "Origin", {}
        if path.startswith(("/api", "/metrics")) and path not in ALWAYS:
            given = headers.get(b"authorization", "")
            if (refusal := self._unauthorized(given, writing)) is not None:
                return refusal
        try:
            size = int(headers.get(b"content-length", "0"))
        except ValueError:
            return 400, "content-length is not a number", "Invalid", {}
        if size > self._settings.limits.body:
            return self._too_large()
        return None

    def _unauthorized(
        self, given: str, writing: bool
    ) -> tuple[int, str, str, dict[str, str]] | None:
        settings = self._settings
        challenge = {"www-authenticate": 'Bearer realm="headwater"'}
        if writing and settings.token is None:
            return 403, "this service is for reading only", "ReadOnly", {}
        if writing and not _is_same(given, settings.token):
            text = "writing needs the token that `headwater serve` printed"
            return 401, text, "Token", challenge
        if writing or settings.read_token is None:
            return None
        if _is_same(given, settings.read_token) or _is_same(given, settings.token):
            return None
        return 401, "reading needs a token here", "Token", challenge

    def _is_known(self, netloc: str) -> bool:
        """Whether a host, with or without its port, is one that the service goes by."""
        name = netloc.lower()
        if not name.endswith("]"):
            name = name.rsplit(":", 1)[0] if ":" in name else name
        return "*" in self._settings.hosts or name in self._settings.hosts

    def _too_large(self) -> tuple[int, str, str, dict[str, str]]:
        size = self._settings.limits.body >> 20
        return 413, f"more than {size} MiB in one request; send it in pieces", "TooLarge", {}

    def _limited(self, receive: Receive) -> Receive:
        """What is received, as far as it is not too much: a length may be a lie, or absent."""
        limit, got, whole = self._settings.limits.body, 0, False
        until = asyncio.get_running_loop().time() + SLOWEST

        async def receiving() -> Message:
            nonlocal got, whole
            if whole:  # what comes now is that the client is gone
                return await receive()
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError as error:
                raise TooSlow from error
            if message["type"] == "http.request":
                got += len(message.get("body", b""))
                whole = not message.get("more_body", False)
                if got > limit:
                    raise TooLarge
            return message

        return receiving


class Rates:
    """Requests of each client: a bucket of so many, refilled at so many a second."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str, now: float | None = None) -> float:
        """Take one; the seconds to wait where there is none.

        >>> rates = Rates(2.0)
        >>> [rates.wait("a", 0.0) for _ in range(3)], rates.wait("b", 0.0), rates.wait("a", 1.0)
        ([0.0, 0.0, 0.5], 0.0, 0.0)
        """
        moment = time.monotonic() if now is None else now
        left, since = self._buckets.pop(client, (self._rate, moment))
        left = min(self._rate, left + (moment - since) * self._rate)
        wait = 0.0 if left >= 1.0 else (1.0 - left) / self._rate
        self._buckets[client] = (left - 1.0 if not wait else left, moment)
        while len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        return wait


def _place(origin: str) -> str:
    """Where a page is from: a host and a port."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _is_same(given: str, token: str | None) -> bool:
    """Whether a header has the token, in a time that tells nothing of it."""
    if token is None:
        return False
    return hmac.compare_digest(given.encode(), f"Bearer {token}".encode())


async def _refuse(send: Send, status: int, text: str, kind: str, headers: dict[str, str]) -> None:
    await _respond(send, status, told(text, kind), headers)


async def _respond(send: Send, status: int, said: dict[str, Any], headers: dict[str, str]) -> None:
    body = body_of(said)
    head = [(name.encode(), value.encode()) for name, value in headers.items()]
    head += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})
