"""How long after its event time a record can still contribute: an upper bound for a flow."""

from __future__ import annotations

from headwater.flow.nodes import Aggregate, Join, Node, Ordered, Source
from headwater.flow.windows import Session, Window


def longest_wait(sinks: list[Node], source: Source) -> int | None:
    """Microseconds past a record's time after which no sink can use it, or None if unbounded.

    The sum of window sizes and join ranges along the longest path, as in Ananke. Sessions grow
    with their rows, a static side is used forever, and what waits for rows to arrive waits
    as long as none do: they have no bound.
    """
    if not source.streaming or source.event_time is None:
        return None
    memo: dict[str, int | None] = {}

    def wait(node: Node) -> int | None:
        """The bound from the source to this node; -1 when the source is not above it."""
        if node.step == source.step:
            return 0
        if node.step not in memo:
            above = [wait(n) for n in node.inputs]
            longest = (
                None if None in above else max((a for a in above if a is not None), default=-1)
            )
            own = _own(node)
            if longest is not None and longest >= 0:
                longest = None if own is None else longest + own
            memo[node.step] = longest
        return memo[node.step]

    waits = [wait(sink) for sink in sinks]
    return None if None in waits else max(w for w in waits if w is not None)


def _own(node: Node) -> int | None:
    """What one step adds; None when it has no bound."""
    match node:
        case Aggregate(window=Window(size=size)):
            return size
        case Aggregate(window=Session()):
            return None
        case Join(range=span):
            return span
        case Ordered():
            return None
    return 0
