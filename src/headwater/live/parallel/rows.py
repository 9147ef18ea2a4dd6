"""The rows that go to a shard, and the state that it finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from headwater.live.graph import Ints
    from headwater.store.lake.place import Place

ASKED, REACHED, CAME, HELD, KNOWN, TOLD = range(6)
"""Kinds of rows: that a shard is asked, a record with a result, one with its time, one that a
session holds, one that has been a vertex, and what a task before this one has written."""
COLUMNS = "shard int, source_no smallint, kind tinyint, id bigint, value bigint, told string"


def by_shard(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each shard."""
    found = [batch for batch in batches if batch.num_rows]
    if not found:
        return
    rows = pa.Table.from_batches(found)
    for shard in pc.unique(rows["shard"]).to_pylist():
        yield shard, rows.filter(pc.equal(rows["shard"], shard))


def loaded(place: Place, folder: str, files: Sequence[str]) -> pa.Table | None:
    """What some files of a graph's folder hold, one after the other; None without any."""
    if not files:
        return None
    filesystem, root = place.filesystem()
    paths = [f"{root}/{folder}/{file}" for file in files]
    return pa.concat_tables(pq.read_table(path, filesystem=filesystem) for path in paths)


def numbers(rows: pa.Table, column: str) -> Ints:
    """A column of whole numbers; none is -1."""
    found: Ints = pc.fill_null(rows[column], -1).to_numpy().astype(np.int64, copy=False)
    return found
