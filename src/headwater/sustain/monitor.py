"""`Monitor`: the queues of a flow's nodes side by side (Streamflow's Figure 66)."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.sustain.queue import Queue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.sustain.history import Numbers
    from headwater.sustain.queue import Measured


@dataclass(frozen=True, slots=True)
class Matrix:
    """Queue lengths: a row for each node, a column for each moment."""

    nodes: tuple[str, ...]
    times: Numbers
    """The end of each piece of time, in seconds."""
    lengths: Numbers


class Monitor:
    """The queues of one version of a flow."""

    def __init__(self, flow: str, version: str = "1") -> None:
        self.flow, self.version = flow, version
        self._queues: dict[str, Queue] = {}
        self._lock = threading.Lock()

    def queue(self, node: str, **settings: Any) -> Queue:
        """The queue of a node; made at first, with the settings of `Queue`."""
        with self._lock:
            if node not in self._queues:
                self._queues[node] = Queue(node, **settings)
            return self._queues[node]

    def add(self, queue: Queue) -> Queue:
        """Take a queue that was made elsewhere."""
        with self._lock:
            self._queues[queue.node] = queue
        return queue

    def drop(self, node: str) -> None:
        """Measure a node no longer."""
        with self._lock:
            self._queues.pop(node, None)

    def __contains__(self, node: object) -> bool:
        return node in self._queues

    def __iter__(self) -> Iterator[Queue]:
        return iter(list(self._queues.values()))

    def measured(self) -> list[Measured]:
        """Every node as it is now."""
        return [queue.measured() for queue in self]

    def matrix(self) -> Matrix:
        """All histories on one time axis; before a node's own it has 0.

        >>> monitor = Monitor("weather")
        >>> monitor.queue("storms").arrived(2, at=0.5)
        >>> monitor.queue("strong").arrived(1, at=2.5)
        >>> monitor.matrix().lengths.tolist()
        [[2.0, 2.0, 2.0], [0.0, 0.0, 1.0]]
        """
        told = {queue.node: queue.series() for queue in self}
        known = [series for series in told.values() if series.pieces]
        if not known:
            return Matrix(tuple(told), np.zeros(0), np.zeros((len(told), 0)))
        every = max(series.every for series in known)
        start = min(series.start for series in known)
        ends = max(series.start + series.span for series in known)
        times = start + every * np.arange(1.0, round((ends - start) / every) + 1)
        rows = np.zeros((len(told), len(times)))
        for row, series in zip(rows, told.values(), strict=True):
            if series.pieces:
                at = np.ceil((times - series.start) / series.every - 1e-9).astype(int) - 1
                row[:] = np.where(at >= 0, series.last[np.clip(at, 0, series.pieces - 1)], 0)
        return Matrix(tuple(told), times.astype(np.float64), rows)
