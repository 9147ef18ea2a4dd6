"""The source records of given ids: kept in the store, or read again from the source."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.query.columns import TIME
from headwater.store import reread
from headwater.store.among import among
from headwater.store.batch import ID, SEQ
from headwater.store.batch import TIME as STORED_TIME
from headwater.store.marks import erased_among
from headwater.store.schema import quoted

if TYPE_CHECKING:
    from headwater.store.catalog import Source
    from headwater.store.reader import Reader

NEAR = (2, 32)  # batches back
MANY = 64  # batches whose results' records are looked for in all at once
Ids = npt.NDArray[np.int64]
Span = tuple[str, list[object]]
"""Batches to look in: a condition and its parameters."""
EVERYWHERE: Span = ("true", [])


def found(
    reader: Reader, source: Source, ids: Ids, *, own: bool = True, near: Ids | None = None
) -> pa.Table:
    """The records that exist among `ids`: `__hw_id`, `__hw_time`, then own columns if asked.

    One whose contents were erased is not found, and not read again from its source.
    `near` is given for records that reached results, and so must exist: the batches (`seq`) of
    these results.
    """
    ids = np.unique(ids)
    tables = []
    # Records mostly come shortly before their results, and a span of batches is found without
    # reading the rest: so look there first, and further back only for what is not there.
    spans: list[Span] = [EVERYWHERE]
    if near is not None and len(near):
        spans = _spans(np.unique(near))
    for span in spans if source.kept else ():
        if len(ids):
            kept = _kept(reader, source, ids, own, span)
            tables.append(kept)
            all_of_them = kept.num_rows == len(ids)
            ids = ids[:0] if all_of_them else np.setdiff1d(ids, kept[ID].to_numpy())
    if len(ids) and own and not source.complete and reread.possible(source):
        ids = np.setdiff1d(ids, erased_among(reader.query, source, ids))
    if len(ids) and own and not source.complete and reread.possible(source):
        again = reread.read(source, ids, reader.query)
        if near is not None and again.num_rows < len(ids):
            missing = np.setdiff1d(ids, again[ID].to_numpy())
            raise reread.vanished(source, missing.tolist())
        tables.append(again)
    schema = pa.schema([(ID, pa.int64()), (STORED_TIME, TIME), *(source.schema if own else ())])
    return pa.concat_tables(
        [pa.table([table[c.name].cast(c.type) for c in schema], schema=schema) for table in tables]
        or [schema.empty_table()]
    )


def _spans(near: Ids) -> list[Span]:
    """Batches to look in, one piece after the other: shortly before those of results."""
    latest = int(near[-1])
    if len(near) > MANY:
        return [EVERYWHERE]
    if len(near) > 1:
        close = ", ".join(map(str, np.unique(near[:, None] - np.arange(NEAR[0] + 1))))
        return [(f"{SEQ} IN ({close})", []), (f"{SEQ} NOT IN ({close})", [])]
    starts = [latest - step for step in NEAR]
    spans: list[Span] = [(f"{SEQ} BETWEEN ? AND ?", [starts[0], latest])]
    spans += [(f"{SEQ} >= ? AND {SEQ} < ?", [low, high]) for high, low in pairwise(starts)]
    return [*spans, (f"({SEQ} < ? OR {SEQ} > ?)", [starts[-1], latest])]


def beside(table: pa.Table, ids: Ids) -> pa.Table:
    """The rows of `table` (unique `__hw_id`s) in the order of `ids`, null where there is none."""
    known = table[ID].to_numpy()
    if not len(known):
        return pa.table(
            [pa.nulls(len(ids), column.type) for column in table.schema], schema=table.schema
        )
    order = np.argsort(known)
    at = np.minimum(np.searchsorted(known, ids, sorter=order), len(known) - 1)
    row = order[at]
    return table.take(pa.array(row, mask=known[row] != ids))


def is_known(reader: Reader, source: Source, ids: Ids) -> Ids:
    """Those of `ids` that the store keeps a record of, or had erased, or the source still has."""
    known: Ids = found(reader, source, ids)[ID].to_numpy()
    return np.union1d(known, erased_among(reader.query, source, ids))


def _kept(reader: Reader, source: Source, ids: Ids, own: bool, span: Span) -> pa.Table:
    names = [ID, STORED_TIME, *(source.schema.names if own else ())]
    columns = ", ".join(quoted(name) for name in names)
    match, params = among(ids)
    batches, given = span
    sql = f"SELECT {columns} FROM record_{source.no} WHERE {batches} AND {ID} {match}"
    return reader.query(sql, [*given, *params])
