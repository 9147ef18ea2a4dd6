"""Errors as the service answers them: a status, and one line that says what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
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
from headwater.streams import StreamError

if TYPE_CHECKING:
    from fastapi import FastAPI, Request

_STATUS: tuple[tuple[type[HeadwaterError], int], ...] = (
    (QueryTimeout, 503),
    (UnknownId, 404),
    (UnknownName, 404),
    (CompositionError, 422),
    (PredicateError, 422),
    (StreamError, 409),
    (StoreError, 503),
    (HeadwaterError, 409),
)
"""The first that fits is the status of an error."""


class Refused(Exception):
    """A request that is not carried out: a status, and why."""

    def __init__(
        self, status: int, text: str, kind: str = "Refused", headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(text)
        self.status, self.kind, self.headers = status, kind, headers or {}


def told(error: str, kind: str, **more: Any) -> dict[str, Any]:
    """What an error's answer says."""
    return {"error": " ".join(error.split()), "kind": kind, **more}


def answer(error: HeadwaterError) -> JSONResponse:
    """An error of Headwater's own."""
    status = next(number for kind, number in _STATUS if isinstance(error, kind))
    more: dict[str, Any] = {}
    if isinstance(error, CompositionError):
        more["violations"] = [each.as_json() for each in error.violations]
    kind = "TimedOut" if isinstance(error, QueryTimeout) else type(error).__name__
    return JSONResponse(told(str(error), kind, **more), status)


def install(app: FastAPI) -> None:
    """Have an application answer all errors in one form."""

    @app.exception_handler(HeadwaterError)
    async def known(request: Request, error: HeadwaterError) -> JSONResponse:
        return answer(error)

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> JSONResponse:
        return JSONResponse(told(str(error), error.kind), error.status, headers=error.headers)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        text = f"{request.method} {request.url.path}: {error.detail}"
        return JSONResponse(told(text, "Http"), error.status_code, headers=error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        places = [_place(each) for each in error.errors()]
        return JSONResponse(told("; ".join(places), "Invalid"), 422)


def _place(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"] if part not in ("body", "query", "path"))
    return f"{where or 'the request'}: {error['msg']}"
