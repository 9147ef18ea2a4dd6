"""Handing events over: a bounded queue and one thread, so that no flow waits for a receiver."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger("headwater")

ROOM = 1_000
"""Events that may wait; what comes beyond is dropped."""
_LOOK = 1.0
"""Seconds between two looks at whether something is due."""


class Watched(Protocol):
    """What has to be looked at from time to time."""

    def tick(self) -> None:
        """Tell what is due."""


class Emitter:
    """Gives events to a client in the order in which they come; what goes wrong is counted."""

    def __init__(self, client: Callable[[], Any], room: int = ROOM) -> None:
        """`client` makes the client; it is called in the thread, once there is an event."""
        self.emitted = self.failed = self.dropped = 0
        self._make = client
        self._client: Any = None
        self._room = room
        self._waiting: deque[Callable[[], Any]] = deque()
        self._changed = threading.Condition()
        self._at_work = False
        self._thread: threading.Thread | None = None
        self._watched: list[Watched] = []
        self._said: set[str] = set()

    def put(self, make: Callable[[], Any]) -> bool:
        """Have an event made and handed over, later; false if there is no room for it."""
        with self._changed:
            if len(self._waiting) >= self._room:
                self.dropped += 1
                self._say("dropped", f"OpenLineage: {self._room} events wait; more are dropped")
                return False
            self._waiting.append(make)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="headwater-openlineage", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()
            return True

    def watch(self, one: Watched) -> None:
        """Look at it from time to time."""
        with self._changed:
            if one not in self._watched:
                self._watched.append(one)

    def unwatch(self, one: Watched) -> None:
        """Look at it no more."""
        with self._changed:
            if one in self._watched:
                self._watched.remove(one)

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until all events are handed over; false if that took too long."""
        until = time.monotonic() + timeout
        with self._changed:
            while self._waiting or self._at_work:
                left = until - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
        return True

    def close(self, timeout: float = 5.0) -> None:
        """Hand over what waits, if that is quick enough, and let the client go."""
        until = time.monotonic() + timeout
        if self.flush(timeout) and self._client is not None:
            try:
                self._client.close(max(0.0, until - time.monotonic()))
            except Exception as error:  # noqa: BLE001 - nobody is left to hear of it
                self.trouble(error)

    def trouble(self, error: BaseException) -> None:
        """Count an event that could not be told; the first time it is said why."""
        with self._changed:
            self.failed += 1
            why = " ".join(str(error).split())[:300] or type(error).__name__
            self._say(
                "failed",
                f"OpenLineage: an event could not be told ({why}); flows go on, and further "
                "failures are only counted",
            )

    def _say(self, kind: str, text: str) -> None:
        if kind not in self._said:
            self._said.add(kind)
            log.warning(text)

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._changed.wait(_LOOK)
                make = self._waiting.popleft() if self._waiting else None
                watched = list(self._watched)
                self._at_work = make is not None
            if make is not None:
                self._emit(make)
                with self._changed:
                    self._at_work = False
                    self._changed.notify_all()
            for one in watched:
                one.tick()

    def _emit(self, make: Callable[[], Any]) -> None:
        try:
            if self._client is None:
                self._client = self._make()
            self._client.emit(make())
            self.emitted += 1
        except Exception as error:  # noqa: BLE001 - no flow may suffer from its receiver
            self.trouble(error)
