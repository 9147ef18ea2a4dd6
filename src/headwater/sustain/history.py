"""The finite history of a queue: its lengths and counters in equal pieces of time."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Totals:
    """What has happened since the beginning."""

    taken: float = 0
    """Events that came in."""
    done: float = 0
    """Of these the ones that are finished with."""
    made: float = 0
    """Events that went out."""
    compute: float = 0.0
    """Seconds of the node's own work."""
    framework: float = 0.0
    """Seconds that went into starting it and moving its events."""

    @property
    def length(self) -> float:
        """Events in transit: that wait or are worked on."""
        return self.taken - self.done


@dataclass(slots=True)
class _Bucket:
    index: int
    low: float
    high: float
    totals: Totals


@dataclass(frozen=True, slots=True)
class Series:
    """A history as arrays, a value for each piece of time."""

    every: float
    start: float
    """When the first piece begins."""
    low: Numbers
    """The least length within each."""
    high: Numbers
    """The greatest."""
    last: Numbers
    """The length at its end: a row of Figure 66's matrix."""
    taken: Numbers
    """Events in until its end."""
    first: Totals
    """As all was before."""
    totals: Totals
    """As all is now."""

    @property
    def pieces(self) -> int:
        """How many pieces of time there are."""
        return len(self.last)

    @property
    def span(self) -> float:
        """Seconds that are told of."""
        return self.pieces * self.every

    @property
    def counts(self) -> Numbers:
        """Events that came in within each."""
        return np.diff(self.taken, prepend=self.first.taken)


class History:
    """The last `size` pieces of time, `every` seconds each; those without a change cost nothing."""

    def __init__(self, every: float = 1.0, size: int = 600, start: Totals | None = None) -> None:
        self.every = every
        self.size = size
        self.totals = start or Totals()
        self._before = self.totals
        self._buckets: deque[_Bucket] = deque()
        self._begin: int | None = None

    def add(self, at: float, totals: Totals) -> None:
        """The totals from a moment on; what is told out of order counts as told last."""
        index = int(at // self.every)
        length = totals.length
        if self._begin is None:
            self._begin = index
        if not self._buckets or index > self._buckets[-1].index:
            held = self.totals.length  # as it was until this moment
            self._buckets.append(_Bucket(index, min(held, length), max(held, length), totals))
        else:
            bucket = self._buckets[-1]
            bucket.low, bucket.high = min(bucket.low, length), max(bucket.high, length)
            bucket.totals = totals
        self.totals = totals
        self._forget(self._buckets[-1].index)

    def widen(self) -> None:
        """Make a piece of two, so that twice the time is told of from now on."""
        joined: deque[_Bucket] = deque()
        for bucket in self._buckets:
            index = bucket.index // 2
            if joined and joined[-1].index == index:
                low, high = min(joined[-1].low, bucket.low), max(joined[-1].high, bucket.high)
                joined[-1] = _Bucket(index, low, high, bucket.totals)
            else:
                joined.append(replace(bucket, index=index))
        self._buckets = joined
        self.every *= 2
        self._begin = None if self._begin is None else self._begin // 2

    def series(self) -> Series:
        """All that is told of, with the pieces in between in which nothing changed."""
        if self._begin is None or not self._buckets:
            empty = np.zeros(0)
            return Series(self.every, 0.0, empty, empty, empty, empty, self._before, self.totals)
        end = self._buckets[-1].index
        begin = max(self._begin, end - self.size + 1)
        where = np.array([b.index - begin for b in self._buckets])
        told = np.array([(b.low, b.high, b.totals.length, b.totals.taken) for b in self._buckets])
        at = np.arange(end - begin + 1)
        # Each piece holds what the last change before it left behind.
        source = np.searchsorted(where, at, side="right") - 1
        changed = np.isin(at, where)
        before = np.array([self._before.length, self._before.taken])
        held = np.where(source[:, None] < 0, before, told[source][:, 2:])
        low = np.where(changed, told[source][:, 0], held[:, 0])
        high = np.where(changed, told[source][:, 1], held[:, 0])
        start = begin * self.every
        return Series(
            self.every, start, low, high, held[:, 0], held[:, 1], self._before, self.totals
        )

    def _forget(self, end: int) -> None:
        while self._buckets[0].index <= end - self.size:
            self._before = self._buckets.popleft().totals
