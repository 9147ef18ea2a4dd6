"""The paper's sliding window: vertices are eliminated at once, the last elements are remembered.

Elements are taken one by one. A vertex goes as soon as it has an edge in and an edge out; edges of
it that come later are joined with what the window still has of it. What came longer ago than the
window is lost: this way is inexact by design, and small.

An edge of the state has nothing above its source and nothing below its destination, so the state
alone says what an open vertex depends on; the window is asked only for vertices that are gone.

The state is handed on from time to time, to a reducer that joins it with that of others. What is
handed on of a vertex can't be joined here with what comes later. So edges of such a vertex stay as
they are from then on; these vertices are remembered longer than elements, as they are only numbers.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from headwater.reduce.blocks import NO_TIME, Block, Ints, among, distinct
from headwater.reduce.packing import packed, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Note: TypeAlias = tuple[int, int]
"""Functions and latest time along a path."""
Row: TypeAlias = tuple[int, int, int, int]
"""Source, destination, functions, time."""

Edges: TypeAlias = "Mapping[int, Mapping[int, Note]]"
"""For each vertex its neighbours on one side."""

REMEMBERED = 100_000
"""How many vertices a reducer knows to have been handed on."""

_NOTHING: Note = (0, NO_TIME)


@dataclass(frozen=True, slots=True, eq=False)
class SlidingWindow:
    """A reducer's state between elements: the reduced edges, and the last `size` elements."""

    size: int
    hot: Block
    recent: Block
    """In told order."""
    gone: Ints
    """Vertices of the window that were eliminated."""
    handed_on: Ints
    """Vertices with edges that were handed on, the latest last: not to be eliminated here, as only
    who has these edges can join them with what still comes."""

    @classmethod
    def start(cls, size: int) -> SlidingWindow:
        """The state before the first element."""
        none = np.empty(0, np.int64)
        return cls(size, Block.empty(), Block.empty(), none, none)

    def add(self, block: Block) -> SlidingWindow:
        """The state after the elements of a block, in their order."""
        whole = Block.joined([self.hot, self.recent, block])
        old, seen = len(self.hot), len(self.hot) + len(self.recent)
        fixed = distinct([whole.kept, self.handed_on])
        reducer = _Reducer(self.size, set(self.gone.tolist()), set(fixed.tolist()))
        for row, derived in zip(_rows(whole, slice(old)), self.hot.derived.tolist(), strict=True):
            reducer.insert(row, derived)
        for row in _rows(whole, slice(old, seen)):
            reducer.remember(row)
        for row in _rows(whole, slice(seen, None)):
            reducer.add(row)
        recent = whole.rows(np.arange(max(old, len(whole) - self.size), len(whole)))
        here = distinct([recent.source, recent.destination])
        hot = reducer.block(whole, self.hot.elements + block.elements)
        return SlidingWindow(
            self.size,
            hot.named(distinct([hot.source, hot.destination, hot.kept])),
            replace(recent.named(here), kept=np.empty(0, np.int64), elements=0),
            np.array(sorted(reducer.gone), np.int64),
            self.handed_on,
        )

    def flush(self) -> tuple[Block, SlidingWindow]:
        """The reduced edges, and the state without them; the window stays."""
        told = distinct([self.hot.source, self.hot.destination])
        before = self.handed_on[~among(told, self.handed_on)]
        handed_on = np.concatenate([before, told])[-REMEMBERED:]
        here = distinct([self.recent.source, self.recent.destination, handed_on])
        kept = self.hot.kept[among(here, self.hot.kept)]
        rest = replace(Block.empty(), kept=kept)
        return self.hot, replace(self, hot=rest, handed_on=handed_on)

    def to_bytes(self) -> bytes:
        """The state as bytes."""
        blocks = {name: pa.array([getattr(self, name).to_bytes()]) for name in ("hot", "recent")}
        ids = {"gone": self.gone, "handed_on": self.handed_on}
        return packed({**blocks, **ids}, {"size": self.size})

    @classmethod
    def from_bytes(cls, data: bytes) -> SlidingWindow:
        """The state that was written with `to_bytes`."""
        columns, about = unpacked(data)
        hot, recent = (Block.from_bytes(columns[name][0].as_py()) for name in ("hot", "recent"))
        return cls(about["size"], hot, recent, columns["gone"], columns["handed_on"])


def _rows(block: Block, part: slice) -> Iterator[Row]:
    columns = (block.source, block.destination, block.functions, block.time)
    return zip(*(column[part].tolist() for column in columns), strict=True)


@dataclass(slots=True)
class _Links:
    """Edges by both their ends."""

    causes: dict[int, dict[int, Note]] = field(default_factory=dict)
    effects: dict[int, dict[int, Note]] = field(default_factory=dict)

    def __contains__(self, vertex: int) -> bool:
        return vertex in self.causes or vertex in self.effects

    def put(self, source: int, destination: int, note: Note) -> None:
        known = self.causes.setdefault(source, {})
        if destination in known:
            note = _both(known[destination], note)
        known[destination] = note
        self.effects.setdefault(destination, {})[source] = note

    def drop(self, source: int, destination: int) -> None:
        for links, one, other in (
            (self.causes, source, destination),
            (self.effects, destination, source),
        ):
            del links[one][other]
            if not links[one]:
                del links[one]


