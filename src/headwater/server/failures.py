"""Errors as the service answers them: a status, and one line that says what to do."""

from __future__ import annotations

import json
import sys
import traceback
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from headwater.compose import CompositionError
from headwater.errors import (
    HeadwaterError,
    PredicateError,
    QueryTimeout,
    StoreError,
    UnknownId,
    UnknownName,
)
from headwater.store.select import QueryFailed
from headwater.streams import StreamError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import FastAPI, Request

_STATUS: tuple[tuple[type[HeadwaterError], int], ...] = (
    (QueryTimeout, 503),
    (UnknownId, 404),
    (UnknownName, 404),
    (CompositionError, 422),
    (PredicateError, 422),
    (StreamError, 409),
    (QueryFailed, 422),
    (StoreError, 409),
    (HeadwaterError, 409),
)
"""The first that fits is the status of an error."""
LONGEST = 2_000
"""Characters of an error at most: it may quote what was sent."""
_KINDS = {404: "UnknownPath", 405: "Method", 408: "TooSlow", 413: "TooLarge"}


class Refused(Exception):
    """A request that is not carried out: a status, and why."""

    def __init__(
        self, status: int, text: str, kind: str = "Refused", headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(text)
        self.status, self.kind, self.headers = status, kind, headers or {}


def told(error: str, kind: str, **more: Any) -> dict[str, Any]:
    """What an error's answer says."""
    text = " ".join(error.split())
    return {"error": text if len(text) <= LONGEST else f"{text[:LONGEST]} …", "kind": kind, **more}


def body_of(value: Any) -> bytes:
    """JSON as it is sent; half characters, which UTF-8 lacks, are escaped."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def _response(
    told: dict[str, Any], status: int, headers: Mapping[str, str] | None = None
) -> Response:
    given = None if headers is None else dict(headers)
    return Response(body_of(told), status, given, "application/json")


def unexpected(error: BaseException, method: str, path: str) -> dict[str, Any]:
    """What is said of an error that nobody foresaw; where it happened goes to stderr.

    Neither has the error's text: what was sent, a token even, may be quoted in it.
    """
    lines = [f"headwater: {method} {path} went wrong"]
    one: BaseException | None = error
    while one is not None:
        lines += [f"  {type(one).__module__}.{type(one).__qualname__}, raised at"]
        lines += [line.rstrip() for line in traceback.format_tb(one.__traceback__)]
        one = one.__cause__ or one.__context__
    print("\n".join(lines), file=sys.stderr, flush=True)
    return told(f"{method} {path} went wrong here: {type(error).__name__}", "Internal")


def answer(error: HeadwaterError) -> Response:
    """An error of Headwater's own."""
    status = next(number for kind, number in _STATUS if isinstance(error, kind))
    more: dict[str, Any] = {}
    if isinstance(error, CompositionError):
        more["violations"] = [each.as_json() for each in error.violations]
    kind = "TimedOut" if isinstance(error, QueryTimeout) else type(error).__name__
    return _response(told(str(error), kind, **more), status)


def install(app: FastAPI) -> None:
    """Have an application answer all errors in one form."""

    @app.exception_handler(HeadwaterError)
    async def known(request: Request, error: HeadwaterError) -> Response:
        return answer(error)

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> Response:
        return _response(told(str(error), error.kind), error.status, error.headers)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        text = f"{request.method} {request.url.path[:200]}: {error.detail}"
        kind = _KINDS.get(error.status_code, "Http")
        return _response(told(text, kind), error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        places = [_place(each)[:300] for each in error.errors()]
        more = [f"and {len(places) - 20} more"] if len(places) > 20 else []
        return _response(told("; ".join((*places[:20], *more)), "Invalid"), 422)


def _place(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"] if part not in ("body", "query", "path"))
    return f"{where or 'the request'}: {error['msg']}"
