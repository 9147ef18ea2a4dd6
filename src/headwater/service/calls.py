"""Calls under way: at most so many at once, each with a time, tried again when it fails.

A thread can't be stopped from outside. So every attempt has a thread of its own that nobody waits
for: when its time is over the event goes on without it, and what it may still say is not heard.
"""

from __future__ import annotations

import heapq
import random
import threading
import time
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

E = TypeVar("E")

TIMED_OUT = "timed out"
LONGEST_BACKOFF = 30.0
MOST_HANGING = 256
"""As many threads may hang in one process; then calls fail without being made."""
MOST_SAID = 500


class Failed(Exception):
    """A failure whose message is the reason, as it is."""


class Final(Failed):
    """A failure that calling again would not change."""


class TimedOut(Exception):
    """A call that took too long, by its own account."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How calls are made: how many at once, how often again, how long each, how long between."""

    concurrency: int = 8
    retries: int = 2
    timeout: float = 10.0
    backoff: float = 0.2

    def pause(self, attempt: int) -> float:
        """Seconds to wait after an attempt: twice as long each time, and never the same."""
        return self._pause(attempt) * random.uniform(0.5, 1)

    @property
    def longest(self) -> float:
        """Seconds within which an event is over, whatever happens."""
        pauses = (self._pause(attempt) for attempt in range(1, self.retries + 1))
        return self.timeout * (self.retries + 1) + sum(pauses)

    def _pause(self, attempt: int) -> float:
        return min(self.backoff * 2.0 ** (attempt - 1), LONGEST_BACKOFF)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an event's calls: an answer, or the reason why there is none."""

    answer: Any
    reason: str | None
    attempts: int


Done = list[tuple[bytes, Outcome]]


@dataclass(frozen=True, slots=True)
class _Attempt(Generic[E]):
    key: bytes
    event: E
    number: int
    deadline: float
    thread: threading.Thread


_hanging: set[threading.Thread] = set()
"""Threads of calls that were given up and have not returned."""


class Calls(Generic[E]):
    """Events on their way to an answer, each under a key."""

    def __init__(self, function: Callable[[E], Any], policy: Policy) -> None:
        self._function = function
        self._policy = policy
        self._said: SimpleQueue[tuple[int, Any, BaseException | None]] = SimpleQueue()
        self._running: dict[int, _Attempt[E]] = {}
        self._pausing: list[tuple[float, int, bytes, E, int]] = []
        self._number = 0

    @property
    def under_way(self) -> int:
        """How many events are on their way."""
        return len(self._running) + len(self._pausing)

    @property
    def room(self) -> int:
        """How many more may be."""
        return self._policy.concurrency - self.under_way

    def start(self, key: bytes, event: E) -> None:
        """Call for an event."""
        self._attempt(key, event, 1)

    def finished(self, at_most: float) -> Done:
        """The events that are over, after a wait of `at_most` seconds for the first."""
        done: Done = []
        now = time.monotonic()
        until = min(
            [now + at_most, *(a.deadline for a in self._running.values())]
            + [at for at, *_ in self._pausing[:1]]
        )
        try:
            said = self._said.get(timeout=max(until - now, 0))
            while True:
                self._hear(*said, done)
                said = self._said.get_nowait()
        except Empty:
            pass
        self._give_up(done)
        self._go_on()
        return done

    def _attempt(self, key: bytes, event: E, attempt: int) -> None:
        self._number += 1
        number = self._number
        thread = threading.Thread(target=self._call, args=(number, event), daemon=True)
        deadline = time.monotonic() + self._policy.timeout
        self._running[number] = _Attempt(key, event, attempt, deadline, thread)
        _hanging.difference_update([t for t in _hanging if not t.is_alive()])
        if len(_hanging) >= MOST_HANGING:
            error = Final(f"{TIMED_OUT}: {len(_hanging)} earlier calls have not returned")
            self._said.put((number, None, error))
        else:
            thread.start()

    def _call(self, number: int, event: E) -> None:
        try:
            answer = self._function(event)
        except BaseException as error:  # noqa: BLE001
            self._said.put((number, None, error))
        else:
            self._said.put((number, answer, None))

    def _hear(self, number: int, answer: Any, error: BaseException | None, done: Done) -> None:
        attempt = self._running.pop(number, None)
        if attempt is None:
            return
        if error is None:
            done.append((attempt.key, Outcome(answer, None, attempt.number)))
        else:
            self._failed(attempt, reason_of(error), isinstance(error, Final), done)

    def _give_up(self, done: Done) -> None:
        """Go on without the attempts whose time is over."""
        now = time.monotonic()
        for number, attempt in list(self._running.items()):
            if attempt.deadline <= now:
                del self._running[number]
                _hanging.add(attempt.thread)
                self._failed(attempt, TIMED_OUT, False, done)

    def _failed(self, attempt: _Attempt[E], reason: str, final: bool, done: Done) -> None:
        if final or attempt.number > self._policy.retries:
            done.append((attempt.key, Outcome(None, reason, attempt.number)))
            return
        again = time.monotonic() + self._policy.pause(attempt.number)
        self._number += 1
        waiting = (again, self._number, attempt.key, attempt.event, attempt.number + 1)
        heapq.heappush(self._pausing, waiting)

    def _go_on(self) -> None:
        """Try again what has paused long enough."""
        while self._pausing and self._pausing[0][0] <= time.monotonic():
            _, _, key, event, attempt = heapq.heappop(self._pausing)
            self._attempt(key, event, attempt)


def reason_of(error: BaseException) -> str:
    """Why a call failed, in one line."""
    if isinstance(error, TimedOut | TimeoutError):
        return TIMED_OUT
    said = " ".join(str(error).split())
    if not isinstance(error, Failed):
        kind = type(error).__name__
        said = f"{kind}: {said}" if said else kind
    return said if len(said) <= MOST_SAID else f"{said[: MOST_SAID - 3]}..."
