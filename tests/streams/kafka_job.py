"""The publisher that tests kill in a transaction: `python -m tests.streams.kafka_job`, as `job`.

POINT says where in a batch it kills itself: `begun` with the transaction noted and nothing sent,
`sent` with all events there and not committed, `committed` before the transaction is noted as over,
`over` before it is acknowledged.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from headwater.streams.kafka_reading import Partition
from headwater.streams.kafka_writing import Writer
from tests.streams import job


def kill_at(point: str, batch: int) -> None:
    """Arrange for this process to be killed at a point of a batch of those it still publishes."""
    owner, name = {
        "begun": (Writer, "_send"),
        "sent": (Writer, "_commit"),
        "committed": (Writer, "_closed"),
        "over": (Partition, "wait_for"),
    }[point]
    former, calls = getattr(owner, name), 0

    def killing(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > batch:
            os.kill(os.getpid(), signal.SIGKILL)
        return former(*args, **kwargs)

    setattr(owner, name, killing)


if __name__ == "__main__":
    job.kill_at = kill_at
    job.main(*sys.argv[1:])
