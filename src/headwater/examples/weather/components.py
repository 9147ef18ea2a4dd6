"""Connected components of many grids at once, without a loop over cells.

>>> components(5, np.array([0, 3]), np.array([1, 4])).tolist()
[0, 0, 2, 3, 3]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from headwater.examples.stream import Ints


def components(count: int, one: Ints, other: Ints) -> Ints:
    """For each of `count` things the least that it is connected with, by edges one–other.

    In each round the roots of an edge's ends become one, and all paths to roots are made short.
    """
    root = np.arange(count, dtype=np.int64)
    while True:
        a, b = root[one], root[other]
        apart = a != b
        if not apart.any():
            return root
        a, b = a[apart], b[apart]
        np.minimum.at(root, np.maximum(a, b), np.minimum(a, b))
        while not np.array_equal(shorter := root[root], root):
            root = shorter


def clusters(grid: Ints, cell: Ints, side: int) -> Ints:
    """For each cell of several grids the first one, by its place here, of its cluster.

    Cells are given by the number of their grid and their number in it, in this order. Those that
    touch, also by a corner, are in one cluster.
    """
    # An empty cell around each grid: no neighbour is in the next row or in another grid.
    wide = side + 2
    row, column = np.divmod(cell, side)
    key = grid * wide * wide + (row + 1) * wide + column + 1
    pairs = []
    for step in (1, wide - 1, wide, wide + 1):
        place = np.searchsorted(key, key + step)
        found = np.flatnonzero(key[np.minimum(place, len(key) - 1)] == key + step)
        pairs.append((found, place[found]))
    ones, others = (np.concatenate(ends) for ends in zip(*pairs, strict=True))
    return components(len(key), ones, others)
