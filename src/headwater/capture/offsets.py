"""Which messages a micro-batch read, from the log of offsets that Spark keeps of a query.

The log has a line for each place of a source in the plan, without its name: a line is known by its
topics, which no two sources of a flow share.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.capture.arrivals import Arrival
from headwater.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

Ends = dict[tuple[str, int], int]


class Stretch(NamedTuple):
    """Messages of a partition that a batch read: from one offset up to, not with, another."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def arrival(self) -> Arrival:
        """As the store keeps it: the first one's place as an address, and the end."""
        return Arrival(f"{self.topic}/{self.partition}/{self.start}", self.end)

    @classmethod
    def of(cls, path: str, end: int) -> Stretch:
        """What the store kept.

        >>> Stretch.of("reports/3/120", 125)
        Stretch(topic='reports', partition=3, start=120, end=125)
        """
        topic, partition, start = path.rsplit("/", 2)
        return cls(topic, int(partition), int(start), end)


class Offsets:
    """The messages of a query's sources, batch by batch."""

    def __init__(self, checkpoint: Path, topics: Mapping[str, Sequence[str]]) -> None:
        self._checkpoint = checkpoint
        self._topics = topics
        self._ends: tuple[int, dict[str, Ends]] = (-1, {})

    def of(self, batch: int) -> dict[str, list[Stretch]]:
        """What a batch that is planned reads, by source."""
        if not self._topics:
            return {}
        ends = self._read(batch)
        known, before = self._ends
        if known != batch - 1:
            before = self._read(batch - 1) if batch else {}
        starts = {} if batch else self._first()
        self._ends = (batch, ends)
        found = {}
        for source, reached in ends.items():
            # A partition that is new in a topic is read from its beginning.
            since = {**starts.get(source, {}), **before.get(source, {})}
            stretches = [
                Stretch(topic, partition, since.get((topic, partition), 0), end)
                for (topic, partition), end in sorted(reached.items())
            ]
            found[source] = [one for one in stretches if one.end > one.start]
        return found

    def _read(self, batch: int) -> dict[str, Ends]:
        file = self._checkpoint / "offsets" / str(batch)
        return self._by_source(file.read_text().splitlines()[2:])

    def _first(self) -> dict[str, Ends]:
        """Where each source began."""
        folder = self._checkpoint / "sources"
        files = sorted(folder.glob("*/0")) if folder.exists() else []
        return self._by_source([_after_version(file.read_text()) for file in files])

    def _by_source(self, lines: Sequence[str]) -> dict[str, Ends]:
        found: dict[str, Ends] = {}
        for line in lines:
            told = _offsets(line)
            for source, topics in self._topics.items():
                if told and set(told) <= set(topics):
                    ends = {(t, int(p)): int(o) for t, ps in told.items() for p, o in ps.items()}
                    if found.setdefault(source, ends) != ends:
                        raise RunError(
                            f"source {source!r}: another source of the flow reads its topics as "
                            "well, at another pace; use the frame of one for both"
                        )
        return found


def _offsets(line: str) -> dict[str, dict[str, Any]]:
    """The offsets in a line, by topic and partition; nothing if it is another source's."""
    try:
        told = json.loads(line)
    except ValueError:
        return {}
    if not isinstance(told, dict) or not all(isinstance(one, dict) for one in told.values()):
        return {}
    return told


def _after_version(text: str) -> str:
    """What follows the version that the first line of Spark's file says."""
    return text.partition("\n")[2].strip() or text[text.find("{") :]
