"""Events as JSON texts, one each, that others can read, and back.

Times are ISO 8601, decimals and what is not a number are texts, bytes are base64, and maps are
objects.
"""

from __future__ import annotations

import base64
import json
import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.streams.sifting import sift

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def encode(table: pa.Table) -> list[bytes]:
    """Each event of a table as JSON.

    >>> encode(pa.table({"n": [1], "d": [pa.scalar(0, pa.date32())], "x": [float("nan")]}))
    [b'{"n":1,"d":"1970-01-01","x":"NaN"}']
    """
    names = table.column_names
    columns = [_plain(table.column(field.name), field.type) for field in table.schema]
    return [
        _encode(dict(zip(names, row, strict=True))).encode() for row in zip(*columns, strict=True)
    ]


def decode(texts: Sequence[bytes | None], schema: pa.Schema) -> tuple[pa.Table, dict[int, str]]:
    """The events that fit a schema, and by their places the reasons why others don't.

    What is in an event beside the columns is left out.
    """
    told: list[Any] = []
    for text in texts:
        try:
            told.append(json.loads(text or b""))
        except (ValueError, RecursionError):
            told.append(None)
    return fitted(told, schema)


def fitted(told: Sequence[Any], schema: pa.Schema) -> tuple[pa.Table, dict[int, str]]:
    """The same of events that are JSON's values already."""
    rows: list[dict[str, Any]] = []
    places: list[int] = []
    reasons: dict[int, str] = {}
    names = schema.names
    decoders = {f.name: decoder for f in schema if (decoder := _decoder(f.type)) is not None}
    for place, event in enumerate(told):
        try:
            if not isinstance(event, dict):
                raise ValueError
            row = {name: event.get(name) for name in names}
            for name, decoder in decoders.items():
                if row[name] is not None:
                    row[name] = decoder(row[name])
        except (ValueError, TypeError, AttributeError, RecursionError):
            reasons[place] = "not a JSON object of the stream's columns"
            continue
        rows.append(row)
        places.append(place)
    table, bad = sift(rows, schema)
    return table, {**reasons, **{places[at]: reason for at, reason in bad.items()}}


def _plain(column: pa.ChunkedArray, kind: pa.DataType) -> list[Any]:
    """The values of a column as JSON knows them; whole columns at once where that is faster."""
    if pa.types.is_timestamp(kind):
        zone = "" if kind.tz is None else "Z"
        texts: list[Any] = pc.strftime(column, f"%Y-%m-%dT%H:%M:%S{zone}").to_pylist()
        return texts
    values: list[Any] = column.to_pylist()
    if pa.types.is_floating(kind) and pc.all(pc.is_finite(column)).as_py() is not False:
        return values
    encoder = _encoder(kind)
    if encoder is None:
        return values
    return [None if value is None else encoder(value) for value in values]


def _encoder(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """What makes a value one of JSON; None where it is one."""
    t = pa.types
    if t.is_floating(kind):
        return _number
    if t.is_decimal(kind):
        return str
    if t.is_binary(kind) or t.is_large_binary(kind):
        return lambda value: base64.b64encode(value).decode()
    if t.is_date(kind):
        return lambda value: value.isoformat()
    if t.is_timestamp(kind):
        zone = "" if kind.tz is None else "Z"
        return lambda value: value.replace(tzinfo=None).isoformat(timespec="microseconds") + zone
    if t.is_list(kind):
        item = _encoder(kind.value_type)
        return None if item is None else lambda value: [_maybe(item, each) for each in value]
    if t.is_struct(kind):
        parts = {part.name: _encoder(part.type) for part in kind}
        return lambda value: {name: _maybe(parts[name], each) for name, each in value.items()}
    if t.is_map(kind):
        key, item = _encoder(kind.key_type), _encoder(kind.item_type)
        return lambda value: {_name(_maybe(key, k)): _maybe(item, each) for k, each in value}
    return None


def _decoder(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """What makes bytes of base64 wherever they are in a value; None where there are none."""
    t = pa.types
    if t.is_binary(kind) or t.is_large_binary(kind):
        return lambda value: base64.b64decode(value, validate=True)
    if t.is_list(kind) and (item := _decoder(kind.value_type)) is not None:
        return lambda value: [_maybe(item, each) for each in value]
    if t.is_struct(kind):
        parts = {part.name: _decoder(part.type) for part in kind}
        if any(part is not None for part in parts.values()):
            return lambda value: {k: _maybe(parts.get(k), each) for k, each in value.items()}
    if t.is_map(kind):
        key, item = _decoder(kind.key_type), _decoder(kind.item_type)
        if key is not None or item is not None:
            return lambda value: {_maybe(key, k): _maybe(item, v) for k, v in value.items()}
    return None


def _maybe(change: Callable[[Any], Any] | None, value: Any) -> Any:
    return value if value is None or change is None else change(value)


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _name(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)
