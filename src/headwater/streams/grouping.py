"""Group commit: what the threads of a process publish at the same time becomes one file.

The first to come writes for all that wait; those who come meanwhile wait for the next turn. So the
cost of making a file safe is shared by as many as there are, and a lone publisher waits for no one.
"""

from __future__ import annotations

import itertools
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.streams.conforming import conform
from headwater.streams.errors import StreamError
from headwater.streams.log import Entry

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from headwater.streams.conforming import Row
    from headwater.streams.declaration import Producer
    from headwater.streams.log import Key, Log, Receipt

_MOST = 500_000
"""Events in one file, about: a larger call alone still makes one file."""


@dataclass(slots=True)
class _Request:
    events: list[Row] | pa.Table
    producer: Producer
    key: Key | None
    done: bool = False
    receipt: Receipt | None = None
    error: Exception | None = None

    def result(self) -> Receipt:
        if self.error is not None:
            raise self.error
        assert self.receipt is not None
        return self.receipt


class Group:
    """The publishers of one process to one stream."""

    def __init__(self, name: str, schema: pa.Schema, log: Log) -> None:
        self._name, self._schema, self._log = name, schema, log
        self._changed = threading.Condition()
        self._waiting: list[_Request] = []
        self._busy = False

    def append(
        self, events: list[Row] | pa.Table, producer: Producer, key: Key | None = None
    ) -> Receipt:
        """Publish events, together with what others publish; safe when this returns."""
        request = _Request(events, producer, key)
        with self._changed:
            self._waiting.append(request)
        while taken := self._turn(request):
            try:
                self._commit(taken)
            finally:
                self._over(taken)
        return request.result()

    def _turn(self, request: _Request) -> list[_Request]:
        """Wait until the request is done (then none), or it is one's turn to write these."""
        with self._changed:
            while self._busy and not request.done:
                self._changed.wait()
            if request.done:
                return []
            self._busy = True
            size, count = 0, 0
            for waiting in self._waiting:
                size += len(waiting.events)
                if count and size > _MOST:
                    break
                count += 1
            taken, self._waiting = self._waiting[:count], self._waiting[count:]
            return taken

    def _over(self, taken: list[_Request]) -> None:
        with self._changed:
            for request in taken:
                request.done = True
                if request.receipt is None and request.error is None:
                    # The thread that wrote for all was interrupted.
                    request.error = StreamError(
                        f"publishing to stream {self._name!r} was interrupted; it is not known "
                        "whether the events are there: publish again under a key"
                    )
            self._busy = False
            self._changed.notify_all()

    def _commit(self, requests: list[_Request]) -> None:
        ready = self._tables(requests)
        entries = [Entry(table, request.producer, request.key) for request, table in ready]
        try:
            receipts = self._log.append(entries)
        except Exception as error:  # noqa: BLE001 - each of the waiting threads raises it
            for request, _ in ready:
                request.error = error
            return
        for (request, _), receipt in zip(ready, receipts, strict=True):
            request.receipt = receipt

    def _tables(self, requests: list[_Request]) -> list[tuple[_Request, pa.Table]]:
        """The tables of what can be published; the others get their errors."""
        if len(requests) > 1 and all(isinstance(request.events, list) for request in requests):
            # Many small ones at once: made into columns together, as each alone would be slow.
            rows = [row for request in requests for row in request.events]
            try:
                table = conform(rows, self._schema, self._name)
            except StreamError:
                pass  # one is wrong: which, is told below
            else:
                ends = list(itertools.accumulate(len(request.events) for request in requests))
                starts = [0, *ends[:-1]]
                return [
                    (request, table.slice(start, end - start))
                    for request, start, end in zip(requests, starts, ends, strict=True)
                ]
        ready = []
        for request in requests:
            try:
                ready.append((request, conform(request.events, self._schema, self._name)))
            except Exception as error:  # noqa: BLE001 - the thread that asked raises it
                request.error = error
        return ready


_groups: dict[tuple[str, str], Group] = {}
_lock = threading.Lock()


def group(place: str, identity: str, make: Callable[[], Group]) -> Group:
    """The group of a stream in this process, by the stream's place and identity."""
    with _lock:
        found = _groups.get((place, identity))
        if found is None:
            # Of a stream that was removed and made again, only the new one is of use.
            for old in [key for key in _groups if key[0] == place]:
                del _groups[old]
            found = _groups[place, identity] = make()
        return found


def _forked() -> None:
    """A forked child has none of the threads that its parent's groups wait for."""
    global _lock
    _lock = threading.Lock()
    _groups.clear()


os.register_at_fork(after_in_child=_forked)
