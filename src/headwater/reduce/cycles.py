"""Which vertices of a graph lie on a cycle. Provenance should have none; some jobs tell them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from headwater.reduce.blocks import Bools, Ints


def on_cycles(source: Ints, destination: Ints, vertices: int) -> Bools:
    """Which of the vertices 0…`vertices` − 1 can reach themselves.

    Tarjan's search for strongly connected components with a stack of its own, as chains are deep.

    >>> on_cycles(np.array([0, 1, 2, 3]), np.array([1, 2, 1, 3]), 4).tolist()
    [False, True, True, True]
    """
    order = np.argsort(source, kind="stable")
    below = destination[order].tolist()
    first = np.searchsorted(source[order], np.arange(vertices + 1)).tolist()
    cyclic = np.zeros(vertices, bool)
    cyclic[source[source == destination]] = True
    number, lowest = [-1] * vertices, [0] * vertices
    open_ones: list[int] = []
    is_open = bytearray(vertices)
    resume = first[:-1].copy()
    found = 0
    for root in range(vertices):
        if number[root] >= 0:
            continue
        path = [root]
        while path:
            vertex = path[-1]
            if number[vertex] < 0:
                number[vertex] = lowest[vertex] = found
                found += 1
                open_ones.append(vertex)
                is_open[vertex] = 1
            at, end = resume[vertex], first[vertex + 1]
            while at < end:
                child = below[at]
                if number[child] < 0:
                    break
                if is_open[child] and lowest[child] < lowest[vertex]:
                    lowest[vertex] = lowest[child]
                at += 1
            resume[vertex] = at
            if at < end:
                path.append(below[at])
                continue
            path.pop()
            if lowest[vertex] == number[vertex]:
                _close(vertex, open_ones, is_open, cyclic)
    return cyclic


def _close(root: int, open_ones: list[int], is_open: bytearray, cyclic: Bools) -> None:
    """Takes a component off the open ones; two or more vertices in it are on a cycle."""
    start = len(open_ones) - 1
    while open_ones[start] != root:
        start -= 1
    component = open_ones[start:]
    del open_ones[start:]
    for vertex in component:
        is_open[vertex] = 0
    if len(component) > 1:
        cyclic[component] = True
