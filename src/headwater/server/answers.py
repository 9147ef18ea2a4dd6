"""Tables as answers: JSON for people and pages, Arrow for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from fastapi import Response

from headwater.plain import plain
from headwater.server.failures import body_of
from headwater.streams.schema import type_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fastapi import Request

ARROW = "application/vnd.apache.arrow.stream"
IDS = frozenset({"id", "result_id", "source_id", "survivor"})
"""Columns of ids: text in JSON, as 64 bits are more than JavaScript's numbers hold."""
_SAFE = 1 << 53


def table(
    request: Request,
    rows: pa.Table,
    *,
    limit: int | None = None,
    after: str | None = None,
    ids: Iterable[str] = IDS,
    **more: Any,
) -> Response:
    """A table in the form that the request accepts, `limit` rows of it at most."""
    cut = limit is not None and rows.num_rows > limit
    shown = rows.slice(0, limit) if cut else rows
    if wants_arrow(request):
        headers = {"x-headwater-next": after} if after is not None else {}
        if cut:
            headers["x-headwater-truncated"] = str(rows.num_rows)
        return Response(ipc(shown), media_type=ARROW, headers=headers)
    if cut:
        more["total"] = rows.num_rows
    return answer({**as_json(shown, ids), "next": after, "truncated": cut, **more})


def part(rows: pa.Table, limit: int, ids: Iterable[str] = IDS) -> dict[str, Any]:
    """A table within an answer, `limit` rows of it at most."""
    cut = rows.num_rows > limit
    return {**as_json(rows.slice(0, limit), ids), "truncated": cut, "total": rows.num_rows}


def answer(value: Any, status: int = 200) -> Response:
    """Any value as JSON."""
    return Response(encoded(value), status, media_type="application/json")


def encoded(value: Any) -> bytes:
    """JSON as it is sent: whole numbers that JavaScript can't hold are text."""
    return body_of(safe(plain(value)))


def as_json(rows: pa.Table, ids: Iterable[str] = IDS) -> dict[str, Any]:
    """Columns with their types, and rows."""
    named = [f.name for f in rows.schema if f.name in ids and pa.types.is_integer(f.type)]
    told = [safe(plain(row)) for row in rows.to_pylist()]
    for row in told:
        for name in named:
            if row[name] is not None:
                row[name] = str(row[name])
    return {"columns": columns(rows.schema), "rows": told}


def columns(schema: pa.Schema) -> list[dict[str, str]]:
    """The names and types of columns, as Spark calls them."""
    return [{"name": field.name, "type": _type(field.type)} for field in schema]


def wants_arrow(request: Request) -> bool:
    """Whether the request asks for Arrow."""
    return ARROW in request.headers.get("accept", "")


def ipc(rows: pa.Table) -> bytes:
    """A table as a stream of Arrow's."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def safe(value: Any) -> Any:
    """A value of JSON without numbers that JavaScript would round.

    >>> safe({"n": 2**60, "few": [1, 2]})
    {'n': '1152921504606846976', 'few': [1, 2]}
    """
    if isinstance(value, int) and not isinstance(value, bool) and not -_SAFE <= value <= _SAFE:
        return str(value)
    if isinstance(value, dict):
        return {name: safe(item) for name, item in value.items()}
    if isinstance(value, list):
        return [safe(item) for item in value]
    return value


def _type(kind: pa.DataType) -> str:
    try:
        return type_text(kind)
    except Exception:  # noqa: BLE001 - a type that Spark has no word for
        return str(kind)
