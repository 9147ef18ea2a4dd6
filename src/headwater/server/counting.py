"""What the service counts of itself, for Prometheus."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING

from headwater.sustain.metrics import sample

if TYPE_CHECKING:
    from collections.abc import Iterator

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Those that are told apart: anybody can send any word."""
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds that requests are told apart by."""


class Counts:
    """Requests, events and followers. Threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str]] = Counter()
        self._buckets = [0] * (len(BOUNDS) + 1)
        self._seconds = 0.0
        self.published = 0
        self.followers = 0

    def request(self, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        named = method if method in METHODS else "other"
        with self._lock:
            self._requests[named, f"{status // 100}xx"] += 1
            self._buckets[bisect_left(BOUNDS, seconds)] += 1
            self._seconds += seconds

    def publish(self, events: int) -> None:
        """Count events that were published."""
        with self._lock:
            self.published += events

    def text(self) -> str:
        """All of it in Prometheus' format."""
        with self._lock:
            return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        name = "headwater_http_requests_total"
        yield from _head(name, "counter", "Requests by method and kind of status.")
        for (method, status), count in sorted(self._requests.items()):
            yield sample(name, {"method": method, "status": status}, count)
        name = "headwater_http_request_seconds"
        yield from _head(name, "histogram", "How long requests took.")
        total = 0
        for bound, count in zip((*map(str, BOUNDS), "+Inf"), self._buckets, strict=True):
            total += count
            yield sample(f"{name}_bucket", {"le": bound}, total)
        yield sample(f"{name}_sum", {}, self._seconds)
        yield sample(f"{name}_count", {}, total)
        yield from _head("headwater_http_published_events_total", "counter", "Events by REST.")
        yield sample("headwater_http_published_events_total", {}, self.published)
        yield from _head("headwater_http_followers", "gauge", "Connections that follow something.")
        yield sample("headwater_http_followers", {}, self.followers)


def _head(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"
