"""The capture sink: what Spark calls with each micro-batch.

One store transaction holds a batch's results, provenance and batch number. A batch that the
store has already (Spark runs it again after a crash between the store's commit and its own)
is still executed in full, for its contribution to state and watermark, and its rows are
discarded.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.capture.arrivals import Arrivals
from headwater.capture.decode import Decoded, decode, decode_records
from headwater.capture.files import Files
from headwater.capture.listening import NOBODY, Brought, Listener
from headwater.capture.write import TableWriter, hand_on
from headwater.errors import RunError
from headwater.flow.nodes import Source
from headwater.live.reading import read_times
from headwater.lowering.identity import has_files
from headwater.store.batch import ID, TIME, Batch, ResultSet
from headwater.times import NO_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from headwater.capture.checkpoint import Checkpoint
    from headwater.capture.idle import Silence
    from headwater.flow.flow import Flow
    from headwater.live.graph import Ints, LiveGraph
    from headwater.lowering.outputs import Outputs
    from headwater.store.batch import Resolve
    from headwater.store.embedded import EmbeddedWriter


@dataclass(frozen=True, slots=True)
class BatchInfo:
    """What a committed micro-batch brought to the store."""

    batch: int
    watermark: datetime | None
    results: int
    edges: int
    records: int
    vertices: int = 0
    """Records that are new in the live graph."""
    labels: int = 0
    """Records that can reach no more from here on."""


EPOCH = datetime.fromtimestamp(0, UTC)
PRUNE_EVERY = 20
"""Batches between two clearings of records that can contribute to nothing more."""


class CaptureSink:
    """The function of `foreachBatch`, with what it needs from batch to batch."""

    def __init__(
        self,
        flow: Flow,
        outputs: Outputs,
        writer: EmbeddedWriter,
        query_id: str,
        checkpoint: Checkpoint | None,
        on_batch: Callable[[BatchInfo], None] | None,
        live: LiveGraph | None = None,
        resolve: Resolve | None = None,
        in_files: Sequence[Source] = (),
        muted: Callable[[str, int], bool] | None = None,
    ) -> None:
        self.failure: BaseException | None = None
        self._at_work = threading.Lock()
        self._stopping = False
        self._flow = flow
        self._outputs = outputs
        self._writer = writer
        self._query_id = query_id
        self._checkpoint = checkpoint
        self._on_batch = on_batch
        self._live = live
        self._resolve = resolve
        self._in_files = in_files
        self._muted = muted
        self.finishing = False
        """Whether the next batch is the flow's last."""
        self.silence: Silence | None = None
        self.listener: Listener = NOBODY
        self._files = {
            source.name: Files(source.name, source.path)
            for source in flow.sources.values()
            if source.identity.how == "position" and source.path is not None
        }
        self._reaches = {
            source.name: flow.reach(source, list(flow.sinks.values()))
            for source in flow.sources.values()
            if source.keep in ("contributing", "alive")
        }
        self._prune_every = PRUNE_EVERY
        if any(source.keep == "alive" for source in flow.sources.values()):
            self._prune_every = 1
        self._arrivals: Arrivals | None = None
        if checkpoint is not None:
            traced = {part.name for part in outputs.parts if part.capture != "none"}
            roots = {
                source.name: str(source.path)
                for sink in flow.sinks.values()
                if sink.name in traced
                for source in sink.upstream()
                if isinstance(source, Source) and source.streaming and has_files(source)
            }
            self._arrivals = Arrivals(checkpoint.path, roots, writer.arrivals(flow.name))
        # Records of static sources go in with the first batch; the store has them only once.
        self._still = list(outputs.still)
        self._last_watermark: datetime | None = None

    def __call__(self, df: DataFrame, batch: int) -> None:
        """Take one micro-batch."""
        with self._at_work:
            if self._stopping:
                raise RunError("the run is being stopped; this batch runs at the next start")
            try:
                if self._writer.holds(self._query_id, batch):
                    df.write.format("noop").mode("append").save()
                    return
                self._take(df, batch)
            except BaseException as error:
                # Through Spark the error would come back as pages of text: keep the original.
                self.fail(error)
                raise

    def fail(self, error: BaseException) -> None:
        """Remember the first error; one that comes of stopping is none."""
        if self.failure is None and not self._stopping:
            self.failure = error

    def take_no_more(self) -> None:
        """Wait for the batch at hand and refuse the next; from here on errors come of stopping."""
        with self._at_work:
            self._stopping = True

    def _take(self, df: DataFrame, batch: int) -> None:
        decoded = decode(self._outputs, df.toArrow(), batch)
        if self._muted is not None:
            for name in [n for n in decoded.results if self._muted(n, batch)]:
                del decoded.results[name]
        while self._still:
            part, records = self._still.pop()
            decoded.records[part.name] = decode_records(part, records.toArrow())
        watermark = self._checkpoint.watermark(batch) if self._checkpoint else None
        arrivals = {} if self._arrivals is None else self._arrivals.new()
        if self._live is not None:
            came = _times(decoded, self._live.steps)
            for source in self._in_files:
                paths = [arrival.path for arrival in arrivals[source.name]]
                came[source.name] = read_times(source, paths, self._flow.spark)
            self._live.begin(batch, micros(watermark), came, _sessions(decoded))
            for name, (ids, times) in came.items():
                if self.silence is not None and len(ids) and name not in self._live.steps:
                    self.silence.heard(name, int(times.max()))
        last = self.finishing or self._checkpoint is None
        committed = self._writer.commit(
            Batch(
                query_id=self._query_id,
                batch=batch,
                watermark=watermark,
                results=decoded.results,
                records=decoded.records,
                files=self._new_files(decoded),
                arrivals=arrivals,
                graph=self._live,
                last=last,
                resolve=self._resolve,
            ),
            before_commit=lambda ids: self._hand_on(decoded.results, ids, batch),
        )
        if self._live is not None:
            self._live.accept()
        if self.finishing:
            # Records that came meanwhile are not the flow's any more.
            self._stopping = True
        self._last_watermark = watermark or self._last_watermark
        if batch % self._prune_every == self._prune_every - 1:
            self._prune()
        info = BatchInfo(
            batch,
            watermark,
            committed.results,
            committed.edges,
            committed.records,
            committed.vertices,
            committed.labels,
        )
        self.listener.batch(info, self._brought(decoded, arrivals))
        if self._on_batch is not None:
            self._on_batch(info)

    def _brought(self, decoded: Decoded, arrivals: Mapping[str, Sequence[object]]) -> Brought:
        seen = {s.name for s in self._flow.sources.values() if s.keep == "all"} | {*decoded.times}
        return Brought(
            results={name: len(part.rows) for name, part in decoded.results.items()},
            records={
                name: len(rows)
                for name, rows in {**decoded.records, **decoded.times}.items()
                if name in seen
            },
            files={name: len(found) for name, found in arrivals.items()},
        )

    def idle_watermark(self) -> int | None:
        """The later watermark (ms) to go on with, where silence allows one and something waits."""
        if self.silence is None or self._live is None:
            return None
        found = self.silence.watermark()
        if found is None or found <= self._live.watermark or not self._live.is_waiting:
            return None
        return found // 1000

    def _hand_on(self, results: dict[str, ResultSet], ids: dict[str, pa.Array], batch: int) -> None:
        for name, sink in self._flow.sinks.items():
            if sink.write is not None and name in results and len(results[name].rows):
                rows = results[name].rows
                if isinstance(sink.write, TableWriter):
                    sink.write.take(self._query_id, batch, ids[name], rows)
                    continue
                user = rows.select(rows.column_names[2:])
                hand_on(sink.write, self._flow.spark, ids[name], user, batch)

    def _new_files(self, decoded: Decoded) -> dict[str, dict[int, str]]:
        new = {}
        for source, files in self._files.items():
            columns = [r.origins[source] for r in decoded.results.values() if source in r.origins]
            if source in decoded.records:
                columns.append(decoded.records[source]["__hw_id"])
            if found := files.new(columns):
                new[source] = found
        return new

    def _prune(self) -> None:
        """Drop kept records that reached nothing and no longer can."""
        watermark = micros(self._last_watermark)
        if watermark is None:
            return
        for source, reach in self._reaches.items():
            if (since := reach.alive_since(watermark)) is not None:
                before = EPOCH + timedelta(microseconds=since)
                self._writer.prune(f"{self._flow.name}/{source}", before)

    def close(self) -> None:
        """Let the store go, for good: Spark's gateway holds this object until the process ends."""
        try:
            if self.failure is None:
                self._prune()
        finally:
            self._writer.close()
            del self._writer


def micros(time: datetime | None) -> int | None:
    """A moment in microseconds since 1970."""
    return None if time is None else (time - EPOCH) // timedelta(microseconds=1)


def _times(decoded: Decoded, steps: Iterable[str]) -> dict[str, tuple[Ints, Ints]]:
    """The ids and times of a batch's records, by source, and of the rows of some steps."""
    rows_of_steps = {step: decoded.results[step].rows for step in steps}
    return {
        name: (rows[ID].to_numpy(), _microseconds(rows[TIME]))
        for name, rows in {**decoded.times, **decoded.records, **rows_of_steps}.items()
    }


def _sessions(
    decoded: Decoded,
) -> dict[str, tuple[Ints, Ints, Mapping[str, pa.ChunkedArray]]]:
    """The keys, times and sets of the rows that entered session steps."""
    return {
        step: (part.rows[ID].to_numpy(), _microseconds(part.rows[TIME]), part.origins)
        for step, part in decoded.sessions.items()
    }


def _microseconds(times: pa.ChunkedArray) -> Ints:
    numbers: Ints = times.cast(pa.int64()).fill_null(NO_TIME).to_numpy()
    return numbers
