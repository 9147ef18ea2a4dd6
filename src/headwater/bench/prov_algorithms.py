"""Published algorithms that reduce provenance streams, as their papers give them: baselines only.

Both are plain Python on numbered vertices. An edge is a pair of an effect and a cause.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Edge: TypeAlias = tuple[int, int]


@dataclass(slots=True)
class _Ends:
    """Edges by their ends: the paper's `sMap` and `dMap`."""

    by_source: dict[int, set[Edge]] = field(default_factory=dict)
    by_destination: dict[int, set[Edge]] = field(default_factory=dict)

    def insert(self, edge: Edge) -> None:
        self.by_source.setdefault(edge[0], set()).add(edge)
        self.by_destination.setdefault(edge[1], set()).add(edge)

    def delete(self, edge: Edge) -> None:
        for ends, vertex in ((self.by_source, edge[0]), (self.by_destination, edge[1])):
            if (edges := ends.get(vertex)) is not None:
                edges.discard(edge)
                if not edges:
                    del ends[vertex]


class Algorithm1:
    """parallel-prov-stream (Suriarachchi et al.), Algorithm 1, with a sliding window if asked.

    Step by step as printed, but for two things: edges are sets, and the recursion, whose deletions
    all come after its insertions, is a loop that meets no edge twice.

    >>> reducer = Algorithm1()
    >>> reducer.add([(2, 3)])
    >>> reducer.add([(1, 2)])
    >>> reducer.pairs()
    {(1, 3)}
    """

    def __init__(self, window: int = 0) -> None:
        self._state = _Ends()
        self._size = window
        self._window = _Ends()
        self._order: deque[Edge] = deque()
        self._times: dict[Edge, int] = {}

    def add(self, group: Iterable[Edge]) -> None:
        """Takes a group of elements together; a vertex goes after all of them were looked at."""
        told = list(group)
        fresh: Iterable[Edge] = told
        met: set[Edge] = set()
        delete: set[Edge] = set()
        while fresh:
            found: set[Edge] = set()
            for edge in fresh:
                source, destination = edge
                if into := self._edges("by_destination", source):
                    found |= {(above, destination) for above, _ in into}
                    delete |= into
                elif out := self._edges("by_source", destination):
                    found |= {(source, below) for _, below in out}
                    delete |= out
                else:
                    self._state.insert(edge)
            met |= set(fresh)
            fresh = found - met
        for edge in delete:
            self._state.delete(edge)
        for edge in told if self._size else ():
            self._remember(edge)

    def pairs(self) -> set[Edge]:
        """The reduced edges."""
        return {edge for edges in self._state.by_source.values() for edge in edges}

    def _edges(self, ends: str, vertex: int) -> set[Edge]:
        """The edges of the state and of the window with a vertex at this end."""
        none: set[Edge] = set()
        state: set[Edge] = getattr(self._state, ends).get(vertex, none)
        window: set[Edge] = getattr(self._window, ends).get(vertex, none)
        return state | window if window else set(state)

    def _remember(self, edge: Edge) -> None:
        self._window.insert(edge)
        self._order.append(edge)
        self._times[edge] = self._times.get(edge, 0) + 1
        if len(self._order) > self._size:
            last = self._order.popleft()
            self._times[last] -= 1
            if not self._times[last]:
                del self._times[last]
                self._window.delete(last)


class DependencyMatrix:
    """Chen et al.: for each vertex the inputs it depends on, for streams in order.

    What is used and was never generated so far is an input. A row is right if all of a vertex's own
    edges came before the first edge to it; nothing is corrected later.

    >>> matrix = DependencyMatrix()
    >>> matrix.add([(2, 3), (1, 2)])
    >>> matrix.pairs()
    {(2, 3), (1, 3)}
    """

    def __init__(self) -> None:
        self._rows: dict[int, set[int]] = {}

    def add(self, elements: Iterable[Edge]) -> None:
        """Takes elements one after the other."""
        for effect, cause in elements:
            row = self._rows.setdefault(effect, set())
            known = self._rows.get(cause)
            if known is None:
                row.add(cause)
            else:
                row |= known

    def pairs(self) -> set[Edge]:
        """Each vertex with each of its inputs."""
        return {(vertex, cause) for vertex, row in self._rows.items() for cause in row}
