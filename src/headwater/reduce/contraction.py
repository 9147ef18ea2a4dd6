"""Contraction: the edges of a block with its intermediates eliminated, and what that leaves aside.

To eliminate v is to add p→d for all p→v→d and to move v's edges to the residue. Most vertices of
real provenance have one edge in or one edge out. These shrink the block, and all of them go at
once: following the only edge by pointer jumping takes a number of steps logarithmic in the longest
chain. What is left goes in rounds, cheapest first, as many vertices at a time as are no neighbours.

Functions and times add up along paths (bits united, latest time). Both are idempotent, so the
order of eliminations does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from headwater.reduce.blocks import NO_TIME, Block, Bools, Ints, Residue, among, distinct
from headwater.reduce.cycles import on_cycles

if TYPE_CHECKING:
    from collections.abc import Callable

BUDGET = 4.0
"""Edges that may be left for each that came: more means that intermediates joined many to many."""


@dataclass(frozen=True, slots=True)
class Reduced:
    """A block after contraction: what goes on, and what is kept aside until the job is complete."""

    hot: Block
    residue: Residue


def contract(
    block: Block,
    eliminable: Callable[[Ints], Bools] | None = None,
    budget: float = BUDGET,
) -> Reduced:
    """Eliminates the vertices of a block that have edges in and out, are `eliminable` and not kept.

    What the remaining vertices depend on stays as it was. No cycle gets lost: if one would shrink
    to a single vertex, all that are on cycles remain. So do vertices whose elimination would leave
    more than `budget` edges for each that came.
    """
    if not len(block):
        return Reduced(block.named(block.kept), Residue.empty())
    vertices, source, destination = _coded(block.source, block.destination)
    told = _Edges(
        source, destination, block.functions, block.time, block.derived, len(vertices)
    ).distinct()
    open_ones = (told.count_in() > 0) & (told.count_out() > 0)
    open_ones &= ~among(block.kept, vertices)
    if eliminable is not None:
        open_ones[open_ones] = eliminable(vertices[open_ones])
    try:
        left, gone = _eliminated(told, open_ones, budget)
    except _Cycle:
        cyclic = on_cycles(told.source, told.destination, len(vertices))
        left, gone = _eliminated(told, open_ones & ~cyclic, budget)
    return Reduced(_hot(block, left, vertices), _residue(block, told, vertices, gone))


class _Cycle(Exception):
    """A vertex that depends on itself."""


@dataclass(frozen=True, slots=True)
class _Edges:
    """Edges between vertices numbered from 0."""

    source: Ints
    destination: Ints
    functions: Ints
    time: Ints
    derived: Bools
    vertices: int

    def __len__(self) -> int:
        return len(self.source)

    def count_in(self) -> Ints:
        return np.bincount(self.destination, minlength=self.vertices)

    def count_out(self) -> Ints:
        return np.bincount(self.source, minlength=self.vertices)

    def rows(self, chosen: npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> _Edges:
        return _Edges(
            self.source[chosen],
            self.destination[chosen],
            self.functions[chosen],
            self.time[chosen],
            self.derived[chosen],
            self.vertices,
        )

    def reversed(self) -> _Edges:
        return replace(self, source=self.destination, destination=self.source)

    def distinct(self) -> _Edges:
        """Equal edges as one: functions united, the latest time, told if one of them is."""
        pairs = self.source * self.vertices + self.destination
        order = np.argsort(pairs)
        pairs = pairs[order]
        firsts = np.ones(len(pairs), bool)
        np.not_equal(pairs[1:], pairs[:-1], out=firsts[1:])
        if firsts.all():
            return self.rows(order)
        starts = np.flatnonzero(firsts)
        pairs = pairs[starts]
        source = pairs // self.vertices
        return _Edges(
            source,
            pairs - source * self.vertices,
            np.bitwise_or.reduceat(self.functions[order], starts),
            np.maximum.reduceat(self.time[order], starts),
            np.logical_and.reduceat(self.derived[order], starts),
            self.vertices,
        )

    def with_new(self, found: _Edges) -> _Edges:
        """These and the edges found by elimination, each once."""
        if (found.source == found.destination).any():
            raise _Cycle
        return _Edges(
            np.concatenate([self.source, found.source]),
            np.concatenate([self.destination, found.destination]),
            np.concatenate([self.functions, found.functions]),
            np.concatenate([self.time, found.time]),
            np.concatenate([self.derived, found.derived]),
            self.vertices,
        ).distinct()


def _coded(source: Ints, destination: Ints) -> tuple[Ints, Ints, Ints]:
    """The vertices of edges, in order, and the edges by the places of their vertices in it."""
    ends = np.concatenate([source, destination])
    order = np.argsort(ends)
    ordered = ends[order]
    firsts = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=firsts[1:])
    codes = np.empty(len(ends), np.int64)
    codes[order] = np.cumsum(firsts) - 1
    return ordered[firsts], codes[: len(source)], codes[len(source) :]


def _eliminated(edges: _Edges, open_ones: Bools, budget: float) -> tuple[_Edges, Bools]:
    """The edges that are left when these vertices are eliminated, and which of them were."""
    waiting = open_ones.copy()
    limit = int(budget * len(edges))
    random = np.random.default_rng(0)
    while waiting.any():
        if (single := waiting & (edges.count_out() == 1)).any():
            old, found = _shortcut(edges, single)
        elif (single := waiting & (edges.count_in() == 1)).any():
            old, found = (part.reversed() for part in _shortcut(edges.reversed(), single))
        elif (single := _chosen(edges, waiting, limit, random)).any():
            old, found = _joined(edges, single)
        else:
            break
        edges = old.with_new(found)
        waiting &= ~single
    return edges, open_ones & ~waiting


def _shortcut(edges: _Edges, single: Bools) -> tuple[_Edges, _Edges]:
    """Eliminates vertices that have one edge out: edges to them go where that leads in the end.

    Gives the edges that stay, and those that were found.
    """
    onward = np.arange(edges.vertices)
    functions = np.zeros(edges.vertices, np.int64)
    time = np.full(edges.vertices, NO_TIME)
    out = edges.rows(single[edges.source])
    onward[out.source] = out.destination
    functions[out.source] = out.functions
    time[out.source] = out.time
    moving = out.source[single[out.destination]]
    longest = len(moving) + 1
    while len(moving):
        if longest == 0:
            raise _Cycle
        longest >>= 1
        ahead = onward[moving]
        functions[moving] |= functions[ahead]
        time[moving] = np.maximum(time[moving], time[ahead])
        onward[moving] = onward[ahead]
        moving = moving[single[onward[moving]]]
    rest = edges.rows(~single[edges.source])
    through = single[rest.destination]
    old, via = rest.rows(~through), rest.rows(through)
    return old, replace(
        via,
        destination=onward[via.destination],
        functions=via.functions | functions[via.destination],
        time=np.maximum(via.time, time[via.destination]),
        derived=np.ones(len(via), bool),
    )


def _chosen(edges: _Edges, waiting: Bools, limit: int, random: np.random.Generator) -> Bools:
    """Vertices to eliminate together: no two are neighbours, the cheapest first, within the limit.

    Among neighbours of about the same cost chance decides, or long rows of them would fall singly.
    """
    coming, going = edges.count_in(), edges.count_out()
    cost = coming * going - coming - going
    room = limit - len(edges)
    chosen = waiting & (cost <= room)
    rank = np.frexp(cost.astype(np.float64))[1] + random.random(edges.vertices)
    rivals = chosen[edges.source] & chosen[edges.destination]
    one, other = edges.source[rivals], edges.destination[rivals]
    if (one == other).any():
        raise _Cycle
    chosen[np.where(rank[one] < rank[other], other, one)] = False
    places = np.flatnonzero(chosen)
    places = places[np.argsort(cost[places], kind="stable")]
    chosen[places[np.cumsum(cost[places]) > room]] = False
    return chosen


def _joined(edges: _Edges, chosen: Bools) -> tuple[_Edges, _Edges]:
    """Eliminates vertices, no two of which are neighbours: each edge in with each edge out.

    Gives the edges that stay, and those that were found.
    """
    coming, going = edges.rows(chosen[edges.destination]), edges.rows(chosen[edges.source])
    going = going.rows(np.argsort(going.source, kind="stable"))
    counts = going.count_out()
    starts = np.cumsum(counts) - counts
    each = counts[coming.destination]
    left = np.repeat(np.arange(len(coming)), each)
    within = np.arange(len(left)) - np.repeat(np.cumsum(each) - each, each)
    right = starts[coming.destination[left]] + within
    rest = edges.rows(~(chosen[edges.source] | chosen[edges.destination]))
    return rest, _Edges(
        coming.source[left],
        going.destination[right],
        coming.functions[left] | going.functions[right],
        np.maximum(coming.time[left], going.time[right]),
        np.ones(len(left), bool),
        edges.vertices,
    )


def _block(block: Block, edges: _Edges, vertices: Ints, named: Ints) -> Block:
    """Edges as a block like the one they came from, with the names of some vertices."""
    return replace(
        block.named(named),
        source=vertices[edges.source],
        destination=vertices[edges.destination],
        time=edges.time,
        functions=edges.functions,
        derived=edges.derived,
    )


def _hot(block: Block, left: _Edges, vertices: Ints) -> Block:
    present = np.zeros(len(vertices), bool)
    present[left.source] = True
    present[left.destination] = True
    return _block(block, left, vertices, distinct([vertices[present], block.kept]))


def _residue(block: Block, told: _Edges, vertices: Ints, gone: Bools) -> Residue:
    below, above = told.rows(gone[told.source]), told.rows(gone[told.destination])
    places = np.concatenate([below.source, above.destination])
    both = _Edges(
        np.concatenate([below.source, above.source]),
        np.concatenate([below.destination, above.destination]),
        np.concatenate([below.functions, above.functions]),
        np.concatenate([below.time, above.time]),
        np.concatenate([below.derived, above.derived]),
        len(vertices),
    )
    aside = replace(_block(block, both, vertices, vertices[gone]), kept=np.empty(0, np.int64))
    return Residue(vertices[places], replace(aside, elements=0))
