"""Fresh ids for results whose id came before: the n-th occurrence of an id gets its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Callable

Ids = npt.NDArray[np.int64]

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def mixed(ids: Ids, n: Ids) -> Ids:
    """The id of the n-th occurrence of each id: splitmix64 of the id, n steps on.

    >>> mixed(np.array([7, 7]), np.array([2, 3])).tolist()
    [309689372594955804, -1830642326893942270]
    """
    z = ids.astype(np.uint64) + n.astype(np.uint64) * _GAMMA
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    final: Ids = (z ^ (z >> np.uint64(31))).astype(np.int64)
    return final


def has_repeats(values: npt.NDArray[np.generic]) -> bool:
    """Whether a value occurs twice."""
    ordered = np.sort(values)
    return bool((ordered[1:] == ordered[:-1]).any())


def ranks(ids: Ids) -> Ids:
    """How often each id occurred earlier in the array.

    >>> ranks(np.array([5, 8, 5, 5])).tolist()
    [0, 0, 1, 2]
    """
    if not has_repeats(ids):
        return np.zeros(len(ids), np.int64)
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    place = np.arange(len(ids))
    first = np.concatenate(([True], ordered[1:] != ordered[:-1]))
    start = np.maximum.accumulate(np.where(first, place, 0))
    result = np.empty(len(ids), np.int64)
    result[order] = place - start
    return result


def numbered(ids: Ids, stored: Callable[[Ids], tuple[Ids, Ids]]) -> tuple[Ids, Ids]:
    """Final ids, and the occurrence number of each; `stored` counts what the store has already.

    `stored(ids)` gives those of the distinct ids that the store has, and how often.
    """
    n = ranks(ids) + 1
    known, counts = stored(ids)
    if len(known):
        order = np.argsort(known)
        known, counts = known[order], counts[order]
        at = np.minimum(np.searchsorted(known, ids), len(known) - 1)
        n += np.where(known[at] == ids, counts[at], 0)
    again = n > 1
    final = ids.copy()
    final[again] = mixed(ids[again], n[again])
    return final, n
