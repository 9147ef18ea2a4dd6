"""A subscription: an iterator that follows a stream as it grows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from headwater.streams.declaration import load

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from headwater.streams.consumers import Consumers
    from headwater.streams.declaration import Declaration
    from headwater.streams.files import Held
    from headwater.streams.log import Batch, Log
    from headwater.streams.positions import Position

SHORTEST, LONGEST = 0.002, 0.1
"""Seconds between two looks: soon again after events, then less and less often."""


class Subscription:
    """The events of a stream from a position on, in batches; it waits for more.

    It ends when the stream is stopped and all is read, or after `idle` seconds without an event. Of
    a consumer, it begins where that one was, and `done` says how far it is now.
    """

    def __init__(
        self,
        folder: Path,
        declaration: Declaration,
        log: Log,
        consumers: Consumers,
        position: Position,
        consumer: str | None,
        idle: float | None,
        held: list[Held],
    ) -> None:
        self.position = position
        """Where the next batch begins."""
        self._folder, self._declaration, self._log = folder, declaration, log
        self._consumers, self._consumer = consumers, consumer
        self._idle, self._held = idle, held
        self._batches = self._follow()

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        return next(self._batches)

    def done(self, position: Position | None = None) -> None:
        """All before a position is dealt with: by default, all batches given out so far."""
        if self._consumer is not None:
            load(self._folder, self._declaration)
            self._consumers.advance(self._consumer, position or self.position)

    def close(self) -> None:
        """End the subscription; a consumer stays registered."""
        self._batches.close()
        for held in self._held:
            held.close()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _follow(self) -> Generator[Batch]:
        wait, last = SHORTEST, time.monotonic()
        while True:
            # Asked before reading: what comes in between is then read before the end.
            stopped = load(self._folder, self._declaration).stopped
            some = False
            for batch in self._log.read(self.position):
                self.position, some = batch.end, True
                yield batch
            now = time.monotonic()
            if some:
                wait, last = SHORTEST, now
                continue
            if stopped or (self._idle is not None and now - last >= self._idle):
                return
            time.sleep(wait)
            wait = min(2 * wait, LONGEST)
