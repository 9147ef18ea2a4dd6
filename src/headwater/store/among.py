"""Ids in a condition of SQL: a few are parameters each, many are one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

FEW = 64
"""So many are compared as constants, which is faster than a join with a list of them."""


def among(ids: npt.NDArray[np.int64] | Sequence[int]) -> tuple[str, list[object]]:
    """What stands behind a column to say that it is one of some ids, and the parameters.

    >>> among([7]), among([7, 9])
    (('= ?', [7]), ('IN (?, ?)', [7, 9]))
    """
    if len(ids) == 1:
        return "= ?", [int(ids[0])]
    if 1 < len(ids) <= FEW:
        return f"IN ({', '.join('?' * len(ids))})", [int(each) for each in ids]
    return "IN (SELECT unnest(?::BIGINT[]))", [[int(each) for each in ids]]
