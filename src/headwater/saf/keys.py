"""Event keys, and how tables of any kind become Arrow tables of keys."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from headwater.errors import TableError

COLUMNS = ("timestamp", "seqno", "stream_id", "delay")
SCHEMA = pa.schema([(name, pa.int64()) for name in COLUMNS])


@dataclass(frozen=True, slots=True)
class Key:
    """What identifies an event: when it was made (ms), its place in its stream, and the delay.

    The delay is the time (ms) that the operation took: 0 for an event that enters the system.
    """

    timestamp: int
    seqno: int
    stream_id: int
    delay: int = 0


Keys: TypeAlias = "Key | list[Key] | tuple[Key, ...] | Any"
"""One key, several, or a table with the columns of a key."""


def arrow(data: Any, what: str) -> pa.Table:
    """Anything tabular as an Arrow table: Arrow, pandas, a Spark DataFrame, a DuckDB relation."""
    if isinstance(data, pa.Table):
        return data
    try:
        if hasattr(data, "toArrow"):
            return data.toArrow()
        if hasattr(data, "__arrow_c_stream__"):
            return pa.table(data)
    except pa.ArrowException as error:
        reason = " ".join(str(error).split())
        raise TableError(f"{what} can't be read as an Arrow table: {reason}") from error
    raise TableError(
        f"{what} must be a table (Arrow, pandas, Spark or DuckDB), not {type(data).__name__}"
    )


def key_columns(table: pa.Table, what: str) -> pa.Table:
    """The four columns of a key as 64-bit integers, checked."""
    if missing := [name for name in COLUMNS if name not in table.column_names]:
        has = ", ".join(table.column_names) or "no columns"
        raise TableError(f"{what} has no column {missing[0]!r}; it has: {has}")
    columns = []
    for name in COLUMNS:
        column = table[name]
        # A column without any value has no type of its own.
        if not pa.types.is_integer(column.type) and not pa.types.is_null(column.type):
            unit = "" if name in ("seqno", "stream_id") else " of milliseconds"
            raise TableError(f"{what}: column {name!r} is {column.type}, not integers{unit}")
        if column.null_count:
            raise TableError(f"{what}: column {name!r} has nulls; every event needs a whole key")
        try:
            columns.append(column.cast(pa.int64()))
        except pa.ArrowInvalid as error:
            raise TableError(f"{what}: column {name!r} exceeds 64-bit integers") from error
    return pa.table(columns, schema=SCHEMA)


def key_table(keys: Keys, what: str) -> pa.Table:
    """Keys as a table, with any further columns that the given table has."""
    if isinstance(keys, Key):
        keys = [keys]
    if isinstance(keys, (list, tuple, set, frozenset)):
        for key in keys:
            if not isinstance(key, Key):
                raise TableError(f"{what} must be saf.Key objects or a table, not {key!r}")
        return pa.Table.from_pylist([asdict(key) for key in keys], schema=SCHEMA)
    table = arrow(keys, what)
    rest = [name for name in table.column_names if name not in COLUMNS]
    checked = key_columns(table, what)
    for name in rest:
        checked = checked.append_column(name, table[name])
    return checked


def key_list(table: pa.Table) -> list[Key]:
    """The rows of a table as keys."""
    return [Key(**row) for row in table.select(COLUMNS).to_pylist()]
