"""Events as given (rows, Arrow, pandas) made into a table of their stream's schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from headwater.streams.errors import SchemaClash, StreamError
from headwater.streams.schema import type_text

if TYPE_CHECKING:
    import pandas as pd

Row: TypeAlias = "Mapping[str, Any]"
Events: TypeAlias = "Row | Sequence[Row] | pa.Table | pa.RecordBatch | pd.DataFrame"


def as_rows_or_table(events: Events) -> list[Row] | pa.Table:
    """The two forms that everything given comes down to."""
    if isinstance(events, pa.Table):
        return events
    if isinstance(events, pa.RecordBatch):
        return pa.Table.from_batches([events])
    if isinstance(events, Mapping):
        return [events]
    if hasattr(events, "iloc"):  # without importing pandas, which takes long
        return pa.Table.from_pandas(events, preserve_index=False)
    if isinstance(events, Sequence) and not isinstance(events, str | bytes):
        if events and isinstance(events[0], pa.RecordBatch):
            return pa.Table.from_batches(events)
        for event in events:
            if not isinstance(event, Mapping):
                raise StreamError(f"an event is a mapping of columns, not {type(event).__name__}")
        return list(events)
    raise StreamError(
        f"events are mappings, a list of them, Arrow or pandas, not {type(events).__name__}"
    )


def conform(events: list[Row] | pa.Table, schema: pa.Schema, stream: str) -> pa.Table:
    """The events with exactly the columns of the schema; what is absent is null."""
    if isinstance(events, list):
        return _from_rows(events, schema, stream)
    return _from_table(events, schema, stream)


def _from_rows(rows: list[Row], schema: pa.Schema, stream: str) -> pa.Table:
    known = set(schema.names)
    for row in rows:
        if not row.keys() <= known:
            _refuse_unknown(row, schema, stream)
    columns = [column([row.get(field.name) for row in rows], field, stream) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def column(values: list[Any], field: pa.Field, stream: str) -> pa.Array:
    """The values of one column."""
    return _required(_from_values(values, field, stream), field, stream)


def _from_values(values: list[Any], field: pa.Field, stream: str) -> pa.Array:
    try:
        # Its own type first: told the wanted one, Arrow would cut 1.5 to 1 without a word.
        given = pa.array(values)
        if _nested(field.type):
            _require_compatible(given.type, field, stream)
            return pa.array(values, field.type)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise _clash(field, stream, f"has values of different types ({_short(error)})") from error
    return _cast(given, field, stream)


def _from_table(table: pa.Table, schema: pa.Schema, stream: str) -> pa.Table:
    for name in table.column_names:
        if name not in schema.names:
            _refuse_unknown({name: None}, schema, stream)
        if table.column_names.count(name) > 1:
            raise SchemaClash(f"column {name!r} is twice in what was given to stream {stream!r}")
    if table.schema.equals(schema):
        columns = table.columns
    else:
        columns = [
            _cast(table.column(field.name), field, stream)
            if field.name in table.column_names
            else pa.nulls(table.num_rows, field.type)
            for field in schema
        ]
    checked = [
        _required(column, field, stream) for column, field in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(checked, schema=schema)


def _cast(values: Any, field: pa.Field, stream: str) -> Any:
    if values.type.equals(field.type):
        return values
    _require_compatible(values.type, field, stream)
    try:
        return values.cast(field.type)
    except pa.ArrowException as error:
        raise _clash(field, stream, f"has a value that does not fit ({_short(error)})") from error


def _required(values: Any, field: pa.Field, stream: str) -> Any:
    if not field.nullable and values.null_count:
        raise _clash(field, stream, "may not be null, and an event lacks it")
    return values


def _require_compatible(given: pa.DataType, field: pa.Field, stream: str) -> None:
    if not compatible(given, field.type):
        wanted = type_text(field.type, field.name)
        raise _clash(field, stream, f"is {wanted}, not {type_text(given, field.name)}")


def compatible(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of a type can stand for those of another without a change of meaning."""
    t = pa.types
    if given.equals(wanted) or t.is_null(given):
        return True
    if t.is_dictionary(given):
        return compatible(given.value_type, wanted)
    if t.is_integer(wanted):
        # A float with a whole value is taken, another is refused when it is cast.
        return bool(t.is_integer(given) or t.is_floating(given))
    if t.is_floating(wanted):
        return bool(t.is_integer(given) or t.is_floating(given) or t.is_decimal(given))
    if t.is_decimal(wanted):
        return bool(t.is_integer(given) or t.is_decimal(given))
    for same in (_is_text, _is_binary, t.is_timestamp, t.is_date):
        if same(wanted):
            return bool(same(given))
    if t.is_map(wanted):
        return bool(t.is_map(given) or t.is_struct(given))
    if t.is_struct(wanted):
        inner = {part.name: part.type for part in wanted}
        return t.is_struct(given) and all(
            part.name in inner and compatible(part.type, inner[part.name]) for part in given
        )
    if t.is_list(wanted):
        return bool(_is_list(given)) and compatible(given.value_type, wanted.value_type)
    return False


def _nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _is_list(kind: pa.DataType) -> bool:
    t = pa.types
    return bool(t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind))


def _refuse_unknown(row: Row, schema: pa.Schema, stream: str) -> None:
    name = next(name for name in row if name not in schema.names)
    raise SchemaClash(
        f"column {name!r} is not in stream {stream!r}; its columns are {', '.join(schema.names)}"
    )


def _clash(field: pa.Field, stream: str, what: str) -> SchemaClash:
    return SchemaClash(f"column {field.name!r} of stream {stream!r} {what}")


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:120]
