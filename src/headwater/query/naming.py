"""Names of an answer's columns: fixed ones first, then own ones, prefixed where they clash."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Names = dict[str, str]


def own_names(parts: Mapping[str, Sequence[str]], fixed: Iterable[str]) -> dict[str, Names]:
    """By source or sink, the answer's name of each own column.

    >>> own_names({"a": ["id", "x", "v"], "b": ["x", "w"]}, ["source", "id"])
    {'a': {'id': 'a.id', 'x': 'a.x', 'v': 'v'}, 'b': {'x': 'b.x', 'w': 'w'}}
    """
    taken = {name.casefold() for name in fixed}
    shared = Counter(name.casefold() for columns in parts.values() for name in columns)
    clear = {
        name.casefold()
        for columns in parts.values()
        for name in columns
        if shared[name.casefold()] == 1 and name.casefold() not in taken
    }
    taken |= clear
    answer: dict[str, Names] = {}
    for part, columns in parts.items():
        answer[part] = {}
        for name in columns:
            given = name
            if name.casefold() not in clear:
                given = f"{part}.{name}"
                while given.casefold() in taken:
                    given = f"{part}.{given}"
                taken.add(given.casefold())
            answer[part][name] = given
    return answer


def united(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """The tables under one another in one schema, null where a table has no such column."""
    aligned = [
        pa.table(
            [
                _as(table[field.name], field.type)
                if field.name in table.column_names
                else pa.nulls(table.num_rows, field.type)
                for field in schema
            ],
            schema=schema,
        )
        for table in tables
    ]
    return pa.concat_tables(aligned) if aligned else schema.empty_table()


def by(column: str, table: pa.Table) -> pa.Table:
    """The table in the order of one of its id columns, otherwise as it was."""
    return table.take(pa.array(np.argsort(table[column].to_numpy(), kind="stable")))


def _as(column: pa.ChunkedArray, type: pa.DataType) -> pa.ChunkedArray:
    return column if column.type == type else column.cast(type)
