"""How long labelling and partitioning take as flows grow (Streamflow's Figures 58 and 59)."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from time import process_time
from typing import TYPE_CHECKING

from headwater.compose.composition import Composition
from headwater.compose.graph import Graph
from headwater.compose.kinds import Function, Source
from headwater.compose.labels import label
from headwater.compose.planning import compiled
from headwater.compose.structures import Port

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headwater.compose.node import Node

_SCHEMA = "x bigint"


def sequential(nodes: int) -> Composition:
    """A source and a chain of functions."""
    made: dict[str, Node] = {"n0": Source(stream="events")}
    for at in range(1, nodes):
        made[f"n{at}"] = _reading(at - 1)
    return Composition("sequential", made)


def in_tree(nodes: int) -> Composition:
    """Functions that read two others each, down to one; the leaves read one source."""
    leaves = max(1, (nodes - 1) // 2)
    made: dict[str, Node] = {"n0": Source(stream="events")}
    for at in range(1, leaves + 1):
        made[f"n{at}"] = _reading(0)
    waiting, following = 1, leaves + 1
    while waiting + 1 < following and following < nodes:
        made[f"n{following}"] = _reading(waiting, waiting + 1)
        waiting, following = waiting + 2, following + 1
    return Composition("in-tree", made)


def _reading(*numbers: int) -> Node:
    ports = tuple(Port(f"n{number}", f"n{number}") for number in numbers)
    return Function(inputs=ports, call="m:f", schema=_SCHEMA)


SHAPES: dict[str, Callable[[int], Composition]] = {"sequential": sequential, "in-tree": in_tree}


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement: the best of some repetitions."""

    shape: str
    nodes: int
    edges: int
    seconds: float

    @property
    def each(self) -> float:
        """Microseconds for each node and edge."""
        return self.seconds * 1e6 / (self.nodes + self.edges)


def curve(sizes: Sequence[int], repetitions: int = 5) -> list[Point]:
    """Times of labelling and partitioning for flows of some sizes, both shapes, in turns."""
    graphs = [(shape, make(size)) for size in sizes for shape, make in SHAPES.items()]
    best: dict[int, float] = {}
    gc.collect()
    gc.disable()
    try:
        for _ in range(repetitions):
            # In turns, so that a busy moment of the machine meets all sizes alike.
            for at, (_, composition) in enumerate(graphs):
                best[at] = min(best.get(at, float("inf")), _timed(composition))
    finally:
        gc.enable()
    return [
        Point(shape, len(flow), sum(len(node.inputs) for node in flow.nodes.values()), best[at])
        for at, (shape, flow) in enumerate(graphs)
    ]


def _timed(composition: Composition) -> float:
    start = process_time()
    graph = Graph(composition)
    compiled(graph, label(graph))
    return process_time() - start
