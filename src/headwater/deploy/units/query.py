"""A unit of operators or functions at work: one streaming query, fed with its streams."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from headwater.capture.checkpoint import Checkpoint
from headwater.capture.choosing import choose
from headwater.capture.run import Run
from headwater.capture.start import open_writer, start
from headwater.deploy.monitoring.accounts import load
from headwater.deploy.monitoring.counting import Counter
from headwater.deploy.units.feeding import Feeder, latest_time
from headwater.deploy.units.places import Places
from headwater.errors import HeadwaterError, RunError
from headwater.flow.windows import microseconds
from headwater.lineage import unit_listener
from headwater.live.planning import planned
from headwater.spark_errors import one_line
from headwater.store.lake.place import is_lake
from headwater.streams.errors import StreamError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from headwater.capture.sink import BatchInfo
    from headwater.deploy.records import UnitRecord
    from headwater.flow.flow import Flow
    from headwater.streams import Streams

_PATIENCE = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before a query that failed is started again; after the last it stays failed."""
_CALM = 60.0
"""Seconds without a failure after which earlier ones are forgotten."""


class QueryUnit:
    """A query that reads streams from where it is told to where it is told."""

    def __init__(
        self,
        record: UnitRecord,
        flow: Flow,
        folder: Path,
        streams: Streams,
        store: str,
        capture: str,
        save: Callable[[UnitRecord], None],
        lineage: bool | None = None,
    ) -> None:
        self.record, self.flow = record, flow
        self._folder, self._streams = folder, streams
        self._store, self._capture, self._save = store, capture, save
        self._lineage = lineage
        self._lock = threading.RLock()
        self._places = Places(folder / "checkpoint")
        self._run: Run | None = None
        self._failures: list[float] = []
        self.counter = Counter(self._is_building_up, load(folder).counts)
        self.error: str | None = None
        """Why it does not run, if it should."""
        self.feeders = {
            each.stream: Feeder(streams, each.stream, folder / "inputs" / each.stream, each.start)
            for each in record.inputs
        }
        for each in record.inputs:
            self.feeders[each.stream].until = each.until
        self.position = {each.stream: each.start for each in record.inputs}
        """How far into its streams it is."""
        self.position.update(self._after(self._last_batch()))

    @property
    def consumer(self) -> str:
        """Its name among the readers of its streams."""
        return self.record.flow_name

    # --- running ------------------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        """Whether all its results count: its state is built up."""
        return self.record.is_live

    def start(self) -> None:
        """Go on from where it was; a unit with state first builds it up, which takes its time."""
        with self._lock:
            self._begin()
        if not self.is_ready:
            self._build_up()

    def _begin(self) -> None:
        self.error = None
        for stream, position in self.position.items():
            self._streams.advance(stream, self.consumer, position)
        self._run = start(
            self.flow,
            store=self._store,
            checkpoint=str(self._folder / "checkpoint"),
            capture=self._capture,
            live=self.record.live,
            available_now=False,
            trigger=None,
            on_batch=self._told,
            muted=self._is_muted,
            listener=unit_listener(
                self.flow, self._store, self._streams, self.record, self._lineage
            ),
        )
        self.counter.follow(self._run.query)

    def _is_muted(self, sink: str, batch: int) -> bool:
        first = self.record.live_from.get(sink)
        return first is None or batch < first

    def _is_building_up(self, batch: int) -> bool:
        """Whether some of what a batch gave was a result of an earlier version."""
        return any(self._is_muted(sink, batch) for sink in self.record.sinks)

    def _build_up(self) -> None:
        """Read what lies before the cuts, one after the other.

        What comes of it for a sink whose cut is further on was a result of an earlier version.
        """
        record = self.record
        waiting = [sink for sink in record.sinks if sink not in record.live_from]
        for cut in sorted(({**record.cuts[sink]} for sink in waiting), key=lambda c: [*c.values()]):
            for stream, feeder in self.feeders.items():
                feeder.until = cut[stream]
                feeder.feed()
            if any(feeder.position > feeder.start for feeder in self.feeders.values()):
                self._process_all()
            for sink in waiting:
                if record.cuts[sink] == cut:
                    record.live_from.setdefault(sink, self._last_batch() + 1)
            self._save(record)
        for each in record.inputs:
            self.feeders[each.stream].until = each.until

    def feed(self) -> int:
        """Give it what is new in its streams; how many events that are."""
        if not self.is_ready:
            return 0
        fed = 0
        for name, feeder in self.feeders.items():
            try:
                fed += feeder.feed()
            except HeadwaterError as error:
                node = next(e.node for e in self.record.inputs if e.stream == name)
                self._fail(f"input {node!r}: {error}")
                return fed
        return fed

    def look(self) -> None:
        """See to it that it runs: one that failed is started again, at longer and longer times."""
        with self._lock:
            run = self._run
            if run is None or run.active:
                if run is not None and self._failures and _ago(self._failures[-1]) > _CALM:
                    self._failures.clear()
                return
            if self.error is None:
                self.error = self._why(run)
                self._failures.append(time.monotonic())
            tries = len(self._failures)
            if tries > len(_PATIENCE) or _ago(self._failures[-1]) < _PATIENCE[tries - 1]:
                return
            try:
                self._begin()
            except HeadwaterError as error:
                self.error = str(error)
                self._failures.append(time.monotonic())

    @property
    def state(self) -> str:
        """What can be said of it in a word."""
        if self.record.ended:
            return "ended"
        if self.error is not None:
            return "failed" if len(self._failures) > len(_PATIENCE) else "retrying"
        if self._run is None:
            return "stopped"
        return "running" if self.is_ready else "building up"

    def stop(self) -> None:
        """End the query after the batch at hand; a later start goes on from there."""
        with self._lock:
            run, self._run = self._run, None
        if run is not None:
            with suppress(Exception):  # Spark may be gone before us, by the same signal
                run._stop()
            run._ended.wait()
            self.counter.take()

    # --- ending at a cut ----------------------------------------------------------------------

    def cut(self, places: dict[str, int]) -> None:
        """Have it read to these places of streams, and no further; it is written down."""
        for each in self.record.inputs:
            if each.until is None:
                each.until = places.get(each.stream)
            self.feeders[each.stream].until = each.until
        self._save(self.record)

    def drain(self) -> None:
        """Read to the cut, give out all that comes of it, and end for good."""
        try:
            if self._run is None or not self._run.active:
                self.start()
            for feeder in self.feeders.values():
                feeder.feed()
            if self.feeders:  # what reads from outside may never come to an end
                self._process_all()
                self._catch_up()
        except HeadwaterError as error:
            # It can't go on. What it has not done is left to what takes its place.
            self.error = str(error)
            self.stop()
            for each in self.record.inputs:
                each.until = self.done.get(each.stream, each.start)
        self.stop()
        self.record.ended = True
        self._save(self.record)

    def _catch_up(self) -> None:
        """Bring the watermark to where all that was read would have it.

        After a restart Spark knows no source's own, and one that is silent since then holds it
        back. What takes this unit's place reads all again, is not held back, and leaves out what
        this one is to give.
        """
        if not self.record.stateful or len(self.record.inputs) < 2:
            return
        reached = []
        for each in self.record.inputs:
            source = self.flow.sources[each.node]
            if source.event_time is None or source.watermark is None:
                return
            folder = self._folder / "inputs" / each.stream
            if (latest := latest_time(folder, source.event_time)) is None:
                return
            reached.append(latest - microseconds(source.watermark))
        now = watermark(self._folder / "checkpoint") or 0
        target = min(reached) // 1_000
        run = self._run
        assert run is not None
        if target * 1_000 <= now or run._launch is None:
            return
        self.stop()
        self._run = Run(self.flow.name, *run._launch.advance(target), run._launch)
        self.counter.follow(self._run.query)
        self._process_all()

    @property
    def done(self) -> dict[str, int]:
        """How far into its streams its results go, of a batch that Spark has to repeat too."""
        writer = open_writer(self._store)
        try:
            known = [f for f in writer.flows() if f["flow"] == self.record.flow_name]
            held = writer.last_batch(known[0]["query_id"]) if known else None
        finally:
            writer.close()
        last = max(self._last_batch(), -1 if held is None else held)
        return self._after(last)

    def _after(self, batch: int) -> dict[str, int]:
        if not self.feeders:
            return {}  # it reads from outside
        last = self._places.after(batch)
        return {name: self.feeders[name].after(file) for name, file in last.items()}

    # --- inner --------------------------------------------------------------------------------

    def _process_all(self) -> None:
        run = self._run
        assert run is not None
        assert run.query is not None
        try:
            run.query.processAllAvailable()
        except Exception as error:
            if run.active:
                raise RunError(f"unit {self.record.id}: {one_line(error)}") from error
            raise RunError(f"unit {self.record.id}: {self._why(run)}") from error
        if not run.active:
            raise RunError(f"unit {self.record.id}: {self._why(run)}")

    def _last_batch(self) -> int:
        return Checkpoint.at(str(self._folder / "checkpoint"))._newest("commits")

    def _fail(self, reason: str) -> None:
        self.error = reason
        self._failures = [time.monotonic()] * (len(_PATIENCE) + 1)
        self.stop()

    def _why(self, run: Run) -> str:
        try:
            run.wait(0)
        except HeadwaterError as error:
            return str(error)
        return "its query ended"

    def _told(self, info: BatchInfo) -> None:
        for stream, position in self._after(info.batch).items():
            self.position[stream] = position
            with suppress(StreamError):
                self._streams.advance(stream, self.consumer, position)


def can_be_live(flow: Flow, capture: str, store: Path) -> bool:
    """Whether a flow can keep a live graph in a store; one that can't runs without."""
    by_driver = not is_lake(store)
    try:
        chosen = choose(flow, capture, live=True)
        planned(flow, chosen, "tight", steps=False, by_driver=by_driver)
    except HeadwaterError:
        return False
    return True


def _ago(moment: float) -> float:
    return time.monotonic() - moment


def watermark(checkpoint: Path) -> int | None:
    """The watermark (µs) with which the last batch of a query ran."""
    place = Checkpoint.at(str(checkpoint))
    last = place._newest("offsets")
    return None if last < 0 else place._watermark(last) * 1_000 or None
