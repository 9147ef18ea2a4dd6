"""The three streams of Streamflow's §5.5.2: how many events each second has.

The third is by its printed sequence, the first one's at every other second with none between: its
formula, read as it stands, has one event at each even second.
"""

from __future__ import annotations

import math
from collections.abc import Callable

Wave = Callable[[int], int]


def wave1(second: int) -> int:
    """⌊max(0, 3 sin(πx/4) + 1)⌋: 1.5 events a second on average.

    >>> [wave1(x) for x in range(9)]
    [1, 3, 4, 3, 1, 0, 0, 0, 1]
    """
    return _sine(second, 4)


def wave2(second: int) -> int:
    """⌊max(0, 3 sin(πx/8) + 1)⌋: 1.375 events a second on average.

    >>> [wave2(x) for x in range(17)]
    [1, 2, 3, 3, 4, 3, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 1]
    """
    return _sine(second, 8)


def wave3(second: int) -> int:
    """The first wave at every other second: 0.75 events a second on average.

    >>> [wave3(x) for x in range(11)]
    [1, 0, 3, 0, 4, 0, 3, 0, 1, 0, 0]
    """
    return 0 if second % 2 else wave1(second // 2)


WAVES: dict[str, Wave] = {"stream 1": wave1, "stream 2": wave2, "stream 3": wave3}


def _sine(second: int, half: int) -> int:
    # The small addition keeps whole numbers whole, which the sine misses by a rounding error.
    return math.floor(max(0.0, 3 * math.sin(math.pi * second / half) + 1) + 1e-9)
