"""What a match step keeps of each key, and a table's columns as Python values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.names import GROUP, NUMBER, TIME
from headwater.ordered.step import column, looked_up

if TYPE_CHECKING:
    from headwater.ordered.step import Indices, Segments

OPEN, KEYS = "open", "keys"
START = "__hw_start"
"""Which of a key's kept rows is the earliest that may still begin a match; behind them, if none."""
SINCE = "__hw_since"
"""The event time of that row in microseconds; null where there is none."""

NO_KEYS = pa.schema([(n, pa.int64()) for n in (GROUP, NUMBER, START, SINCE)]).empty_table()


def known(keys: pa.Table, parts: Segments) -> tuple[Indices, Indices]:
    """How many matches each key has had, and the row at which its search goes on."""
    counts = looked_up(parts.groups, keys, GROUP, NUMBER, 0)
    return counts, parts.starts + looked_up(parts.groups, keys, GROUP, START, 0)


def updated(
    keys: pa.Table, parts: Segments, counts: Indices, starts: Indices, kept_from: Indices
) -> pa.Table:
    """The table of keys with some of them changed; keys of which nothing is known are left out."""
    is_open = starts < parts.ends
    times = micros(parts.rows[TIME]).combine_chunks()
    changed = pa.table(
        {
            GROUP: parts.groups,
            NUMBER: counts,
            START: starts - kept_from,
            SINCE: times.take(pa.array(starts, mask=~is_open)),
        },
        schema=NO_KEYS.schema,
    ).filter(pa.array((counts > 0) | (kept_from < parts.ends)))
    others = keys.filter(pa.array(~np.isin(column(keys, GROUP), parts.groups)))
    return pa.concat_tables([others, changed]).sort_by(GROUP).combine_chunks()


def micros(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """Event times in microseconds."""
    if pa.types.is_timestamp(times.type):
        times = times.cast(pa.timestamp("us", times.type.tz), safe=False)
    return times.cast(pa.int64())


def is_true(values: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Where a column of truth values is true."""
    found: np.ndarray[Any, np.dtype[np.bool_]] = values.fill_null(False).to_numpy()
    return found


def listed(values: pa.ChunkedArray) -> list[Any]:
    """A column as Python values that can be compared and hashed."""
    kind = values.type
    if not values.null_count and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        numbers: list[Any] = values.to_numpy().tolist()
        return numbers
    made: list[Any] = values.to_pylist()
    return [_frozen(value) for value in made] if pa.types.is_nested(kind) else made


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((name, _frozen(inner)) for name, inner in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(_frozen, value))
    return value
