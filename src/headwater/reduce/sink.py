"""The sink of a reduction: what Spark calls with the rows that local reducers made of a batch.

As with flows, one transaction of the store holds what a batch brought and its number, and a batch
that the store has already is still executed, for its contribution to state and watermark.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from headwater.errors import RunError
from headwater.reduce import facts
from headwater.reduce.blocks import Block, Residue
from headwater.reduce.facts import Facts
from headwater.reduce.hosting import number
from headwater.reduce.letters import Letters, by_reason
from headwater.store.jobs import Counts
from headwater.times import EPOCH, micros

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from headwater.capture.checkpoint import Checkpoint
    from headwater.store.jobs import JobWriter


@dataclass(frozen=True, slots=True)
class ReducedBatch:
    """What a committed micro-batch of a job brought."""

    batch: int
    elements: int
    """Edges told."""
    hot: int
    """Edges that local reducers handed on."""
    state: int
    """Edges that the job has in the store, not counting what is kept aside."""
    dependencies: int
    """Dependencies that were written: before a job is complete, of what is past."""
    bytes: int
    bytes_out: int
    """Bytes that local reducers handed on."""
    rejected: dict[str, int] = field(default_factory=dict)
    filtered: dict[str, int] = field(default_factory=dict)
    watermark: datetime | None = None


@dataclass(slots=True)
class Handed:
    """What local reducers handed on in a batch."""

    hot: list[Block] = field(default_factory=list)
    residue: list[Residue] = field(default_factory=list)
    facts: list[Facts] = field(default_factory=list)
    held: dict[int, int | None] = field(default_factory=dict)
    """By bucket: the oldest time of what it keeps back."""
    end: int | None = None
    """The part of the batch in which the job ended."""
    bytes: int = 0

    @classmethod
    def of(cls, rows: pa.Table) -> Handed:
        """What is in a batch's rows."""
        handed = cls()
        for batch in rows.to_batches():
            for bucket, kind, payload in zip(*batch.columns, strict=True):
                handed._take(bucket.as_py(), kind.as_py(), payload.as_buffer())
        return handed

    def _take(self, bucket: int, kind: str, payload: pa.Buffer) -> None:
        match kind:
            case facts.HOT:
                self.hot.append(Block.from_bytes(payload))
                self.bytes += payload.size
            case facts.RESIDUE:
                self.residue.append(Residue.from_bytes(payload))
            case facts.FACTS:
                self.facts.append(Facts.from_bytes(payload))
            case facts.HELD:
                self.held[bucket] = number(payload.to_pybytes())
            case facts.END:
                part = number(payload.to_pybytes())
                assert part is not None
                self.end = part if self.end is None else min(part, self.end)


class ReduceSink:
    """The function of `foreachBatch`, with what it needs from batch to batch."""

    def __init__(
        self,
        writer: JobWriter,
        letters: Letters,
        checkpoint: Checkpoint,
        *,
        buckets: int,
        timed: bool,
        rest: Callable[[int, int], Iterator[pa.Table]] | None,
        on_batch: Callable[[ReducedBatch], None] | None,
    ) -> None:
        self.failure: BaseException | None = None
        self.ended = False
        """Whether the job's end came: no batch is taken after it."""
        self.ending = writer.ended
        """Whether it came in one of several logs: what others have by then is still taken."""
        self.finishing = False
        """Whether the next batch is the job's last."""
        self._heard = time.monotonic()
        self._at_work = threading.Lock()
        self._stopping = False
        self._writer = writer
        self._job = writer.settings.job
        self._letters = letters
        self._checkpoint = checkpoint
        self._buckets = buckets
        self._timed = timed
        self._rest = rest
        self._on_batch = on_batch
        self._held: dict[int, int | None] = {}

    def __call__(self, df: DataFrame, batch: int) -> None:
        """Take one micro-batch."""
        with self._at_work:
            if self._stopping or self.ended:
                raise RunError("the job is being stopped; this batch runs at the next start")
            try:
                if self._writer.holds(batch):
                    df.write.format("noop").mode("append").save()
                    return
                self._take(Handed.of(df.toArrow()), batch)
            except BaseException as error:
                # Through Spark the error would come back as pages of text: keep the original.
                self.fail(error)
                raise

    def fail(self, error: BaseException) -> None:
        """Remember the first error; one that comes of stopping is none."""
        if self.failure is None and not self._stopping and not self.ended:
            self.failure = error

    def take_no_more(self) -> None:
        """Wait for the batch at hand and refuse the next; from here on errors come of stopping."""
        with self._at_work:
            self._stopping = True

    def hear(self) -> None:
        """Something came just now, or is coming."""
        self._heard = time.monotonic()

    def silent_for(self, seconds: float | None) -> bool:
        """Whether nothing came for so long; then nothing more is taken."""
        if seconds is None or not self._at_work.acquire(blocking=False):
            return False
        try:
            silent = time.monotonic() - self._heard >= seconds
            self._stopping |= silent
            return silent
        finally:
            self._at_work.release()

    def _take(self, handed: Handed, batch: int) -> None:
        told = Facts.sum(handed.facts)
        watermark = self._checkpoint.watermark(batch) if self._timed else None
        told_end = handed.end is not None
        ended = self.finishing or (told_end and self._rest is not None)
        self.ending |= told_end and not ended
        rejected: Counter[str] = Counter()
        # Before the commit: what the store has, it has with its letters.
        self._letters.write(batch, _counted(self._letters_of(batch, told, handed.end), rejected))
        counts = Counts(told.elements, told.size, by_reason(rejected), told.filtered)
        committed = self._writer.commit(
            batch,
            self._past(watermark, handed.held),
            handed.hot,
            handed.residue,
            told.spans,
            counts,
            ended=ended or self.ending,
        )
        if committed.cycles:
            self._letters.write_cycles(f"cycles-{batch:08d}", self._job, committed.cycles)
        if told.size:
            self.hear()
        if self._on_batch is not None:
            self._on_batch(
                ReducedBatch(
                    batch=batch,
                    elements=told.elements,
                    hot=committed.hot,
                    state=committed.state,
                    dependencies=committed.dependencies,
                    bytes=told.size,
                    bytes_out=handed.bytes,
                    rejected=dict(counts.rejected),
                    filtered=dict(told.filtered),
                    watermark=watermark,
                )
            )
        self.ended = ended

    def _letters_of(self, batch: int, told: Facts, end: int | None) -> Iterator[pa.Table]:
        yield told.letters
        if end is not None and self._rest is not None:
            yield from self._rest(batch, end)

    def _past(self, watermark: datetime | None, held: Mapping[int, int | None]) -> datetime | None:
        """The watermark up to which the store has all: reducers may keep older edges back.

        An entity of an edge that is kept back had its latest edge known to the store at most a
        lifetime before that one, so at this earlier watermark it is not past yet.
        """
        self._held.update(held)
        if watermark is None or len(self._held) < self._buckets:
            return None
        times = [time for time in self._held.values() if time is not None]
        oldest = min(times, default=None)
        if oldest is None or oldest >= (micros(watermark) or 0):
            return watermark
        return EPOCH + timedelta(microseconds=oldest)


def _counted(tables: Iterable[pa.Table], counts: Counter[str]) -> Iterator[pa.Table]:
    """The same tables, with their reasons counted as they go by."""
    for table in tables:
        counts.update(table["reason"].to_pylist())
        yield table
