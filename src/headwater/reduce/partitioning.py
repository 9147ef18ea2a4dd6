"""Partitioning: which local reducer gets an edge.

All edges of one execution go to one reducer, whatever the partitioning, as an execution has one
function and one node. With edges that say nothing of their function or node, the execution itself
decides.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import xxhash

from headwater.live.ids import distinct, places
from headwater.reduce.blocks import MOST_FUNCTIONS, Block, Bools, Ints, is_activity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.reduce.parsing import Parsed

Partition = Literal["horizontal", "vertical", "random"]
PARTITIONS: tuple[Partition, ...] = ("horizontal", "vertical", "random")

_COLUMN = {"horizontal": "function", "vertical": "node"}

LARGEST = 50_000
"""Edges of a block at most: blocks travel as rows of Spark's, which are better not huge."""


def split(parsed: Parsed, buckets: Ints, functions: bool) -> Iterator[tuple[int, Block]]:
    """What was parsed as blocks for each bucket, in the order told; no block is too large."""
    whole = block_of(parsed, functions)
    order = np.argsort(buckets, kind="stable")
    ordered = buckets[order]
    numbers = distinct([ordered])
    starts = np.searchsorted(ordered, numbers)
    ends = np.searchsorted(ordered, numbers, side="right")
    for bucket, start, end in zip(numbers, starts, ends, strict=True):
        for first in range(start, end, LARGEST):
            yield int(bucket), part(whole, order[first : min(first + LARGEST, end)])


def block_of(parsed: Parsed, functions: bool) -> Block:
    """What was parsed as one block, an edge for each row."""
    edges = parsed.edges
    count = edges.num_rows
    names, bits = _functions(edges["function"]) if functions else ((), np.zeros(count, np.int64))
    return Block(
        source=edges["source"].to_numpy(),
        destination=edges["destination"].to_numpy(),
        time=edges["time"].to_numpy(),
        functions=bits,
        derived=np.zeros(count, bool),
        function_names=names,
        kept=parsed.kept,
        ids=parsed.ids,
        names=parsed.names,
        elements=count,
    )


def part(block: Block, chosen: np.ndarray[tuple[int], np.dtype[np.intp]] | Bools) -> Block:
    """Some edges of a block that was not reduced yet, with the names of their vertices only."""
    rows = block.rows(chosen)
    vertices = distinct([rows.source, rows.destination])
    at, there = places(block.ids, vertices)
    marked = places(vertices, block.kept)[1] if len(vertices) else np.zeros(len(block.kept), bool)
    return replace(
        rows,
        kept=block.kept[marked],
        ids=vertices[there],
        names=block.names.take(pa.array(at[there])),
        elements=len(rows),
    )


def buckets_of(edges: pa.Table, by: Partition, number: int) -> Ints:
    """The bucket of each edge, one of so many.

    What the executions of these edges say of themselves counts for all their edges here: where
    one says nothing of its node, another of the same execution may have.
    """
    execution = executions(edges)
    column = _COLUMN.get(by)
    if column is None:
        return _spread(execution, number)
    codes, hashes = _hashed(edges[column])
    told = np.flatnonzero(codes >= 0)
    ids = distinct([execution])
    at = np.searchsorted(ids, execution)
    # The first that an execution says of itself: written last, over what it says later.
    chosen = np.full(len(ids), -1)
    chosen[at[told[::-1]]] = codes[told[::-1]]
    chosen = chosen[at]
    keys = np.where(chosen >= 0, hashes[chosen] if len(hashes) else 0, execution)
    return _spread(keys, number)


def by_activity(edges: pa.Table, number: int) -> Ints:
    """The bucket of each edge by its activity: exact whatever elements say of their execution."""
    source, destination = edges["source"].to_numpy(), edges["destination"].to_numpy()
    return _spread(_activity(source, destination), number)


def executions(edges: pa.Table) -> Ints:
    """The execution of each edge: as told, else its activity, else what it points from."""
    column = edges["execution"]
    told: Ints = column.fill_null(0).to_numpy()
    if not column.null_count:
        return told
    source, destination = edges["source"].to_numpy(), edges["destination"].to_numpy()
    found: Ints = np.where(column.is_null().to_numpy(), _activity(source, destination), told)
    return found


def _activity(source: Ints, destination: Ints) -> Ints:
    """The activity at one end of each edge; between entities, the source."""
    found: Ints = np.where(is_activity(destination), destination, source)
    return found


def _spread(keys: Ints, number: int) -> Ints:
    """Keys over so many buckets: their upper bits, as the lowest tells activities from others."""
    found: Ints = ((keys.view(np.uint64) >> np.uint64(17)) % np.uint64(number)).view(np.int64)
    return found


def _hashed(column: pa.ChunkedArray) -> tuple[Ints, Ints]:
    """For each value the place of its hash, −1 for none; and the hashes."""
    coded = column.combine_chunks()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.unify_dictionaries().combine_chunks()
    codes: Ints = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    names = coded.dictionary.to_pylist()
    hashes = np.fromiter(
        (xxhash.xxh64_intdigest((name or "").encode()) for name in names), np.uint64, len(names)
    )
    return codes, hashes.view(np.int64)


def _functions(column: pa.ChunkedArray) -> tuple[tuple[str, ...], Ints]:
    """The names of functions, and for each edge the set of bits over them."""
    coded = column.combine_chunks()
    names = coded.dictionary.to_pylist()[:MOST_FUNCTIONS]
    codes = coded.indices.fill_null(MOST_FUNCTIONS).to_numpy(zero_copy_only=False)
    codes = np.minimum(codes, MOST_FUNCTIONS).astype(np.int64)
    bits = np.append(np.left_shift(1, np.arange(MOST_FUNCTIONS, dtype=np.int64)), 0)
    return tuple(names), bits[codes]
