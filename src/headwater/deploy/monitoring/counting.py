"""Counts of the events that nodes inside a query give out, by Spark as they pass.

Spark's `observe` counts the rows of a step natively and tells the number with each batch's
progress. Only nodes whose number is not known anyway are observed: a map gives one event for each.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from headwater.compose import Composition, Node
    from headwater.flow.frame import Frame

_RECENT = 16
"""Batches whose length says how long events are held back until the next."""


def steps_to_count(
    composition: Composition, nodes: Iterable[str], frames: Mapping[str, Frame]
) -> dict[str, str]:
    """The steps of a query that are observed, each under the name of its node or `node.output`."""
    own, found = set(nodes), dict[str, str]()
    for name, frame in frames.items():
        node = name.partition(".")[0]
        if node in own and not gives_all(composition[node]):
            found.setdefault(frame._node.step, name)
    return found


def gives_all(node: Node) -> bool:
    """Whether exactly as many events leave a node as come in."""
    if node.kind in ("merge", "sink"):
        return True
    return node.kind in ("map", "function", "static") and node.natural.is_one


@dataclass(slots=True)
class Counts:
    """What the batches of a query add up to."""

    batch: int = -1
    """The last batch that is counted."""
    out: dict[str, int] = field(default_factory=dict)
    """Rows by what was observed."""
    compute: float = 0.0
    """Seconds in which batches were worked on and written."""
    framework: float = 0.0
    """Seconds of planning them and of writing down how far they go."""


class Counter:
    """Counts the batches of a query, of one run of it after another, each batch once."""

    def __init__(self, is_muted: Callable[[int], bool], start: Counts | None = None) -> None:
        """The batches that `is_muted` names only build up state: their events were counted."""
        self.counts = start or Counts()
        self._is_muted = is_muted
        self._query: Any = None
        self._lengths: deque[float] = deque(maxlen=_RECENT)
        self._lock = threading.Lock()

    @property
    def length(self) -> float:
        """Seconds that a batch takes, lately."""
        return sum(self._lengths) / len(self._lengths) if self._lengths else 0.0

    def follow(self, query: Any) -> None:
        """From here on a query's progress counts; what is left of the one before counts first."""
        with self._lock:
            self._take()
            self._query = None if query is None else query._jsq

    def take(self) -> Counts:
        """Count the batches that have ended since."""
        with self._lock:
            self._take()
            return self.counts

    def _take(self) -> None:
        if self._query is None:
            return
        with suppress(Py4JError, OSError):  # Spark is gone: what it did last is not known
            for told in self._new():
                self.add(told)

    def _new(self) -> list[dict[str, Any]]:
        """The progress of batches that are not counted yet, in their order."""
        # Spark keeps the last hundred; each is fetched by itself, so the old ones are not.
        found, progress = [], self._query.recentProgress()
        for place in reversed(range(len(progress))):
            if progress[place].batchId() <= self.counts.batch:
                break
            found.append(json.loads(progress[place].json()))
        return found[::-1]

    def add(self, progress: Mapping[str, Any]) -> None:
        """Count a batch by what Spark says of it; a query that waits tells of no batch."""
        batch, took = int(progress["batchId"]), progress["durationMs"]
        if "addBatch" not in took or batch <= self.counts.batch:
            return
        counts = self.counts
        counts.batch = batch
        if self._is_muted(batch):
            return
        found: dict[str, int] = {}
        for name, metrics in progress.get("observedMetrics", {}).items():
            # A step may be observed in several lowerings: they see the same rows.
            node = name.rpartition("#")[0]
            found[node] = max(found.get(node, 0), int(metrics["rows"]))
        for node, rows in found.items():
            counts.out[node] = counts.out.get(node, 0) + rows
        work, whole = took["addBatch"] / 1_000, took.get("triggerExecution", 0) / 1_000
        counts.compute += work
        counts.framework += max(0.0, whole - work)
        self._lengths.append(max(work, whole))
