"""What every ordered step is, and rows of several keys with what was kept of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.names import GROUP

if TYPE_CHECKING:
    from collections.abc import Sequence

State: TypeAlias = dict[str, pa.Table]
"""What a step keeps between micro-batches: tables by name, none at first."""

Indices: TypeAlias = npt.NDArray[np.int64]


class Step(Protocol):
    """Rows and state in, results and state out."""

    def apply(
        self, state: State, rows: pa.Table, watermark: int | None = None
    ) -> tuple[pa.Table, State]:
        """The results of rows that arrived, sorted by key and arrival, and the state after them.

        `watermark` is the micro-batch's, in microseconds, for steps that are told the time.
        """
        ...


def in_order(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The rows of each key together, sorted by some columns, nulls first."""
    keys = [(name, "ascending", "at_start") for name in (GROUP, *columns)]
    return rows.take(pc.sort_indices(rows, sort_keys=keys))


@dataclass(frozen=True, slots=True)
class Segments:
    """Rows of several keys, those of a key together, the kept ones first.

    The rows of key `i` are those from `starts[i]` to before `ends[i]`; `old[i]` of them were kept.
    """

    rows: pa.Table
    groups: Indices
    starts: Indices
    ends: Indices
    old: Indices

    def __len__(self) -> int:
        return len(self.groups)


def segments(kept: pa.Table | None, new: pa.Table) -> Segments:
    """What was kept of some keys' rows, followed by the new ones."""
    number = 0 if kept is None else kept.num_rows
    rows = new if kept is None else pa.concat_tables([kept.select(new.column_names), new])
    rows = rows.combine_chunks()
    groups = column(rows, GROUP)
    order = np.argsort(groups, kind="stable")
    if number:
        rows = rows.take(order)
    groups = groups[order]
    unique, starts = np.unique(groups, return_index=True)
    ends = np.append(starts[1:], len(groups)).astype(np.int64)[: len(starts)]
    is_old = (order < number).astype(np.int64)
    old = np.add.reduceat(is_old, starts) if len(starts) else np.empty(0, np.int64)
    return Segments(rows, unique, starts.astype(np.int64), ends, old)


def column(rows: pa.Table, name: str) -> Indices:
    """A column of integers without nulls."""
    values: Indices = rows[name].to_numpy().astype(np.int64, copy=False)
    return values


def ranges(starts: Indices, lengths: Indices) -> Indices:
    """The numbers of several runs, one run after the other.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    before = np.cumsum(lengths) - lengths
    total = int(lengths.sum())
    return np.arange(total, dtype=np.int64) - np.repeat(before - starts, lengths)


def looked_up(keys: Indices, table: pa.Table | None, key: str, value: str, default: int) -> Indices:
    """The value of each key in a table of two columns, or a default."""
    out = np.full(len(keys), default, np.int64)
    if table is None or not table.num_rows or not len(keys):
        return out
    known = column(table, key)
    order = np.argsort(known)
    places = np.clip(np.searchsorted(known, keys, sorter=order), 0, len(known) - 1)
    found = known[order[places]] == keys
    out[found] = column(table, value)[order[places[found]]]
    return out


def updated(table: pa.Table | None, keys: Indices, key: str, value: str, new: Indices) -> pa.Table:
    """A table of two columns with the values of some keys changed or added."""
    changed = pa.table({key: keys, value: new})
    if table is None or not table.num_rows:
        return changed
    rest = table.filter(pa.array(~np.isin(column(table, key), keys)))
    return pa.concat_tables([rest, changed]).combine_chunks()
