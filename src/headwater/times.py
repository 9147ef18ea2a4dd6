"""Times as whole microseconds, in arrays that have no room for a missing one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

NO_TIME = -(1 << 63)
"""In place of a time that is not known."""
EPOCH = datetime.fromtimestamp(0, UTC)


def micros(time: datetime | None) -> int | None:
    """A moment in microseconds since 1970.

    >>> micros(EPOCH + timedelta(seconds=2))
    2000000
    """
    return None if time is None else (time - EPOCH) // timedelta(microseconds=1)


def as_numbers(times: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Moments in microseconds, `NO_TIME` where there is none."""
    import pyarrow as pa

    numbers: npt.NDArray[np.int64] = times.cast(pa.int64()).fill_null(NO_TIME).to_numpy()
    return numbers
