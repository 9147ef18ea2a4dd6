"""An alert at work: events of a stream told by webhook or mail, at least once each, in order.

It follows the stream by itself, so that a receiver that is slow or gone keeps nothing else waiting;
what could not be told is told later.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from headwater.deploy.building.carried import EVENT_ID, POSITION
from headwater.deploy.building.pieces import ALERT
from headwater.deploy.units.alerts import alert_of
from headwater.deploy.units.reader import Reader
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from headwater.deploy.building.carried import Carried
    from headwater.deploy.records import UnitRecord
    from headwater.streams import Streams

_BREATH = 0.1
_PATIENCE = (1.0, 2.0, 5.0, 15.0, 60.0)
"""Seconds before events that could not be told are tried again."""
_DRAIN = 30.0
"""Seconds that a change waits for alerts to be told; what takes over tells the rest."""


class AlertUnit(Reader):
    """Tells of the events of a stream from one place to another."""

    def __init__(
        self,
        record: UnitRecord,
        given: Carried,
        alert: Mapping[str, Any],
        streams: Streams,
        save: Callable[[UnitRecord], None],
    ) -> None:
        super().__init__(record, given, streams, save)
        self._alert = alert_of(alert, flow=record.flow, node=record.name.removesuffix(ALERT))
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()

    @property
    def state(self) -> str:
        """What can be said of it in a word."""
        if self.record.ended:
            return "ended"
        if self._thread is None:
            return "stopped"
        return "running" if self.error is None else "retrying"

    def start(self) -> None:
        """Go on from what was told last."""
        self._resume()
        self._ending.clear()
        self._thread = threading.Thread(target=self._work, name=self.consumer, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Tell no more for now."""
        self._ending.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def feed(self) -> int:
        """It follows its stream by itself."""
        return 0

    def drain(self) -> None:
        """Tell of all before the cut, or leave it to what takes its place."""
        if self._thread is None:
            self.start()
        until = self._input.until
        assert until is not None
        waited = 0.0
        while self.position < until and self.error is None and waited < _DRAIN:
            waited += _BREATH
            self._ending.wait(_BREATH)
        self.stop()
        self._input.until = min(until, self.position)
        self.record.ended = True
        self._save(self.record)

    def _work(self) -> None:
        failures = 0
        while not self._ending.is_set():
            try:
                told = self._tell()
                self.error, failures = None, 0
            except HeadwaterError as error:
                self.error = str(error)
                self._ending.wait(_PATIENCE[min(failures, len(_PATIENCE) - 1)])
                failures += 1
                continue
            if not told:
                self._ending.wait(_BREATH)

    def _tell(self) -> int:
        """Tell of what is new; how many events that are."""
        told = 0
        until = self._input.until
        if until is not None and self.position >= until:
            return 0
        for batch in self._streams.read(self._input.stream, self.position, until):
            if self._ending.is_set():
                break
            ids = self._ids(batch.table, int(batch.start))
            names = [name for name in batch.table.column_names if name != EVENT_ID]
            events = batch.table.select(names).to_pylist()
            self._alert.send(events, ids, self.record.version)
            told += len(ids)
            with suppress(HeadwaterError):
                self._reached(int(batch.end))
        return told

    def _ids(self, events: pa.Table, start: int) -> list[int]:
        """The ids of events; of a stream without, their positions."""
        if self._given.id in ((), (POSITION,)):
            return list(range(start, start + len(events)))
        ids = events[self._given.id[0]].to_pylist()
        whole = all(isinstance(value, int) for value in ids)
        return ids if whole else list(range(start, start + len(events)))
