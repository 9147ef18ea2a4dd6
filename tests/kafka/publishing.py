"""A publisher of a graph: `python -m tests.kafka.publishing STORE SERVERS TOPIC N`.

It kills itself within the transaction of the change after N.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import headwater as hw
from headwater.query import publishing


def main(store: str, servers: str, topic: str, after: str) -> None:
    """Publish, and die."""
    whole, left = publishing.messages, int(after)

    def messages(*given: Any) -> Iterator[tuple[bytes, bytes]]:
        nonlocal left
        found = list(whole(*given))
        yield from found[:-1]
        if not left:
            # What was sent so far is to be in the topic, as of an open transaction.
            open_topics[0]._until(0)
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        yield found[-1]

    open_topics: list[publishing.GraphTopic] = []
    begun = publishing.GraphTopic.__init__

    def noted(self: publishing.GraphTopic, *given: Any) -> None:
        open_topics.append(self)
        begun(self, *given)

    publishing.GraphTopic.__init__ = noted  # type: ignore[method-assign]
    publishing.messages = messages
    list(hw.open(store).publish_graph(topic, bootstrap=servers, wait=False))


if __name__ == "__main__":
    main(*sys.argv[1:])
