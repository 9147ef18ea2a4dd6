"""How long queries may take: a limit for all that a thread asks, kept by one watcher."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

_AGAIN = 0.1
"""Seconds after which what did not end is interrupted once more."""
_until: ContextVar[float | None] = ContextVar("headwater_until", default=None)


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Have what is asked of stores in here raise `QueryTimeout` after so many seconds in all."""
    until = None if seconds is None else time.monotonic() + seconds
    token = _until.set(until)
    try:
        yield
    finally:
        _until.reset(token)


def left() -> float | None:
    """Seconds that are left of the limit, if there is one; may be negative."""
    until = _until.get()
    return None if until is None else until - time.monotonic()


@contextmanager
def watched(cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Interrupt what a cursor does when the limit is over."""
    until = _until.get()
    if until is None:
        yield
        return
    with _watcher.watching(until, cursor):
        yield


class _Watcher:
    """One thread for all limits: starting one for each query would cost more than the query."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._numbers = itertools.count()
        self._waiting: list[tuple[float, int]] = []
        self._cursors: dict[int, duckdb.DuckDBPyConnection] = {}
        self._thread: threading.Thread | None = None

    @contextmanager
    def watching(self, until: float, cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
        with self._changed:
            number = next(self._numbers)
            first = not self._waiting or until < self._waiting[0][0]
            heapq.heappush(self._waiting, (until, number))
            self._cursors[number] = cursor
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._watch, name="headwater-time-limits", daemon=True
                )
                self._thread.start()
            elif first:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._cursors.pop(number, None)

    def _watch(self) -> None:
        with self._changed:
            while True:
                while self._waiting and self._waiting[0][1] not in self._cursors:
                    heapq.heappop(self._waiting)
                if not self._waiting:
                    self._changed.wait()
                    continue
                until, number = self._waiting[0]
                if (rest := until - time.monotonic()) > 0:
                    self._changed.wait(rest)
                    continue
                heapq.heappop(self._waiting)
                self._cursors[number].interrupt()
                # What comes just before a statement begins is forgotten when it does.
                heapq.heappush(self._waiting, (time.monotonic() + _AGAIN, number))


_watcher = _Watcher()
