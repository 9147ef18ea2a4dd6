"""A version of a job at work: events of its stream into the queue."""

from __future__ import annotations

import threading
from datetime import datetime
from typing import TYPE_CHECKING

from headwater.compose.durations import microseconds
from headwater.deploy.building.carried import EVENT_ID, EVENT_TIME, Carried
from headwater.deploy.units.reader import Reader
from headwater.errors import HeadwaterError
from headwater.query.entities import STREAMS
from headwater.runtimes.jobs import Event
from headwater.runtimes.jobs.events import entity
from headwater.streams.errors import LogUnreachable
from headwater.streams.schema import parse

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from headwater.deploy.records import UnitRecord
    from headwater.deploy.units.job_line import JobLine
    from headwater.runtimes.jobs import Job
    from headwater.streams import Streams

_AT_ONCE = 1_000
"""Events that are enqueued together."""


class JobUnit(Reader):
    """A version of a job: it enqueues events of its stream from one place to another."""

    def __init__(
        self,
        record: UnitRecord,
        given: Carried,
        job: Job,
        line: JobLine,
        streams: Streams,
        save: Callable[[UnitRecord], None],
    ) -> None:
        super().__init__(record, given, streams, save)
        self.line, self._job = line, job
        line.add(record, given)
        self.latest: float | None = None
        self._running = False
        self._lock = threading.Lock()

    @property
    def state(self) -> str:
        """What can be said of it in a word."""
        if self.error is not None:
            return "failed"
        if not self._running:
            return "ended" if self.record.ended else "stopped"
        return "paused" if self.line.queue.paused else "running"

    def start(self) -> None:
        """Take events from where it was."""
        self._resume()
        if not self.record.ended:
            self.line.queue.declare(self._job)
        self.line.start()
        self._running = True

    def feed(self) -> int:
        """Enqueue what is new; how many events that are."""
        with self._lock:
            if not self._running or self.record.ended or self.error is not None:
                return 0
            try:
                return self._feed()
            except LogUnreachable:
                return 0  # a broker that is silent for now
            except HeadwaterError as error:
                self.error = f"input {self._input.node!r}: {error}"
                return 0

    def _feed(self) -> int:
        fed = 0
        end = self._input.until
        if end is not None and self.position >= end:
            return 0
        for batch in self._streams.read(self._input.stream, self.position, end):
            events = self._events(batch.table, int(batch.start))
            for at in range(0, len(events), _AT_ONCE):
                self.line.queue.enqueue(events[at : at + _AT_ONCE])
            fed += len(events)
            self._reached(int(batch.end))
            self._advance()
        if fed:
            self.line.runtime.wake()
        return fed

    def _events(self, table: pa.Table, start: int) -> list[Event]:
        time, made = self._given.time, []
        own = [name for name in parse(self._given.schema).names if name in table.column_names]
        for place, row in enumerate(table.select(own).to_pylist()):
            number = start + place if not self._given.id else row[self._given.id[0]]
            at = row.get(time) if time is not None else None
            moment = at.timestamp() if isinstance(at, datetime) else None
            if moment is not None:
                self.latest = max(self.latest or moment, moment)
            if self._given.made:
                row.pop(EVENT_ID, None)
                row.pop(EVENT_TIME, None)
            name = entity(STREAMS, self._input.stream, number)
            made.append(Event(number, row, name, moment))
        return made

    def _advance(self) -> None:
        if self._job.every is not None and self.latest is not None:
            delay = (microseconds(self._given.delay or "0 seconds") or 0) / 1e6
            self.line.queue.advance(self.latest - delay)

    def drain(self) -> None:
        """Enqueue all before the cut; what is in the queue goes on in its version."""
        if not self._running:
            self.start()
        self.feed()
        if self._job.windowed:
            self.line.queue.flush()
        self.record.ended = True
        self._save(self.record)

    def stop(self) -> None:
        """Take no more events for now."""
        self._running = False
