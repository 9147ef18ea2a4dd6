"""A queue with slots, simulated: when events that arrive at given times are done."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from headwater.sustain.queue import Queue


def departures(
    arrivals: Iterable[float], service: float | Callable[[int], float], slots: int = 1
) -> Iterator[float]:
    """When each event is done, in the order of arrival; slots take events first come, first served.

    >>> list(departures([0, 0, 0, 5], service=1.0, slots=2))
    [1.0, 1.0, 2.0, 6.0]
    """
    free = [0.0] * slots
    for number, at in enumerate(arrivals):
        takes = service(number) if callable(service) else service
        done = max(at, heapq.heappop(free)) + takes
        heapq.heappush(free, done)
        yield done


def per_second(counts: Iterable[int]) -> Iterator[float]:
    """Times of arrival when each second has so many events, all at its beginning."""
    for second, count in enumerate(counts):
        for _ in range(count):
            yield float(second)


def run(
    queue: Queue,
    arrivals: Iterable[float],
    service: float | Callable[[int], float],
    slots: int = 1,
    until: float | None = None,
) -> Queue:
    """Tell a queue all that happens, in the order of time, and what there is `until` then."""
    came = list(arrivals)
    takes = [service(n) if callable(service) else service for n in range(len(came))]
    gone = list(departures(came, lambda number: takes[number], slots))
    happened = sorted(
        [(at, 1, 0.0) for at in came]
        + [(at, 0, spent) for at, spent in zip(gone, takes, strict=True)]
    )
    for at, arrived, spent in happened:
        if until is not None and at > until:
            break
        if arrived:
            queue.arrived(1, at=at)
        else:
            queue.finished(1, compute=spent, at=at)
    if until is not None:
        queue.look(at=until)
    return queue
