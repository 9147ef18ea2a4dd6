"""Jobs for tests, and a runtime that polls fast."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headwater.runtimes.jobs import Event, Execution, Job, JobQueue, JobRuntime, Output, Step


def ran(folder: Path) -> dict[str, int]:
    """How often each step ran."""
    return {each.name[4:]: each.stat().st_size for each in sorted(folder.glob("ran-*"))}


STEPS = (
    Step("prepare", call="tests.runtimes.functions:prepare"),
    Step("simulate", call="tests.runtimes.functions:simulate", after=("prepare",)),
    Step("report", call="tests.runtimes.functions:report", after=("simulate",)),
)


def job(run: str | None = None, **keys: Any) -> Job:
    """A job with fast retries."""
    return Job("weather", "forecast", run=run, **{"backoff": 0.02, **keys})


def events(*numbers: int) -> list[Event]:
    return [Event(f"e{n}", {"n": n}, f"hw:weather/strong/{n}", float(n)) for n in numbers]


class Told:
    """What a runtime tells: outputs by the execution's name, failures, lines of provenance."""

    def __init__(self) -> None:
        self.outputs: dict[str, list[Output]] = {}
        self.failed: dict[str, Execution] = {}
        self.lines: list[dict[str, Any]] = []
        self.calls = 0

    def finished(self, execution: Execution, outputs: list[Output]) -> None:
        self.calls += 1
        self.outputs[execution.name] = outputs

    def fail(self, execution: Execution) -> None:
        self.calls += 1
        self.failed[execution.name] = execution

    @property
    def values(self) -> dict[str, list[Any]]:
        return {name: [each.value for each in made] for name, made in self.outputs.items()}


@contextmanager
def running(queue: JobQueue, told: Told, **settings: Any) -> Iterator[JobRuntime]:
    runtime = JobRuntime(
        queue,
        on_finished=told.finished,
        on_failed=told.fail,
        on_provenance=told.lines.append,
        **{"poll": 0.01, "grace": 0.3, **settings},
    )
    runtime.start()
    try:
        yield runtime
    finally:
        runtime.stop("kill")


def done(
    folder: Path, made: Job, given: Sequence[Event], seconds: float = 15, **settings: Any
) -> tuple[JobQueue, Told]:
    """All that comes of some events."""
    queue, told = JobQueue(folder, made), Told()
    queue.enqueue(given)
    with running(queue, told, **settings) as runtime:
        assert runtime.wait(seconds), (queue.counts(), runtime.trouble)
    return queue, told


def until(what: Any, seconds: float = 10) -> None:
    """Wait for something to hold."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has taken away is not alive."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
