"""A listener of runs that tells of them in OpenLineage."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headwater.errors import HeadwaterError
from headwater.lineage.events import Progress, event
from headwater.spark_errors import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headwater.capture.listening import Brought
    from headwater.capture.sink import BatchInfo
    from headwater.lineage.describing import Description
    from headwater.lineage.emitting import Emitter

EVERY = 60.0
"""Seconds between two events of a run that goes on."""


class Teller:
    """Tells of the runs of a flow: START, RUNNING now and then, COMPLETE or FAIL.

    A flow that is started again, or finished, is another run of the same job.
    """

    def __init__(
        self,
        describe: Callable[[], Description],
        emitter: Emitter,
        *,
        every: float = EVERY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._describe, self._emitter = describe, emitter
        self._every, self._clock = every, clock
        self._lock = threading.Lock()
        self._run: str | None = None
        self._told: Description | None = None
        self._progress = Progress()
        self._last = 0.0
        self._new = False

    def began(self) -> None:
        """Tell that a run begins, unless one goes on."""
        from openlineage.client.uuid import generate_new_uuid

        with self._lock:
            if self._run is not None:
                return
            try:
                self._told = self._describe()
            except Exception as error:  # noqa: BLE001 - the flow itself is to go on
                self._emitter.trouble(error)
                return
            self._run = str(generate_new_uuid())
            self._progress, self._new, self._last = Progress(), False, self._clock()
            self._tell("START")
        self._emitter.watch(self)

    def batch(self, info: BatchInfo, brought: Brought) -> None:
        """Note what a batch brought; it is told when it is time."""
        with self._lock:
            before = self._progress
            self._progress = Progress(
                batch=info.batch,
                batches=before.batches + 1,
                results=before.results + info.results,
                edges=before.edges + info.edges,
                records=before.records + info.records,
                watermark=info.watermark or before.watermark,
                by_sink=_added(before.by_sink, brought.results),
                by_source=_added(before.by_source, brought.records),
                files=_added(before.files, brought.files),
            )
            self._new = True

    def ended(self, failure: BaseException | None) -> None:
        """Tell how a run ended."""
        self._emitter.unwatch(self)
        with self._lock:
            if self._run is None:
                return
            if failure is None:
                self._tell("COMPLETE")
            else:
                own = isinstance(failure, HeadwaterError)
                self._tell("FAIL", str(failure) if own else one_line(failure))
            self._run = None

    def tick(self) -> None:
        """Tell what a run did since it was last told of, if that is long enough ago."""
        with self._lock:
            now = self._clock()
            if self._run is None or not self._new or now - self._last < self._every:
                return
            self._last, self._new = now, False
            self._tell("RUNNING")

    def _tell(self, kind: str, error: str | None = None) -> None:
        run, told, progress = self._run, self._told, self._progress
        at = datetime.now(UTC)
        assert run is not None
        assert told is not None
        self._emitter.put(lambda: event(kind, at, run, told, progress, error))


def _added(before: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    return {name: before.get(name, 0) + more.get(name, 0) for name in {**before, **more}}
