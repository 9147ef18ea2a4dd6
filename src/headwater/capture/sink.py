"""The capture sink: what Spark calls with each micro-batch.

One store transaction holds a batch's results, provenance and batch number. A batch that the
store has already (Spark runs it again after a crash between the store's commit and its own)
is still executed in full, for its contribution to state and watermark, and its rows are
discarded.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from headwater.capture.arrivals import Arrival, Arrivals
from headwater.capture.dead_letters import DeadLetters
from headwater.capture.decode import Decoded, decode, decode_records
from headwater.capture.kafka_sink import TopicWriter, require_origins, with_origins
from headwater.capture.listening import NOBODY, Brought, Listener
from headwater.capture.offsets import Offsets
from headwater.capture.spread import Spread
from headwater.capture.write import TableWriter, hand_on
from headwater.errors import RunError
from headwater.flow.kafka import Topics
from headwater.flow.nodes import Source
from headwater.live.graph import LiveGraph
from headwater.live.parallel.graph import SpreadGraph
from headwater.live.reading import read_times
from headwater.lowering.identity import has_files
from headwater.lowering.kafka import in_topics
from headwater.store.batch import ID, TIME, Batch, Committed, ResultSet
from headwater.store.files import Files
from headwater.store.lake.staging import unstage
from headwater.store.lake.writer import LakeWriter
from headwater.times import EPOCH, as_numbers, micros

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from headwater.capture.checkpoint import Checkpoint
    from headwater.capture.idle import Silence
    from headwater.flow.flow import Flow
    from headwater.live.graph import Ints
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
    letters: int = 0
    """Messages that could not be decoded and went to a source's dead letters."""


PRUNE_EVERY = 20
"""Batches between two clearings of records that can contribute to nothing more."""


