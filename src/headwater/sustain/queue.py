"""`Queue`: a node measured while it runs, and what can be said of it."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headwater.errors import FlowError
from headwater.sustain.history import History, Totals
from headwater.sustain.verdicts import Verdict, judge

if TYPE_CHECKING:
    from headwater.sustain.history import Series

_PATIENCE = 16
"""How many times as long as one event takes a history has to be, to tell anything."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A node as it is now; None is what is not known yet."""

    node: str
    taken: float
    """Events in."""
    done: float
    """Events in that are finished with."""
    made: float
    """Events out."""
    length: float
    """Events in transit."""
    rate: float | None
    """Events in a second, over the history."""
    service: float | None
    """Seconds of work for an event, over the history."""
    efficiency: float | None
    """Compute time over compute and framework time."""
    cardinality: float | None
    """Events out for each finished with, since the beginning."""
    compute: float
    framework: float
    verdict: Verdict

    @property
    def expected(self) -> float | None:
        """The length by Little's law, L = λW."""
        return self.verdict.expected


class Queue:
    """The abstract queue of a node: what came in and is not finished with. Threads may share it.

    Tell it events as they happen (`arrived`, `finished`) or totals now and then (`observe`).

    >>> queue = Queue("storms", slots=2)
    >>> queue.arrived(3, at=0.0)
    >>> queue.finished(1, compute=0.4, framework=0.1, at=0.5)
    >>> told = queue.measured()
    >>> told.length, told.service, told.efficiency, told.verdict.state
    (2, 0.4, 0.8, 'unknown')
    """

    def __init__(
        self,
        node: str,
        *,
        slots: int = 1,
        service: float | None = None,
        delay: float = 0.0,
        capacity: float | None = None,
        every: float = 1.0,
        size: int = 600,
        start: Totals | None = None,
    ) -> None:
        """`service` is the time declared, until one is measured; `delay` how long events are held
        back on purpose, as until the next batch; `capacity` the length at which there is no room.
        """
        if slots < 1 or every <= 0 or size < 64 or delay < 0:
            raise FlowError(
                f"slots={slots}, every={every}, size={size}, delay={delay} of node {node!r}: give "
                "1 or more, more than 0, 64 or more, 0 or more"
            )
        self.node = node
        self.slots, self.service, self.delay, self.capacity = slots, service, delay, capacity
        self._history = History(max(every, (service or 0.0) * _PATIENCE / size), size, start)
        self._lock = threading.Lock()

    def arrived(self, events: int = 1, *, at: float | None = None) -> None:
        """Events came in."""
        with self._lock:
            totals = self._history.totals
            self._add(at, replace(totals, taken=totals.taken + events))

    def finished(
        self,
        events: int = 1,
        *,
        made: int | None = None,
        compute: float = 0.0,
        framework: float = 0.0,
        at: float | None = None,
    ) -> None:
        """Events are finished with, after so many seconds of work; `made` of them as many."""
        with self._lock:
            totals = self._history.totals
            told = Totals(
                totals.taken,
                totals.done + events,
                totals.made + (events if made is None else made),
                totals.compute + compute,
                totals.framework + framework,
            )
            self._add(at, told)

    def observe(self, totals: Totals, *, at: float | None = None) -> None:
        """All that has happened since the beginning, as counted elsewhere."""
        with self._lock:
            self._add(at, totals)

    def look(self, *, at: float | None = None) -> None:
        """Time has passed, and nothing happened."""
        with self._lock:
            self._add(at, self._history.totals)

    def series(self) -> Series:
        """The history: this node's row of Figure 66's matrix."""
        with self._lock:
            return self._history.series()

    def measured(self, capacity: float | None = None) -> Measured:
        """The node as it is, with the verdict; `capacity` may be given here too."""
        with self._lock:
            series, now = self._history.series(), self._history.totals
        service, efficiency = _work(series)
        verdict = judge(
            series,
            slots=self.slots,
            service=self.service if service is None else service,
            delay=self.delay,
            capacity=self.capacity if capacity is None else capacity,
        )
        taken = now.taken - series.first.taken
        return Measured(
            node=self.node,
            taken=now.taken,
            done=now.done,
            made=now.made,
            length=now.length,
            rate=taken / series.span if series.span else None,
            service=service,
            efficiency=efficiency,
            cardinality=now.made / now.done if now.done else None,
            compute=now.compute,
            framework=now.framework,
            verdict=verdict,
        )

    def _add(self, at: float | None, totals: Totals) -> None:
        self._history.add(time.time() if at is None else at, totals)
        # Of a job that takes hours, ten minutes say nothing.
        done = totals.done
        if done and totals.compute / done * _PATIENCE > self._history.every * self._history.size:
            self._history.widen()


def _work(series: Series) -> tuple[float | None, float | None]:
    """Seconds of work for an event, and the share of work, over the history."""
    first, now = series.first, series.totals
    done, compute = now.done - first.done, now.compute - first.compute
    whole = compute + now.framework - first.framework
    service = compute / done if done > 0 and compute > 0 else None
    return service, compute / whole if whole > 0 else None
