"""Blocks: edges of one job as columns of numbers, with the names of their vertices apart.

A vertex is known by the hash of its name, so that two reducers that never met mean the same vertex
by the same number. All that reducers hand to each other is blocks, as bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from headwater.errors import HeadwaterError
from headwater.live.ids import distinct, places
from headwater.reduce.packing import packed, unpacked
from headwater.times import NO_TIME

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

MOST_FUNCTIONS = 63
"""Functions of one job that an edge can tell apart; of those after them it says nothing."""

_SEEDS = {"entity": 42, "activity": 43}


def vertex_ids(names: pa.Array, kind: Literal["entity", "activity"]) -> Ints:
    """The ids of vertices by their names; the lowest bit tells activities from entities.

    >>> vertex_ids(pa.array(["tweet-1", "tweet-2", "tweet-1"]), "entity").tolist()
    [1818382579277380414, 3408912567846909408, 1818382579277380414]
    """
    if isinstance(names, pa.ChunkedArray):
        names = names.combine_chunks()
    coded = names if pa.types.is_dictionary(names.type) else names.dictionary_encode()
    told = coded.dictionary.cast(pa.binary()).to_pylist()
    digest = partial(xxhash.xxh64_intdigest, seed=_SEEDS[kind])
    hashes = np.fromiter(map(digest, told), np.uint64, len(told)).view(np.int64)
    ids: Ints = hashes & ~1 if kind == "entity" else hashes | 1
    at: Ints = coded.indices.to_numpy(zero_copy_only=False)
    return ids[at]


def is_activity(ids: Ints) -> Bools:
    """Which of these vertices are activities."""
    return (ids & 1).astype(bool)


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Edges of one job, each from effect to cause, and the names of their vertices."""

    source: Ints
    destination: Ints
    time: Ints
    """µs, the latest told of an edge, or of the edges that it stands for; NO_TIME if none."""
    functions: Ints
    """A set of bits over `function_names`."""
    derived: Bools
    """Found by elimination, not told."""
    function_names: tuple[str, ...]
    kept: Ints
    """Entities that were told to be outputs, in order and distinct."""
    ids: Ints
    """The vertices whose names are here, in order and distinct."""
    names: pa.StringArray
    elements: int
    """How many told edges the block stands for."""

    @classmethod
    def empty(cls) -> Block:
        """The block of no edges."""
        none = np.empty(0, np.int64)
        names = pa.array([], pa.string())
        return cls(none, none, none, none, np.empty(0, bool), (), none, none, names, 0)

    @classmethod
    def merged(cls, blocks: Iterable[Block]) -> Block:
        """The blocks as one: equal edges become one, functions and names are united.

        Edges come out ordered by source and destination.
        """
        block = cls.joined(list(blocks))
        order, starts = _runs(block.source, block.destination)
        if len(starts) == len(order):
            return block.rows(order)
        first = order[starts]
        return replace(
            block.rows(first),
            time=np.maximum.reduceat(block.time[order], starts),
            functions=np.bitwise_or.reduceat(block.functions[order], starts),
            derived=np.logical_and.reduceat(block.derived[order], starts),
        )

    @classmethod
    def joined(cls, blocks: Sequence[Block]) -> Block:
        """The blocks' edges one after the other, as they are; functions and names are united."""
        if len(blocks) < 2:
            return blocks[0] if blocks else cls.empty()
        functions = _united(blocks)
        ids, names = _named(blocks)
        return cls(
            np.concatenate([b.source for b in blocks]),
            np.concatenate([b.destination for b in blocks]),
            np.concatenate([b.time for b in blocks]),
            np.concatenate([_recoded(b.functions, b.function_names, functions) for b in blocks]),
            np.concatenate([b.derived for b in blocks]),
            functions,
            distinct([b.kept for b in blocks]),
            ids,
            names,
            sum(b.elements for b in blocks),
        )

    def rows(self, chosen: npt.NDArray[Any]) -> Block:
        """Some of the edges, by place or by a mask; all else stays as it is."""
        return replace(
            self,
            source=self.source[chosen],
            destination=self.destination[chosen],
            time=self.time[chosen],
            functions=self.functions[chosen],
            derived=self.derived[chosen],
        )

    def named(self, vertices: Ints) -> Block:
        """The block with the names of these vertices only; they are in order and distinct."""
        chosen = among(vertices, self.ids)
        return replace(self, ids=self.ids[chosen], names=self.names.filter(pa.array(chosen)))

    def table(self) -> pa.Table:
        """The edges as a table."""
        return pa.table({name: getattr(self, name) for name in _EDGE_COLUMNS})

    def to_bytes(self) -> bytes:
        """The block as bytes: Arrow's stream format, compressed."""
        return packed(*self.parts())

    @classmethod
    def from_bytes(cls, data: bytes) -> Block:
        """The block that was written with `to_bytes`."""
        return cls.of_parts(*unpacked(data))

    def parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The columns, and what else there is."""
        columns = {name: getattr(self, name) for name in (*_EDGE_COLUMNS, "kept", "ids", "names")}
        return columns, {"function_names": self.function_names, "elements": self.elements}

    @classmethod
    def of_parts(cls, columns: Mapping[str, Any], about: Mapping[str, Any]) -> Block:
        """The block of such columns."""
        functions = tuple(about["function_names"])
        return cls(**columns, function_names=functions, elements=about["elements"])

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True, slots=True, eq=False)
class Residue:
    """Edges of eliminated vertices, kept aside: what must come back if more of a vertex comes.

    A row is an edge under the vertex that was eliminated; an edge between two eliminated vertices
    has two rows, one under each, so that whoever restores a vertex finds all its edges under it.
    (Who looks edges up by both their ends needs each once: `once`.) The names are those of the
    eliminated vertices.

    Restoring need not spread both ways. What comes late is an edge; from its destination on only
    edges to causes must come back, from its source only edges to effects.
    """

    vertex: Ints
    edges: Block

    @classmethod
    def empty(cls) -> Residue:
        """The residue of nothing."""
        return cls(np.empty(0, np.int64), Block.empty())

    @classmethod
    def joined(cls, parts: Sequence[Residue]) -> Residue:
        """Several residues as one; equal rows stay."""
        vertex = np.concatenate([part.vertex for part in [cls.empty(), *parts]])
        return cls(vertex, Block.joined([part.edges for part in parts]))

    def once(self) -> Block:
        """The edges, each once."""
        return Block.merged([self.edges])

    def table(self) -> pa.Table:
        """The rows as a table: the vertex, then its edge."""
        return self.edges.table().add_column(0, "vertex", pa.array(self.vertex))

    def to_bytes(self) -> bytes:
        """The residue as bytes."""
        columns, about = self.edges.parts()
        return packed({"vertex": self.vertex, **columns}, about)

    @classmethod
    def from_bytes(cls, data: bytes) -> Residue:
        """The residue that was written with `to_bytes`."""
        columns, about = unpacked(data)
        return cls(columns.pop("vertex"), Block.of_parts(columns, about))

    def __len__(self) -> int:
        return len(self.vertex)


_EDGE_COLUMNS = ("source", "destination", "time", "functions", "derived")


def among(known: Ints, ids: Ints) -> Bools:
    """Which of these ids are among some that are in order.

    >>> among(np.array([3, 5, 8]), np.array([5, 6])).tolist()
    [True, False]
    """
    return places(known, ids)[1]


def _firsts(ordered: Ints) -> Bools:
    """Where another value begins."""
    firsts = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=firsts[1:])
    return firsts


def _runs(source: Ints, destination: Ints) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Edges in order of source and destination, and where in it each distinct edge begins."""
    order = np.lexsort((destination, source))
    firsts = _firsts(source[order]) | _firsts(destination[order])
    return order, np.flatnonzero(firsts)


