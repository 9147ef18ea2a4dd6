"""Provenance sets as pairs of ids: flattened, each record once per set, ordered by result."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.store.occurrences import Ids, has_repeats, mixed


def pairs(result_ids: Ids, origins: pa.ChunkedArray | pa.Array) -> tuple[Ids, Ids]:
    """(result id, record id) of every edge, by result id.

    >>> results, records = pairs(np.array([9, 4]), pa.array([[1, 2, 1], [3]]))
    >>> results.tolist(), records.tolist()
    ([4, 9, 9], [3, 1, 2])
    """
    column = origins.combine_chunks() if isinstance(origins, pa.ChunkedArray) else origins
    order = np.argsort(result_ids, kind="stable")
    if (order[1:] < order[:-1]).any():
        column = column.take(pa.array(order))
        result_ids = result_ids[order]
    if pa.types.is_integer(column.type):
        parents, records = np.arange(len(column)), column
    else:
        parents = pc.list_parent_indices(column).to_numpy(zero_copy_only=False)
        records = column.flatten()
    if records.null_count:
        present = records.is_valid().to_numpy(zero_copy_only=False)
        parents, records = parents[present], records.drop_null()
    ids = records.cast(pa.int64()).to_numpy(zero_copy_only=False)
    kept = _once(parents, ids)
    if kept is not None:
        parents, ids = parents[kept], ids[kept]
    return result_ids[parents], ids


def _once(parents: Ids, ids: Ids) -> Ids | None:
    # Sorting one mixed word per pair finds out cheaply whether any pair can occur twice; only the
    # pairs whose word repeats are then compared exactly.
    words = mixed(ids, parents)
    if not has_repeats(words):
        return None
    ordered = np.sort(words)
    repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    suspects = np.flatnonzero(np.isin(words, repeated))
    order = suspects[np.lexsort((ids[suspects], parents[suspects]))]
    same = (ids[order[1:]] == ids[order[:-1]]) & (parents[order[1:]] == parents[order[:-1]])
    keep = np.ones(len(ids), bool)
    keep[order[1:][same]] = False
    return np.flatnonzero(keep)
