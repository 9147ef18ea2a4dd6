"""A composition as a graph: edges by port, an order in which inputs come first, cycles."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.compose.composition import Composition
    from headwater.compose.node import Node
    from headwater.compose.structures import Port


@dataclass(frozen=True, slots=True)
class Edge:
    """What comes in at a port: whose output, and where to."""

    source: str
    target: str
    port: Port


class Graph:
    """Nodes and edges; edges from nodes that don't exist are left out, and told by the rules."""

    def __init__(self, composition: Composition) -> None:
        self.composition = composition
        self.nodes: dict[str, Node] = dict(composition.nodes)
        self.into: dict[str, list[Edge]] = {name: [] for name in self.nodes}
        self.out: dict[str, list[Edge]] = {name: [] for name in self.nodes}
        self.unknown: list[Edge] = []
        for name, node in self.nodes.items():
            for port in node.inputs:
                edge = Edge(port.node, name, port)
                if port.node not in self.nodes:
                    self.unknown.append(edge)
                    continue
                self.into[name].append(edge)
                self.out[port.node].append(edge)
        self.order = self._order()
        """Nodes after their inputs; those on a cycle, or behind one, are missing."""

    def _order(self) -> list[str]:
        waiting = {name: len(edges) for name, edges in self.into.items()}
        ready = deque(name for name, count in waiting.items() if not count)
        order = []
        while ready:
            name = ready.popleft()
            order.append(name)
            for edge in self.out[name]:
                waiting[edge.target] -= 1
                if not waiting[edge.target]:
                    ready.append(edge.target)
        return order

    def cycles(self) -> list[list[str]]:
        """Cycles, at least one wherever nodes wait for each other, none of them twice."""
        done = set(self.order)
        found: list[list[str]] = []
        for name in self.nodes:
            path: dict[str, None] = {}
            at = None if name in done else name
            while at is not None and at not in path:
                path[at] = None
                # An input that is not done either: there is one, or the node would be.
                at = next((e.source for e in self.into[at] if e.source not in done), None)
            if at is not None:
                steps = list(path)
                found.append(steps[steps.index(at) :][::-1])
            done.update(path)
        return found