def _united(blocks: Sequence[Block]) -> tuple[str, ...]:
    """All blocks' function names, those that came first in front, as many as there are bits."""
    names = dict.fromkeys(name for block in blocks for name in block.function_names)
    return tuple(names)[:MOST_FUNCTIONS]


def _recoded(functions: Ints, names: tuple[str, ...], united: tuple[str, ...]) -> Ints:
    """Sets of bits over some names as sets over others; a name that is not there is left out."""
    if names == united[: len(names)]:
        return functions
    recoded = np.zeros_like(functions)
    for bit, name in enumerate(names):
        if name in united:
            recoded |= ((functions >> bit) & 1) << united.index(name)
    return recoded


def _named(blocks: Sequence[Block]) -> tuple[Ints, pa.StringArray]:
    """All blocks' ids and names, each id once; refuses one id with two names."""
    named = [block for block in blocks if len(block.ids)]
    if not named:
        return blocks[0].ids, blocks[0].names
    if len(named) == 1:
        return named[0].ids, named[0].names
    ids = np.concatenate([block.ids for block in named])
    names = pa.concat_arrays([block.names for block in named])
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    again = np.flatnonzero(~_firsts(ordered))
    if len(again):
        here, before = names.take(pa.array(order[again])), names.take(pa.array(order[again - 1]))
        if not here.equals(before):
            number, one, other = next(
                (int(ordered[at]), one, other)
                for at, one, other in zip(again, before.to_pylist(), here.to_pylist(), strict=True)
                if one != other
            )
            raise HeadwaterError(
                f"the names {one!r} and {other!r} have one hash ({number}): rename one of them"
            )
    firsts = _firsts(ordered)
    return ordered[firsts], names.take(pa.array(order[firsts]))


__all__ = [
    "MOST_FUNCTIONS",
    "NO_TIME",
    "Block",
    "Bools",
    "Ints",
    "Residue",
    "among",
    "distinct",
    "is_activity",
    "vertex_ids",
]
