"""Launching a reduction: store, checkpoint and query, as often as one job needs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from headwater.capture.checkpoint import Checkpoint
from headwater.errors import RunError
from headwater.reduce.binding import bound, require_agreement
from headwater.reduce.intake import Intake, after_the_end, where
from headwater.reduce.letters import Letters
from headwater.reduce.listing import Listing, Position
from headwater.reduce.planning import (
    SETTINGS,
    bucket_keys,
    opened,
    reduced_rows,
    rows_of_files,
    rows_of_values,
)
from headwater.reduce.ranges import texts
from headwater.reduce.sink import ReduceSink
from headwater.reduce.source import numbered_ranges, options
from headwater.session import settings_of_query
from headwater.spark_errors import one_line
from headwater.store.embedded import EmbeddedWriter
from headwater.store.jobs import JobWriter
from headwater.store.lake.jobs import LakeJobs, LakeJobWriter
from headwater.store.lake.place import is_lake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from headwater.reduce.binding import Binding
    from headwater.reduce.settings import Given
    from headwater.reduce.sink import ReducedBatch
    from headwater.store.jobs import Finished

_BYTES, _MOST_BYTES = 64 << 20, 512 << 20
"""Bytes of a batch for each core, and at most: what reducers make of it goes through the driver."""

_TRIGGER = "500 milliseconds"
"""The time between two looks at the input while nothing comes."""


class Launch:
    """Starts the query of a job where it stands, and completes the job."""

    def __init__(
        self,
        spark: SparkSession,
        given: Given,
        on_batch: Callable[[ReducedBatch], None],
    ) -> None:
        self.given = given
        self.silence = given.silence
        """Seconds without elements after which the job is complete."""
        self.letters = Letters(given.dead_letters)
        self._spark = spark
        self._strategy = given.local()
        self._job = given.settings()
        self._cores = spark.sparkContext.defaultParallelism
        self._bytes = given.bytes or min(_BYTES * self._cores, _MOST_BYTES)
        self._on_batch = on_batch
        self._place = Checkpoint.at(given.checkpoint)
        self._owner: EmbeddedWriter | LakeJobs | None = None

    def start(self, *, once: bool) -> tuple[ReduceSink, StreamingQuery] | None:
        """Start the query; None if the job has ended already and is only to be completed."""
        given = self.given
        values = opened(self._spark, given, self._bytes)
        self.letters.require_writable()
        binding, writer = self._opened()
        try:
            if writer.ended and given.directory is not None:
                self.close()
                return None
            sink = ReduceSink(
                writer,
                self.letters,
                self._place,
                buckets=binding.partitions,
                timed=given.timed,
                rest=None if given.directory is None else self._after_the_end,
                on_batch=self._on_batch,
            )
            sink.finishing = self._place.is_finishing()
            return sink, self._query(values, binding, sink, once or sink.finishing or sink.ending)
        except BaseException:
            self.close()
            raise

    def finish(self, *, flush: bool) -> Finished:
        """Complete the job; with `flush`, after what was planned and what reducers keep back."""
        if flush:
            self._flush()
        _, writer = self._opened()
        try:
            finished = writer.finish()
            self.letters.write_cycles("cycles", self.given.job, finished.cycles)
        finally:
            self.close()
        return finished

    @property
    def is_planned(self) -> bool:
        """Whether a batch is planned and not done."""
        return self._place.has_planned

    def close(self) -> None:
        """Let the store go."""
        if self._owner is not None:
            self._owner.close()
            self._owner = None

    def _opened(self) -> tuple[Binding, JobWriter]:
        given = self.given
        self._owner = owner = _owned(given)
        try:
            binding = bound(self._place, given.job, owner.store_id, given.partitions, self._cores)
            if isinstance(owner, EmbeddedWriter):
                writer = JobWriter(owner, self._job, binding.query_id)
            else:
                writer = LakeJobWriter(owner, self._job, binding.query_id)
            require_agreement(self._place, given.job, writer.holds)
            return binding, writer
        except BaseException:
            self.close()
            raise

    def _flush(self) -> None:
        if self._place.has_planned:
            self._run_once()
        if self.given.timed and (self._place.path / "offsets" / "0").exists():
            self._place.plan_batch()
            self._run_once()

    def _run_once(self) -> None:
        started = self.start(once=True)
        if started is None:
            return
        sink, query = started
        try:
            query.awaitTermination()
        except Exception as error:
            sink.fail(error)
            if sink.failure is not None:
                raise sink.failure from error
        finally:
            self.close()

    def _query(
        self, values: DataFrame | None, binding: Binding, sink: ReduceSink, once: bool
    ) -> StreamingQuery:
        given = self.given
        intake = Intake(
            given.job,
            given.partition,
            bucket_keys(binding.partitions, binding.shuffles),
            given.functions,
            given.timed,
        )
        if values is None:
            told = options(str(given.directory), str(self._log), intake, self._bytes, self._cores)
            rows = rows_of_files(self._spark, told)
        else:
            rows = rows_of_values(values, intake)
        bound = given.watermark if given.timed else None
        df = reduced_rows(rows, self._strategy, binding.shuffles, bound)
        writer = (
            df.writeStream.queryName(f"headwater-job-{given.job}")
            .outputMode("append")
            .option("checkpointLocation", str(self._place.path))
            .foreachBatch(sink)
        )
        writer = (
            writer.trigger(availableNow=True) if once else writer.trigger(processingTime=_TRIGGER)
        )
        try:
            with self._settings(binding):
                return writer.start()
        except Exception as error:
            raise RunError(f"job {given.job!r} did not start: {one_line(error)}") from error

    def _settings(self, binding: Binding) -> AbstractContextManager[None]:
        """Settings of the job's query."""
        settings = {**SETTINGS, "spark.sql.shuffle.partitions": str(binding.shuffles)}
        return settings_of_query(self._spark, settings)

    @property
    def _log(self) -> Path:
        return self._place.path / "headwater-files.jsonl"

    def _after_the_end(self, batch: int, part: int) -> Iterator[pa.Table]:
        """Whatever of the input comes after a part of a batch: letters, as the job has ended."""
        directory = self.given.directory
        assert directory is not None
        listing = Listing(directory, str(self._log))
        start = self._position(batch - 1) if batch else Position()
        end = self._position(batch)
        ranges = [r for n, r in numbered_ranges(listing, start, end, self._cores) if n > part]
        listing.look(now=True)
        for range_ in [*ranges, *listing.between(end, listing.end)]:
            for piece in range_.pieces():
                try:
                    for text in texts(piece):
                        yield after_the_end(text.content, self.given.job, where(piece))
                except OSError:
                    continue

    def _position(self, batch: int) -> Position:
        """Where a batch of the query ends."""
        lines = (self._place.path / "offsets" / str(batch)).read_text().splitlines()
        return Position(**json.loads(lines[2]))


def _owned(given: Given) -> EmbeddedWriter | LakeJobs:
    """The store that the job's provenance goes to."""
    if is_lake(given.store):
        return LakeJobs.open(given.store, given.working)
    return EmbeddedWriter.open(given.store)
