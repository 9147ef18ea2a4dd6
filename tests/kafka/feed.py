"""Random records in topics instead of files, for the random flows and graphs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from itertools import count, cycle
from pathlib import Path
from typing import Any

import headwater as hw
from headwater.testing import Input
from headwater.testing.records import SCHEMA, SourceData
from tests.kafka.topics import Place, Topics, Values, packed, recorded

NAMES = [column.split()[0] for column in SCHEMA.split(", ")]
BAD = b"{"
"""A message that can't be decoded."""


class TopicFeed:
    """A topic for each source of each program; every `bad`th message can't be decoded."""

    def __init__(
        self, topics: Topics, per_batch: int = 8, partitions: int = 1, bad: int = 0
    ) -> None:
        self._topics, self._per_batch = topics, per_batch
        self._partitions, self._bad = partitions, bad
        self._records: dict[Path, dict[Place, Values]] = {}
        self.letters: dict[Path, list[Place]] = {}
        """Where the messages are that can't be decoded."""
        self._made = 0

    def put(self, data: SourceData, folder: Path) -> None:
        """Put the records of a source into a new topic, in the order of its batches."""
        self._made += 1
        topic = self._topics.make(f"random-{self._made}", self._partitions)
        messages = list(self._messages(data))
        places = self._topics.send_raw(topic, [(at, _value(row)) for at, row in messages])
        sent = [(place, row) for place, (_, row) in zip(places, messages, strict=True)]
        self._records[folder] = {place: row for place, row in sent if row is not None}
        self.letters[folder] = [place for place, row in sent if row is None]

    def _messages(self, data: SourceData) -> Iterator[tuple[int, Values | None]]:
        """The messages of a topic in order: their partitions and rows, None for a bad one."""
        turns = cycle(range(self._partitions))
        for number, row in enumerate(row for batch in data.batches for row in batch):
            yield next(turns), row
            if self._bad and number % self._bad == self._bad - 1:
                yield next(turns), None

    def source(self, flow: hw.Flow, data: SourceData, folder: Path) -> hw.Frame:
        """A source over the topic, with a column as the id."""
        return self._topics.source(
            flow,
            data.name,
            self._topic(folder),
            schema=SCHEMA,
            event_time="ts",
            watermark=data.delay if data.declared else None,
            id="id",
            options={"maxOffsetsPerTrigger": self._per_batch},
        )

    def write_options(self, home: Path) -> None:
        """Leave the options of each topic in a file, for a job in its own process."""
        for folder in self._records:
            if folder.parent == home:
                options = {
                    "kafka.bootstrap.servers": self._topics.servers,
                    "subscribe": self._topic(folder),
                    "maxOffsetsPerTrigger": str(self._per_batch),
                }
                folder.write_text(json.dumps(options))

    def _topic(self, folder: Path) -> str:
        return next(iter(self._records[folder]))[0]

    def recorded(self, flow: hw.Flow, checkpoint: Path, folder: Path) -> Input:
        """What each batch of a run read, by the offsets that Spark wrote down."""
        names = [name for name, node in flow.sources.items() if node.streaming]
        return recorded(checkpoint, {name: self._records[folder / name] for name in names})

    def positions(self, data: SourceData) -> dict[int, list[int]]:
        """Where each record lies: one behind the other."""
        found: dict[int, list[int]] = defaultdict(list)
        offsets = [count() for _ in range(self._partitions)]
        for partition, row in self._messages(data):
            offset = next(offsets[partition])
            if row is not None:
                found[row[0]].append(packed(("", partition, offset)))
        return found


def _value(row: Values | None) -> bytes:
    if row is None:
        return BAD
    return json.dumps(dict(zip(NAMES, row, strict=True)), default=_text).encode()


def _text(value: Any) -> str:
    assert isinstance(value, datetime)
    return value.isoformat()