class CaptureSink:
    """The function of `foreachBatch`, with what it needs from batch to batch."""

    def __init__(
        self,
        flow: Flow,
        outputs: Outputs,
        writer: EmbeddedWriter | LakeWriter,
        query_id: str,
        checkpoint: Checkpoint | None,
        on_batch: Callable[[BatchInfo], None] | None,
        live: LiveGraph | SpreadGraph | None = None,
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
        self.checkpoint = checkpoint
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
        # A source that no sink is below is not in the store.
        used = {node.step for sink in flow.sinks.values() for node in sink.upstream()}
        self._reaches = {
            source.name: flow.reach(source, list(flow.sinks.values()))
            for source in flow.sources.values()
            if source.keep in ("contributing", "alive") and source.step in used
        }
        self._prune_every = PRUNE_EVERY
        if any(source.keep == "alive" for source in flow.sources.values()):
            self._prune_every = 1
        for part in outputs.parts:
            if part.kind == "results" and part.name in flow.sinks:
                require_origins(part.name, flow.sinks[part.name].write, part.capture)
        told = {part.name for part in outputs.parts if part.kind == "letters"}
        self._letters = DeadLetters(flow, writer.path, query_id)
        if isinstance(writer, LakeWriter) and not writer.place.is_local:
            self._letters.require_folders(told)
        self._arrivals: Arrivals | None = None
        self._offsets: Offsets | None = None
        if checkpoint is not None:
            traced = {part.name for part in outputs.parts if part.capture != "none"}
            streams = {
                source.name: source
                for sink in flow.sinks.values()
                if sink.name in traced
                for source in sink.upstream()
                if isinstance(source, Source) and source.streaming
            }
            roots = {name: str(one.path) for name, one in streams.items() if has_files(one)}
            topics = {n: Topics.of(one).names for n, one in streams.items() if in_topics(one)}
            self._offsets = Offsets(checkpoint.path, topics)
            self._arrivals = Arrivals(checkpoint.path, roots, writer.arrivals(flow.name))
        self._spread: Spread | None = None
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
                    self._tidy()
                    return
                self._take(df, batch)
            except BaseException as error:
                # Through Spark the error would come back as pages of text: keep the original.
                self.fail(error)
                raise

    def _tidy(self) -> None:
        """Remove what is left of a batch whose process was killed after the store had it."""
        if isinstance(self._writer, LakeWriter):
            seq = self._writer.last_seq(self._query_id)
            assert seq is not None
            unstage(self._writer.place, seq)

    def fail(self, error: BaseException) -> None:
        """Remember the first error; one that comes of stopping is none."""
        if self.failure is None and not self._stopping:
            self.failure = error

    def take_no_more(self) -> None:
        """Wait for the batch at hand and refuse the next; from here on errors come of stopping."""
        with self._at_work:
            self._stopping = True

    def _take(self, df: DataFrame, batch: int) -> None:
        if isinstance(self._writer, LakeWriter):
            self._spread_out(df, batch, self._writer)
            return
        decoded = decode(
            self._outputs.parts, df.toArrow(), batch << 32, tagged=self._outputs.tagged
        )
        if self._muted is not None:
            for name in [n for n in decoded.results if self._muted(n, batch)]:
                del decoded.results[name]
        while self._still:
            part, records = self._still.pop()
            decoded.records[part.name] = decode_records(part, records.toArrow())
        watermark = self.checkpoint.watermark(batch) if self.checkpoint else None
        arrivals = self._arrived(batch)
        letters = self._letters.write(batch, decoded.letters)
        if isinstance(self._live, LiveGraph):
            came = _times(decoded, self._live.steps)
            for source in self._in_files:
                paths = [arrival.path for arrival in arrivals[source.name]]
                came[source.name] = read_times(source, paths, self._flow.spark)
            self._live.begin(batch, micros(watermark), came, _sessions(decoded))
            for name, (ids, times) in came.items():
                if self.silence is not None and len(ids) and name not in self._live.steps:
                    self.silence.heard(name, int(times.max()))
        last = self.finishing or self.checkpoint is None
        committed = self._writer.commit(
            Batch(
                query_id=self._query_id,
                batch=batch,
                watermark=watermark,
                results=decoded.results,
                records=decoded.records,
                files=self._new_files(decoded),
                arrivals=arrivals,
                graph=self._live if isinstance(self._live, LiveGraph) else None,
                last=last,
                resolve=self._resolve,
            ),
            before_commit=lambda ids: self._hand_on(decoded.results, ids, batch),
        )
        if isinstance(self._live, LiveGraph):
            self._live.accept()
        if self.finishing:
            # Records that came meanwhile are not the flow's any more.
            self._stopping = True
        self._last_watermark = watermark or self._last_watermark
        if batch % self._prune_every == self._prune_every - 1:
            self._prune()
        self._tell(batch, watermark, committed, letters, self._brought(decoded, arrivals))

    def _spread_out(self, df: DataFrame, batch: int, writer: LakeWriter) -> None:
        """Take a batch into a lake."""
        if self._spread is None:
            graph = self._live if isinstance(self._live, SpreadGraph) else None
            self._spread = Spread(
                self._flow, self._outputs, writer, self._files, self._letters, graph
            )
        watermark = self.checkpoint.watermark(batch) if self.checkpoint else None
        arrivals = self._arrived(batch)
        committed, results, letters = self._spread.take(
            df,
            self._query_id,
            batch,
            watermark=watermark,
            last=self.finishing or self.checkpoint is None,
            arrivals=arrivals,
            muted=self._muted,
        )
        if isinstance(self._live, SpreadGraph) and self.silence is not None:
            for name, latest in self._live.latest.items():
                self.silence.heard(name, latest)
        if self.finishing:
            self._stopping = True
        self._last_watermark = watermark or self._last_watermark
        brought = Brought(results=results, files=self._files_of(arrivals))
        self._tell(batch, watermark, committed, letters, brought)

    def _tell(
        self,
        batch: int,
        watermark: datetime | None,
        committed: Committed,
        letters: int,
        brought: Brought,
    ) -> None:
        """Say what a batch was, to who listens and to the user's own function."""
        info = BatchInfo(
            batch,
            watermark,
            committed.results,
            committed.edges,
            committed.records,
            committed.vertices,
            committed.labels,
            letters,
        )
        self.listener.batch(info, brought)
        if self._on_batch is not None:
            self._on_batch(info)

    def _files_of(self, arrivals: Mapping[str, Sequence[object]]) -> dict[str, int]:
        """How many files came, by source."""
        sources = self._flow.sources
        return {n: len(found) for n, found in arrivals.items() if has_files(sources[n])}

    def _brought(self, decoded: Decoded, arrivals: Mapping[str, Sequence[object]]) -> Brought:
        sources = self._flow.sources
        seen = {s.name for s in sources.values() if s.keep == "all"} | {*decoded.times}
        return Brought(
            results={name: len(part.rows) for name, part in decoded.results.items()},
            records={
                name: len(rows)
                for name, rows in {**decoded.records, **decoded.times}.items()
                if name in seen
            },
            files=self._files_of(arrivals),
        )

    def _arrived(self, batch: int) -> dict[str, list[Arrival]]:
        """The files and stretches of topics that a batch read, by source."""
        files = {} if self._arrivals is None else self._arrivals.new()
        messages = {} if self._offsets is None else self._offsets.of(batch)
        return files | {name: [one.arrival for one in told] for name, told in messages.items()}

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
                if isinstance(sink.write, TopicWriter) and sink.write.origins:
                    user = with_origins(user, results[name].origins)
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


def _times(decoded: Decoded, steps: Iterable[str]) -> dict[str, tuple[Ints, Ints]]:
    """The ids and times of a batch's records, by source, and of the rows of some steps."""
    rows_of_steps = {step: decoded.results[step].rows for step in steps}
    return {
        name: (rows[ID].to_numpy(), as_numbers(rows[TIME]))
        for name, rows in {**decoded.times, **decoded.records, **rows_of_steps}.items()
    }


def _sessions(
    decoded: Decoded,
) -> dict[str, tuple[Ints, Ints, Mapping[str, pa.ChunkedArray]]]:
    """The keys, times and sets of the rows that entered session steps."""
    return {
        step: (part.rows[ID].to_numpy(), as_numbers(part.rows[TIME]), part.origins)
        for step, part in decoded.sessions.items()
    }
