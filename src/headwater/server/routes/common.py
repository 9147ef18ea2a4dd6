"""What routes share: parameters, and the errors that each may answer with."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict

from headwater.cli.values import parse_id
from headwater.errors import PredicateError
from headwater.server.answers import ARROW


class Failure(BaseModel):
    """What an error's answer says."""

    error: str
    kind: str
    violations: list[dict[str, Any]] | None = None


class Column(BaseModel):
    """A column of a table."""

    name: str
    type: str


class Table(BaseModel):
    """Rows under named columns. Where there are more than are shown, `total` says how many."""

    model_config = ConfigDict(extra="allow")

    columns: list[Column]
    rows: list[dict[str, Any]]
    next: str | None
    truncated: bool
    total: int = 0


class Body(BaseModel):
    """A request's body: what it does not know is an error."""

    model_config = ConfigDict(extra="forbid")


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Failure, "description": text}
    for status, text in {
        400: "The request can't be read.",
        401: "A token is needed, or the one given is wrong.",
        403: "Not allowed here.",
        404: "Nothing is known by this name or id.",
        408: "The request did not come whole in time.",
        409: "Refused: the answer says why, and what to do.",
        413: "Too large.",
        415: "Of a kind that is not taken here.",
        421: "The service does not go by this name.",
        422: "Wrong values, conditions or flows; the answer names each.",
        429: "Too many requests; `retry-after` says when to come back.",
        500: "Something went wrong in the service; its output says where.",
        503: "Busy (`Busy`), or it took too long (`TimedOut`).",
    }.items()
}
"""What every route may answer, beside what it is for."""
TABLE: dict[int | str, dict[str, Any]] = {
    200: {
        "model": Table,
        "description": "The rows, as JSON or as Arrow.",
        "content": {
            "application/json": {
                "example": {
                    "columns": [{"name": "id", "type": "bigint"}, {"name": "n", "type": "int"}],
                    "rows": [{"id": "-4857922941336840149", "n": 4}],
                    "next": None,
                    "truncated": False,
                }
            },
            ARROW: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
"""What routes answer whose answer is a table."""

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$"
FlowName = Annotated[str, Path(pattern=NAME, description="A deployed flow.")]
StreamName = Annotated[str, Path(pattern=NAME, description="A named stream.")]
Limit = Annotated[int, Query(ge=1, description="Rows at most; the service has a limit, too.")]
Where = Annotated[
    str | None,
    Query(max_length=4_000, description="An SQL condition on the rows' columns."),
]
Moment = Annotated[
    str | None,
    Query(max_length=40, description="A time, ISO 8601; UTC unless it says otherwise."),
]
Ids = Annotated[
    list[str] | None,
    Query(max_length=1_000, description="Ids; repeat the parameter for several."),
]
After = Annotated[
    str | None,
    Query(max_length=3_000, description="Go on after this place: the `next` of the page before."),
]

_BOUND = 1 << 63


def given_id(text: str) -> Any:
    """An id as it was given: a number, or the source's own value; JSON says what is unclear."""
    try:
        value = parse_id(text.lstrip()) if not text.startswith("-") else int(text)
    except Exception as error:
        raise PredicateError(f"{text[:200]!r} is no id: give a number, a text, or JSON") from error
    return _bounded(value)


def _bounded(value: Any) -> Any:
    if isinstance(value, int) and not -_BOUND <= value < _BOUND:
        raise PredicateError(f"{value} is no id: ids have 64 bits")
    return value


def given_ids(texts: list[str]) -> Any:
    """One id alone, or several as a list."""
    found = [given_id(text) for text in texts]
    return found[0] if len(found) == 1 else found


def result_ids(texts: list[str]) -> Any:
    """Ids of results, which are numbers."""
    try:
        found = [_bounded(int(text)) for text in texts]
    except ValueError as error:
        raise PredicateError(f"a result id is a whole number: {error}") from error
    return found[0] if len(found) == 1 else found
