"""A process with a runtime, to be killed: publishes what it finishes to a named stream.

`python -m tests.runtimes.host FOLDER`; it ends when all is told.
"""

from __future__ import annotations

import sys
from pathlib import Path

from headwater import streams
from headwater.runtimes.jobs import Execution, JobQueue, JobRuntime, Output


def main(folder: Path) -> None:
    registry = streams.open(folder / "streams")

    def publish(execution: Execution, outputs: list[Output]) -> None:
        rows = [{"id": each.id, **each.value} for each in outputs]
        registry.publish("forecasts", rows, key=execution.name)

    runtime = JobRuntime(JobQueue(folder / "queue"), on_finished=publish, poll=0.01, grace=0.2)
    runtime.start()
    print("started", flush=True)
    assert runtime.wait(60)
    runtime.stop()
    print("done", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
