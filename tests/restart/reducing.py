"""The reduction that tests kill: `python -m tests.restart.reducing HOME STRATEGY [POINT BATCH]`.

STRATEGY may go on with `into a lake`, within one argument. POINT says where the process kills
itself, its JVM with it: `before` a batch's commit, when its dead letters are written; `inside` its
transaction; `after` it, when the store has the batch and Spark does not know yet; or while the job
is being completed: `finishing` before it, `finished` after.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import headwater as hw
from headwater.store.jobs import JobWriter
from tests.restart.job import session

STRATEGIES: dict[str, dict[str, Any]] = {
    "grouping": {},
    "watermark": {"strategy": "watermark", "watermark": "1 minute", "lifetime": "100 seconds"},
}


def kill_at(point: str, batch: int) -> None:
    """Arrange for this process and its JVM to be killed at a point of a batch."""
    commit, spans, finish = JobWriter.commit, JobWriter._write_spans, JobWriter.finish
    at_work: list[int] = []

    def die() -> None:
        os.killpg(os.getpgid(0), signal.SIGKILL)

    def committing(self: JobWriter, number: int, *args: Any, **more: Any) -> Any:
        at_work[:] = [number]
        mine = number >= batch
        if mine and point == "before":
            die()
        done = commit(self, number, *args, **more)
        if mine and point == "after":
            die()
        return done

    def writing(self: JobWriter, *args: Any) -> None:
        spans(self, *args)
        if point == "inside" and at_work[0] >= batch:
            die()

    def finishing(self: JobWriter) -> Any:
        if point == "finishing":
            die()
        done = finish(self)
        if point == "finished":
            die()
        return done

    JobWriter.commit = committing  # type: ignore[method-assign]
    JobWriter._write_spans = writing  # type: ignore[method-assign]
    JobWriter.finish = finishing  # type: ignore[method-assign]


if __name__ == "__main__":
    home, (strategy, *into) = Path(sys.argv[1]), sys.argv[2].split(" ")
    if len(sys.argv) > 3:
        kill_at(sys.argv[3], int(sys.argv[4]))
    session()
    hw.reduce_job(
        home / "in",
        store=f"delta:{home / 'lake'}" if into else home / "store",
        job="J",
        once=True,
        local_batch=40,
        global_batch=60,
        partitions=3,
        options={"maxBytesPerTrigger": "10000"},
        **STRATEGIES[strategy],
    ).finish()
