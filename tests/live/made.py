"""Live graphs without Spark: batches that say themselves what they add to the graph."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from headwater.store import EmbeddedWriter, FlowRegistration, SinkRegistration, SourceRegistration
from headwater.store.batch import GraphChanges, Vertices
from tests.store.small import at, batch, reports, sink, source, stopped

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Adds:
    """What a batch adds: (id, second) of new records, and ids of those that are past."""

    vertices: Iterable[tuple[int, int]] = ()
    labels: Iterable[int] = ()
    name: str = "reports"

    def changes(
        self,
        reached: Mapping[str, Ids],
        known: Callable[[str, Ids], Ids],
        *,
        last: bool,
    ) -> GraphChanges:
        """As a live graph tells it within a batch's transaction."""
        new = list(self.vertices)
        ids = np.array([one for one, _ in new], np.int64)
        times = np.array([int(at(second).timestamp() * 1e6) for _, second in new], np.int64)
        past = np.array(list(self.labels), np.int64)
        return GraphChanges({self.name: Vertices(ids, times)}, {self.name: past})


def live_flow(
    *parts: SourceRegistration | SinkRegistration,
    name: str = "traffic.standing.v1",
    query_id: str = "q",
) -> FlowRegistration:
    """A flow that keeps a live graph, under a name as deployed units have it."""
    parts = parts or (source(), sink())
    sources = tuple(part for part in parts if isinstance(part, SourceRegistration))
    sinks = tuple(part for part in parts if isinstance(part, SinkRegistration))
    live = {"expiry": "watermark", "reach": {}}
    definition: dict[str, Any] = {"flow": name, "live": live}
    return FlowRegistration(name, "eager", query_id, "cp", "f1", definition, sources, sinks)


@dataclass
class Made:
    """What a random store was filled with."""

    records: dict[int, int] = field(default_factory=dict)
    """By id: the batch it came in."""
    results: dict[int, tuple[int, list[int]]] = field(default_factory=dict)
    """By id: the batch, and the records."""
    labels: dict[int, int] = field(default_factory=dict)


def fill(
    writer: EmbeddedWriter,
    seed: int,
    batches: int = 12,
    per_batch: int = 8,
    wide: int = 5,
    *,
    register: bool = True,
    first: int = 0,
    made: Made | None = None,
) -> Made:
    """Batches of records, results of some of the latest ones, and labels of old ones."""
    chance = random.Random(seed)
    made = Made() if made is None else made
    if register:
        writer.register(live_flow())
    for number in range(first, first + batches):
        new = [number * per_batch + place for place in range(chance.randint(1, per_batch))]
        made.records |= dict.fromkeys(new, number)
        alive = [one for one in made.records if one not in made.labels]
        made_now = []
        for _ in range(chance.randint(0, 3)):
            id_ = chance.randrange(-(2**62), 2**62)
            held = sorted(chance.sample(alive, min(len(alive), chance.randint(1, wide))))
            made.results[id_] = (number, held)
            made_now.append((id_, number, f"car {id_ % 7}", len(held), held))
        past = [one for one in alive if made.records[one] < number - 2 and chance.random() < 0.7]
        made.labels |= dict.fromkeys(past, number)
        writer.commit(
            batch(
                number,
                stopped(*made_now),
                reports(*((one, number, one % 90) for one in new)),
                graph=Adds([(one, number) for one in new], past),
            )
        )
    return made
