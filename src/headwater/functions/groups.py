"""A user's function of groups: any number of rows for each, and which of its rows they are from."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from headwater.functions.frames import Shape, given

if TYPE_CHECKING:
    from collections.abc import Callable

NO_KEY = "__hw_none"
"""Stands for the key of groups that have none: Arrow has no struct without fields."""


def group_function(
    function: Callable[..., Any],
    shape: Shape,
    *,
    with_key: bool,
    contributing: str | None,
    forgiving: bool = False,
) -> Callable[[pa.Array, pa.Array], pa.Array]:
    """The function over arrays of groups, checked: as Spark calls it.

    The first array has the groups' keys, the second their rows, in order. `forgiving`, a group that
    the function can't take gives no rows: a replay has groups that its slice cuts off.
    """

    def of_group(key: tuple[Any, ...], rows: pa.StructArray) -> pa.StructArray:
        frame = given(rows, "pandas")
        made = shape.array(function(key, frame) if with_key else function(frame))
        if contributing is not None:
            check_positions(made, contributing, len(rows), f"{shape.where}, group {key}")
        return made

    def apply(keys: pa.Array, groups: pa.Array) -> pa.Array:
        made = []
        for key, group in zip(keys, groups, strict=True):
            try:
                made.append(of_group(key_of(key, shape.timezone), group.values))
            except Exception:
                if not forgiving:
                    raise
                made.append(pa.array([], shape.type))
        offsets = np.concatenate([[0], np.cumsum([len(rows) for rows in made])])
        whole = pa.concat_arrays(made) if made else pa.array([], shape.type)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), whole)

    apply.__annotations__ = {"keys": pa.Array, "groups": pa.Array, "return": pa.Array}
    return apply


def key_of(key: pa.StructScalar, timezone: str) -> tuple[Any, ...]:
    """A group's key as a function takes it: a tuple; a window in it is a dict of its ends."""
    values = key.as_py().items()
    return tuple(_plain(value, timezone) for name, value in values if name != NO_KEY)


def check_positions(rows: pa.StructArray, column: str, size: int, where: str) -> None:
    """Refuse contributing positions that are none of a group's rows."""
    for positions in rows.field(column).to_pylist():
        if positions is None:
            raise ValueError(f"{where}: {column!r} is null; an empty list says that no row counts")
        for position in positions:
            if position is None or not 0 <= position < size:
                said = "null" if position is None else position
                raise ValueError(
                    f"{where}: position {said} in {column!r} is none of the group's {size} rows"
                )


def _plain(value: Any, timezone: str) -> Any:
    """A key's value as in a pandas frame: times without a zone, in that of the session."""
    match value:
        case dict():
            return {name: _plain(part, timezone) for name, part in value.items()}
        case datetime() if value.tzinfo is not None:
            return pd.Timestamp(value).tz_convert(timezone).tz_localize(None)
        case datetime():
            return pd.Timestamp(value)
    return value
