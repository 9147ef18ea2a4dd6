"""Partitions: the largest connected sets of nodes that belong together (Streamflow's Figure 20).

Sets that would wait for each other are cut: A and B may belong together and still have a node of
another set between them. Each edge is looked at a fixed number of times.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

N = TypeVar("N", bound=Hashable)


def partition(
    order: list[N], edges: list[tuple[N, N]], together: Callable[[N, N], bool]
) -> list[list[N]]:
    """Sets of nodes, connected by edges between nodes that belong together, without cycles.

    `order` has the nodes inputs first, and the sets come in that order too.

    >>> partition(list("abc"), [("a", "b"), ("b", "c"), ("a", "c")], lambda x, y: "b" not in x + y)
    [['a'], ['b'], ['c']]
    """
    joined = [(one, other) for one, other in edges if together(one, other)]
    group = _connected(order, joined)
    tangled = _tangled(group, edges)
    if tangled:
        depth = _depths(order, edges, together)
        kept = [
            (one, other)
            for one, other in joined
            if group[one] not in tangled or depth[one] == depth[other]
        ]
        group = _connected(order, kept)
    sets: dict[N, list[N]] = {}
    for node in order:
        sets.setdefault(group[node], []).append(node)
    return list(sets.values())


def _connected(nodes: Iterable[N], edges: Iterable[tuple[N, N]]) -> dict[N, N]:
    """For each node one of its set, the same for all of them."""
    parent = {node: node for node in nodes}

    def root(node: N) -> N:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for one, other in edges:
        parent[root(other)] = root(one)
    return {node: root(node) for node in parent}


def _tangled(group: dict[N, N], edges: Iterable[tuple[N, N]]) -> set[N]:
    """Sets on a cycle of sets, or between two: what is left when both ends are peeled off."""
    left = set(group.values())
    between = {(group[a], group[b]) for a, b in edges if group[a] != group[b]}
    for pairs in (between, {(b, a) for a, b in between}):
        below: dict[N, list[N]] = {}
        waiting = dict.fromkeys(left, 0)
        for a, b in pairs:
            if a in left and b in left:
                below.setdefault(a, []).append(b)
                waiting[b] += 1
        ready = [node for node, count in waiting.items() if not count]
        while ready:
            node = ready.pop()
            left.discard(node)
            for other in below.get(node, ()):
                waiting[other] -= 1
                if not waiting[other]:
                    ready.append(other)
    return left


def _depths(
    order: list[N], edges: list[tuple[N, N]], together: Callable[[N, N], bool]
) -> dict[N, int]:
    """How often a path to each node changes from one set to another, at most."""
    into: dict[N, list[N]] = {}
    for one, other in edges:
        into.setdefault(other, []).append(one)
    depth: dict[N, int] = {}
    for node in order:
        above = into.get(node, ())
        depth[node] = max((depth[a] + (not together(a, node)) for a in above), default=0)
    return depth