@dataclass(slots=True)
class _Reducer:
    """The algorithm, on numbers."""

    size: int
    gone: set[int]
    fixed: set[int]
    """Vertices that are not to be eliminated: their edges stay as they are."""
    hot: _Links = field(default_factory=_Links)
    told: set[tuple[int, int]] = field(default_factory=set)
    """Edges of the state that were told as they are."""
    window: _Links = field(default_factory=_Links)
    order: deque[tuple[int, int]] = field(default_factory=deque)
    times: dict[tuple[int, int], int] = field(default_factory=dict)
    """How often the window has an edge."""

    def insert(self, row: Row, derived: bool) -> None:
        """Puts an edge into the state."""
        source, destination, functions, time = row
        self.hot.put(source, destination, (functions, time))
        if not derived:
            self.told.add((source, destination))

    def remember(self, row: Row) -> None:
        """Puts an element into the window and takes out the one that falls behind."""
        source, destination, functions, time = row
        edge = (source, destination)
        self.window.put(source, destination, (functions, time))
        self.times[edge] = self.times.get(edge, 0) + 1
        self.order.append(edge)
        if len(self.order) > self.size:
            last = self.order.popleft()
            self.times[last] -= 1
            if not self.times[last]:
                del self.times[last]
                self.window.drop(*last)
                self.gone -= {v for v in last if v not in self.window}

    def add(self, row: Row) -> None:
        """Takes one element: all that is above its source depends on all below its destination."""
        source, destination, functions, time = row
        effects = self._ends(source, self.hot.effects, self.window.effects)
        causes = self._ends(destination, self.hot.causes, self.window.causes)
        if effects.keys() != {source}:
            self.gone.add(source)
            for effect in list(self.hot.effects.get(source, ())):
                self._drop(effect, source)
        if causes.keys() != {destination}:
            self.gone.add(destination)
            for cause in list(self.hot.causes.get(destination, ())):
                self._drop(destination, cause)
        for effect, above in effects.items():
            for cause, below in causes.items():
                if effect != cause:
                    self.hot.put(effect, cause, _both(_both(above, below), (functions, time)))
        if source in effects and destination in causes:
            self.told.add((source, destination))
        self.remember(row)

    def _drop(self, source: int, destination: int) -> None:
        self.hot.drop(source, destination)
        self.told.discard((source, destination))

    def _ends(self, start: int, hot: Edges, window: Edges) -> dict[int, Note]:
        """Where edges lead from a vertex: by the state, and by the window from those gone.

        It is the vertex itself if it has no such edges, or is not to be eliminated.
        """
        if start in self.fixed:
            return {start: _NOTHING}
        if start not in self.gone:
            return dict(hot.get(start, {})) or {start: _NOTHING}
        ends: dict[int, Note] = {}
        notes = {start: _NOTHING}
        for vertex in self._walk(start, window):
            note = notes[vertex]
            passed = vertex not in self.fixed
            reduced = hot.get(vertex, {}) if passed else {}
            told = window.get(vertex, {}) if passed and vertex in self.gone else {}
            if not (reduced or told):
                ends[vertex] = _both(ends.get(vertex, _NOTHING), note)
            for links, found in ((reduced, ends), (told, notes)):
                for end, more in links.items():
                    found[end] = _both(found.get(end, _NOTHING), _both(note, more))
        return ends

    def _walk(self, start: int, window: Edges) -> list[int]:
        """The vertices that the window leads to, each after all that lead to it (but on cycles)."""
        done: list[int] = []
        seen = {start}
        path = [(start, iter(window.get(start, ())))]
        while path:
            vertex, left = path[-1]
            for end in left:
                if end not in seen:
                    seen.add(end)
                    passes = end in self.gone and end not in self.fixed
                    path.append((end, iter(window.get(end, ()) if passes else ())))
                    break
            else:
                done.append(vertex)
                path.pop()
        return done[::-1]

    def block(self, whole: Block, elements: int) -> Block:
        """The state as a block; names and functions are those of another."""
        edges = sorted(
            (source, destination, *note, (source, destination) not in self.told)
            for source, causes in self.hot.causes.items()
            for destination, note in causes.items()
        )
        columns = list(zip(*edges, strict=True)) if edges else [()] * 5
        source, destination, functions, time = (np.array(c, np.int64) for c in columns[:4])
        derived = np.array(columns[4], bool)
        return Block(
            source,
            destination,
            time,
            functions,
            derived,
            whole.function_names,
            whole.kept,
            whole.ids,
            whole.names,
            elements,
        )


def _both(one: Note, other: Note) -> Note:
    return one[0] | other[0], max(one[1], other[1])
