"""Services at a URL: one POST of a JSON object for each event."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from headwater.service.calls import Failed, Final, TimedOut

MOST_BYTES = 16 * 1024 * 1024
"""A longer answer is refused."""

_AGAIN = (408, 429)
"""Answers of the 4xx kind that another attempt may change."""


class _NoRedirect(HTTPRedirectHandler):
    """A redirect of a POST would become a GET: it is a failure instead."""

    def redirect_request(self, *_: Any) -> None:
        return None


_opener = build_opener(_NoRedirect)


def post(url: str, event: Mapping[str, Any], timeout: float) -> Any:
    """The answer to an event, from JSON."""
    body = send(url, event, timeout)
    try:
        return json.loads(body)
    except ValueError:
        raise Final(f"the answer is not JSON: {body[:60]!r}") from None


def send(
    url: str,
    event: Mapping[str, Any],
    timeout: float,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """What is answered to an event, as it is; `headers` go beside those that JSON needs."""
    own = {"Content-Type": "application/json", "Accept": "application/json"}
    request = Request(url, _body(event), {**(headers or {}), **own}, method="POST")
    try:
        with _opener.open(request, timeout=timeout) as response:
            body = response.read(MOST_BYTES + 1)
    except HTTPError as error:
        with error:
            said = f"HTTP {error.code} {error.reason}".strip()
        if error.code < 500 and error.code not in _AGAIN:
            raise Final(said) from error
        raise Failed(said) from error
    except TimeoutError as error:
        raise TimedOut from error
    except URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise TimedOut from error
        raise Failed(str(error.reason)) from error
    except (OSError, HTTPException) as error:
        raise Failed(f"{type(error).__name__}: {error}") from error
    if len(body) > MOST_BYTES:
        raise Final(f"the answer is longer than {MOST_BYTES} bytes")
    return bytes(body)


def as_json(values: Mapping[str, Any]) -> str:
    """Values as a JSON object: times as ISO text, decimals as text, bytes as base64."""
    return json.dumps(values, default=_plain, allow_nan=False)


def _body(event: Mapping[str, Any]) -> bytes:
    try:
        return as_json(event).encode()
    except (TypeError, ValueError) as error:
        raise Final(f"the request can't be written as JSON: {error}") from error


def _plain(value: Any) -> Any:
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Decimal():
            return str(value)
        case bytes() | bytearray():
            return base64.b64encode(value).decode("ascii")
        case Mapping():
            return dict(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")
