"""A reduction at work: starting it, waiting for it, and completing its job."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from headwater.errors import HeadwaterError, RunError
from headwater.reduce.launching import Launch
from headwater.reduce.settings import given
from headwater.session import adopt_or_start
from headwater.spark_errors import one_line

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from headwater.reduce.sink import ReducedBatch
    from headwater.store.jobs import Finished

_LOOK = 1
"""Seconds between two looks at whether the job has ended or is idle."""


def reduce_job(
    input: str | os.PathLike[str],
    *,
    store: str | os.PathLike[str],
    job: str,
    checkpoint: str | os.PathLike[str] | None = None,
    strategy: str = "grouping",
    partition: str = "vertical",
    partitions: int | None = None,
    local_batch: int = 20_000,
    global_batch: int = 100_000,
    window: int | None = None,
    watermark: str | None = None,
    lifetime: str | None = None,
    functions: bool = False,
    keep: str = "reduced",
    once: bool = False,
    idle_after: str | None = None,
    dead_letters: str | os.PathLike[str] | None = None,
    options: Mapping[str, str] | None = None,
    on_batch: Callable[[ReducedBatch], None] | None = None,
) -> Reduction:
    """Reduce the provenance that a job publishes in a directory or a topic (`kafka:TOPIC`).

    The job is complete when its end marker comes, after `idle_after` without new elements, or with
    `finish()`. Until then it goes on where it stopped, with the same store and checkpoint.

    - `strategy`: when an intermediate is eliminated. `grouping`, at once, exact in any order;
      `window`, the same but remembering the last `window` (1,000) elements only; `watermark`, when
      nothing of it can still come: elements are at most `watermark` (10 minutes) late, and edges of
      a vertex at most `lifetime` (10 minutes) apart.
    - `partition`: which local reducer gets an edge: by its function (`horizontal`), node
      (`vertical`) or execution (`random`). There are `partitions` of them, else one for each core.
    - `local_batch`, `global_batch`: how many elements reducers take at a time.
    - `functions`: keep the functions on the way of each dependency.
    - `keep`: `full` keeps all edges beside the dependencies.
    - `once`: end when the input there is is done.
    - `dead_letters`: the folder for rejected elements, in the store unless given.
    - `options`: `maxBytesPerTrigger`; with Kafka those of its source, `bootstrap.servers` first.
    """
    asked = given(
        input,
        store=store,
        job=job,
        checkpoint=checkpoint,
        strategy=strategy,
        partition=partition,
        partitions=partitions,
        local_batch=local_batch,
        global_batch=global_batch,
        window=window,
        watermark=watermark,
        lifetime=lifetime,
        functions=functions,
        keep=keep,
        once=once,
        idle_after=idle_after,
        dead_letters=dead_letters,
        options=options,
    )
    totals = Totals()

    def counted(batch: ReducedBatch) -> None:
        totals.add(batch)
        if on_batch is not None:
            on_batch(batch)

    return Reduction(Launch(adopt_or_start(), asked, counted), totals)


@dataclass(slots=True)
class Totals:
    """What this run has done so far."""

    batches: int = 0
    edges: int = 0
    """Edges told."""
    after_local: int = 0
    """Edges that local reducers handed on."""
    after_global: int = 0
    """Edges that the store has; of a complete job, its dependencies."""
    bytes: int = 0
    bytes_local: int = 0
    """Bytes of what local reducers handed on."""
    rejected: Counter[str] = field(default_factory=Counter)
    filtered: Counter[str] = field(default_factory=Counter)
    finished: Finished | None = None

    @property
    def elements(self) -> int:
        """All elements: edges, filtered and rejected ones."""
        return self.edges + self.rejected.total() + self.filtered.total()

    def add(self, batch: ReducedBatch) -> None:
        """Count a batch."""
        self.batches += 1
        self.edges += batch.elements
        self.after_local += batch.hot
        self.after_global = batch.state
        self.bytes += batch.bytes
        self.bytes_local += batch.bytes_out
        self.rejected.update(batch.rejected)
        self.filtered.update(batch.filtered)

    def complete(self, finished: Finished) -> None:
        """The job is complete."""
        self.finished = finished
        self.after_global = finished.dependencies


class Reduction:
    """A job being reduced. `wait()` until it ends, `stop()` to end it; also a context manager."""

    def __init__(self, launch: Launch, totals: Totals) -> None:
        self.counts = totals
        """What this run has done so far."""
        self.dead_letters = launch.letters.folder
        """Where rejected elements are."""
        self._launch = launch
        self._failure: BaseException | None = None
        self._stopped = threading.Event()
        self._ended = threading.Event()
        self._completing = threading.Lock()
        started = launch.start(once=launch.given.once)
        if started is None:
            # It had ended, and was killed before it was complete.
            self._complete(flush=False)
            self._ended.set()
            return
        self._sink, self._query = started
        name = f"headwater-job-{launch.given.job}"
        threading.Thread(target=self._watch, name=name, daemon=True).start()

    @property
    def job(self) -> str:
        """The job's name."""
        return self._launch.given.job

    @property
    def active(self) -> bool:
        """Whether the run goes on."""
        return not self._ended.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most `timeout` seconds; True when it has ended. Raises its error."""
        ended = self._ended.wait(timeout)
        if ended:
            self._raise()
        return ended

    def stop(self) -> None:
        """End the run after the batch at hand; a later start goes on from there."""
        self._stopped.set()
        self.wait()

    def drain(self) -> None:
        """Wait until all elements that are there by now have been taken. Raises its error."""
        if self.active:
            try:
                self._query.processAllAvailable()
            except PySparkException:
                self._ended.wait()
        self.wait(0)

    def finish(self) -> None:
        """End the run, with `once` when its input is done, and complete the job.

        No more elements of the job are taken from then on.
        """
        if self._launch.given.once:
            self.wait()
        else:
            self.stop()
        self._complete(flush=True)

    def __enter__(self) -> Reduction:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        self._stopped.set()
        self._ended.wait()
        if kind is None:
            self._raise()

    def _watch(self) -> None:
        complete = False
        try:
            complete = self._awaited() or self._sink.ended
        except Exception as error:  # noqa: BLE001
            self._sink.fail(error)
            complete = self._sink.ended
        try:
            self._failure = self._sink.failure
            self._launch.close()
            if complete and self._failure is None:
                self._complete(flush=not self._sink.ended)
        except Exception as error:  # noqa: BLE001
            self._failure = error
        finally:
            self._ended.set()

    def _awaited(self) -> bool:
        """Wait until the query ends or has to; whether the job is to be completed then."""
        waits = False
        while not self._query.awaitTermination(_LOOK):
            if self._sink.ended or self._stopped.is_set():
                self._sink.take_no_more()
                self._query.stop()
                return False
            if self._sink.ending:
                self._query.processAllAvailable()
                self._sink.take_no_more()
                self._query.stop()
                return True
            # Silence begins when the query first waits: starting and working take their time.
            waits = waits or self._query.status["message"].startswith("Waiting")
            if not waits or self._launch.is_planned:
                self._sink.hear()
            elif self._sink.silent_for(self._launch.silence):
                self._query.stop()
                return True
        return self._sink.ending

    def _complete(self, *, flush: bool) -> None:
        """Complete the job; with `flush`, local reducers give out what they keep back first."""
        with self._completing:
            if self.counts.finished is None:
                self.counts.complete(self._launch.finish(flush=flush))

    def _raise(self) -> None:
        if self._failure is None:
            return
        if isinstance(self._failure, HeadwaterError):
            raise self._failure
        raise RunError(f"job {self.job!r} failed: {one_line(self._failure)}") from self._failure

    def __repr__(self) -> str:
        return f"Reduction({self.job!r}, {'active' if self.active else 'ended'})"
