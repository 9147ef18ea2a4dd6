"""Rows as found in files made into a table, with texts read and bad rows left out.

Whole columns are converted at once; only if that fails is each value looked at, for what is wrong.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.streams.conforming import column
from headwater.streams.errors import StreamError
from headwater.streams.schema import type_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.streams.conforming import Row

_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")


def sift(rows: Sequence[Row], schema: pa.Schema) -> tuple[pa.Table, dict[int, str]]:
    """The rows that fit the schema as a table, and the reasons of the others by their place."""
    reasons: dict[int, str] = {}
    known = set(schema.names)
    for place, row in enumerate(rows):
        if not row.keys() <= known:
            extra = next(name for name in row if name not in known)
            reasons[place] = f"column {extra!r} is not in the schema"
    columns = []
    for field in schema:
        values = [row.get(field.name) for row in rows]
        columns.append(_column(values, field, reasons))
    table = pa.table(columns, names=schema.names)
    if reasons:
        table = table.filter(pa.array([place not in reasons for place in range(len(rows))]))
    return table.cast(schema), reasons


def _column(values: list[Any], field: pa.Field, reasons: dict[int, str]) -> pa.Array:
    try:
        return column(values, field, "")
    except StreamError:
        pass
    if field.nullable and not pa.types.is_nested(field.type):
        try:
            return pa.array(values, pa.string()).cast(field.type)  # all are texts, or nothing
        except pa.ArrowException:
            pass
    return _one_by_one(values, field, reasons)


def _one_by_one(values: list[Any], field: pa.Field, reasons: dict[int, str]) -> pa.Array:
    read: list[Any] = []
    for place, value in enumerate(values):
        try:
            read.append(_read(value, field.type))
            if read[-1] is None and not field.nullable:
                raise ValueError
        except (ValueError, TypeError, OverflowError, InvalidOperation, pa.ArrowException):
            wanted = type_text(field.type, field.name)
            what = "is missing" if value is None else f"{_short(value)} is not a {wanted}"
            reasons.setdefault(place, f"column {field.name!r}: {what}")
            read[place:] = [None]
    return pa.array(read, field.type)


def _read(value: Any, kind: pa.DataType) -> Any:
    """A value as one of a type; texts are read."""
    t = pa.types
    if value is None:
        return None
    text = value.strip() if isinstance(value, str) else None
    if t.is_boolean(kind):
        return _boolean(value if text is None else text)
    if isinstance(value, bool):
        raise ValueError
    if t.is_integer(kind):
        number = value if text is None else _number(text)
        if number != int(number):
            raise ValueError
        return pa.scalar(int(number), kind).as_py()
    if t.is_floating(kind):
        return float(value if text is None else text)
    if t.is_decimal(kind):
        return pa.scalar(Decimal(str(value)), kind).as_py()
    if t.is_timestamp(kind):
        moment = datetime.fromisoformat(text) if text is not None else value
        if not isinstance(moment, datetime):
            raise ValueError
        if kind.tz is not None:
            return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return moment.replace(tzinfo=None)
    if t.is_date(kind):
        return date.fromisoformat(text) if text is not None else value
    if t.is_list(kind) and isinstance(value, list | tuple):
        return [_read(item, kind.value_type) for item in value]
    if t.is_struct(kind) and isinstance(value, dict):
        if not value.keys() <= {part.name for part in kind}:
            raise ValueError
        return {part.name: _read(value.get(part.name), part.type) for part in kind}
    if t.is_map(kind) and isinstance(value, dict):
        key, item = kind.key_type, kind.item_type
        return [(_read(name, key), _read(held, item)) for name, held in value.items()]
    return pa.scalar(value, kind).as_py()


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise ValueError


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
