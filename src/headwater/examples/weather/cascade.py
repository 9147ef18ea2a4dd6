"""The workflow of the cascading queues: systems of linear equations, as Linpack solves them.

`python -m headwater.examples.weather.cascade --streams streams --seconds 60` publishes the events
whose rate rises and falls like a sine, the first of Streamflow's three streams. With `run`, the
cascade is deployed as well, and its queues are measured.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.errors import HeadwaterError
from headwater.flow.determinism import deterministic
from headwater.sustain.waves import wave1

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater.streams import Streams

SCHEMA = "event bigint, at timestamp"


@deterministic
def solve(events: pa.RecordBatch, size: int = 900) -> pa.Table:
    """Solves a system of `size` equations for each event; how far its worst equation is off.

    >>> batch = pa.RecordBatch.from_pydict({"event": [1, 2]})
    >>> [residual < 1e-6 for residual in solve(batch, 50)["residual"].to_pylist()]
    [True, True]
    """
    residuals = []
    for event in events["event"].to_pylist():
        random = np.random.default_rng(event)
        matrix, right = random.uniform(-0.5, 0.5, (size, size)), random.uniform(-0.5, 0.5, size)
        solution = np.linalg.solve(matrix, right)
        residuals.append(float(np.abs(matrix @ solution - right).max()))
    return pa.table({"residual": pa.array(residuals, pa.float64())})


def events(seconds: int, start: datetime) -> Iterator[list[dict[str, Any]]]:
    """The events of each second.

    >>> [len(rows) for rows in events(9, datetime.now(UTC))]
    [1, 3, 4, 3, 1, 0, 0, 0, 1]
    """
    count = 0
    for second in range(seconds):
        at = start + timedelta(seconds=second)
        yield [{"event": count + n, "at": at} for n in range(wave1(second))]
        count += wave1(second)


def publish(registry: Streams, seconds: int, name: str = "events", *, pace: float = 1.0) -> int:
    """Publishes the events of so many seconds to a new stream, `pace` seconds for each."""
    if seconds < 1 or pace < 0:
        raise HeadwaterError(f"seconds={seconds}, pace={pace}: give 1 or more, and 0 or more")
    registry.create(name, SCHEMA, event_time="at", id="event")
    began, count = time.monotonic(), 0
    for second, rows in enumerate(events(seconds, datetime.now(UTC))):
        time.sleep(max(0.0, began + second * pace - time.monotonic()))
        if rows:
            count += registry.publish(name, rows).events
    return count


def main(arguments: Sequence[str] | None = None) -> int:
    """Publishes the events, and says how many; or runs all of it."""
    import argparse

    from headwater import streams

    words = sys.argv[1:] if arguments is None else list(arguments)
    if words[:1] == ["run"]:
        from headwater.examples.weather import queues

        return queues.main(words[1:])

    parser = argparse.ArgumentParser(
        prog="python -m headwater.examples.weather.cascade",
        description="Publish events whose rate rises and falls to the stream `events`. "
        "`cascade run` deploys the cascade, too, and measures its queues; `run --help` says more.",
    )
    parser.add_argument("--streams", metavar="DIR", help="the streams folder")
    parser.add_argument("--seconds", type=int, default=60, help="for how long; 60")
    parser.add_argument("--pace", type=float, default=1.0, help="seconds that a second takes; 1")
    given = parser.parse_args(words)
    try:
        count = publish(streams.open(given.streams), given.seconds, pace=given.pace)
    except HeadwaterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{count} events")
    return 0


if __name__ == "__main__":
    sys.exit(main())
