"""A flow over a topic in its own process: `python -m tests.kafka.job HOME SERVERS TOPIC [DIE]`.

With DIE it kills itself after that batch is in the store, before Spark has it.
"""

from __future__ import annotations

import os
import signal
import sys

import headwater as hw


def main(home: str, servers: str, topic: str, die: str = "") -> None:
    """Run to the end of the topic."""
    flow = hw.Flow("killed")
    rows = flow.source(
        "reports",
        format="kafka",
        schema="n bigint",
        options={
            "kafka.bootstrap.servers": servers,
            "subscribe": topic,
            "maxOffsetsPerTrigger": 10,
        },
    )
    flow.sink("all", rows)

    def after(info: hw.BatchInfo) -> None:
        if str(info.batch) == die:
            os.kill(os.getpid(), signal.SIGKILL)

    flow.start(store=f"{home}/store", available_now=True, on_batch=after).wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
