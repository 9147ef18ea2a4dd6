"""Tables as answers: JSON for people and pages, Arrow for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from fastapi import Response

from headwater.errors import PredicateError
from headwater.plain import plain
from headwater.server.failures import body_of
from headwater.streams.schema import type_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
    keys: Sequence[str] = (),
    since: str | None = None,
    ids: Iterable[str] = IDS,
    **more: Any,
) -> Response:
    """A table in the form that the request accepts, `limit` rows of it at most.

    `keys` are columns that tell its rows apart. By them it goes on after a place (`since`), which
    is what an earlier answer said that the next page is `after`.
    """
    total = rows.num_rows
    if since is not None:
        rows = rows.slice(_place(rows, keys, since) + 1)
    cut = limit is not None and rows.num_rows > limit
    shown = rows.slice(0, limit) if cut else rows
    if cut and keys:
        last = shown.slice(shown.num_rows - 1).select(list(keys)).to_pylist()[0]
        after = json.dumps(list(last.values()))
    if wants_arrow(request):
        headers = {"x-headwater-next": after} if after is not None else {}
        if cut:
            headers["x-headwater-truncated"] = str(total)
        return Response(ipc(shown), media_type=ARROW, headers=headers)
    if cut:
        more["total"] = total
    return answer({**as_json(shown, ids), "next": after, "truncated": cut, **more})


def _place(rows: pa.Table, keys: Sequence[str], told: str) -> int:
    """The row that a place names."""
    try:
        values = json.loads(told)
        chosen = pa.repeat(pa.scalar(True), rows.num_rows)
        for name, value in zip(keys, values, strict=True):
            column = rows[name].combine_chunks()
            wanted = pa.scalar(value, column.type)
            same = pc.is_null(column) if value is None else pc.equal(column, wanted)
            chosen = pc.and_(chosen, pc.fill_null(same, False))
        found = pc.index(chosen, True).as_py()
    except (ValueError, TypeError, OverflowError, RecursionError, pa.ArrowException) as error:
        raise PredicateError(f"{told[:200]!r} is no place: give the `next` of a page") from error
    if found < 0:
        raise PredicateError(f"{told[:200]!r} is no place of this answer, or is there no more")
    return int(found)


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
    """Columns with their types, and rows, to be `encoded`."""
    named = [f.name for f in rows.schema if f.name in ids and pa.types.is_integer(f.type)]
    told = rows.to_pylist()
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
