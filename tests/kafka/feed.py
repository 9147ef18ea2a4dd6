"""Random records in topics instead of files, for the random flows and graphs."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

import headwater as hw
from headwater.testing import Input
from headwater.testing.records import SCHEMA, SourceData
from tests.kafka.topics import Place, Topics, Values, packed, recorded

NAMES = [column.split()[0] for column in SCHEMA.split(", ")]
PARTITION = 0


class TopicFeed:
    """A topic of one partition for each source of each program."""

    def __init__(self, topics: Topics, per_batch: int = 8) -> None:
        self._topics, self._per_batch = topics, per_batch
        self._records: dict[Path, dict[Place, Values]] = {}
        self._made = 0

    def put(self, data: SourceData, folder: Path) -> None:
        """Put the records of a source into a new topic, in the order of its batches."""
        self._made += 1
        topic = self._topics.make(f"random-{self._made}", 1)
        rows = [row for batch in data.batches for row in batch]
        values = [
            json.dumps(dict(zip(NAMES, row, strict=True)), default=_text).encode() for row in rows
        ]
        places = self._topics.send_raw(topic, [(PARTITION, value) for value in values])
        self._records[folder] = dict(zip(places, rows, strict=True))

    def source(self, flow: hw.Flow, data: SourceData, folder: Path) -> hw.Frame:
        """A source over the topic, with a column as the id."""
        return self._topics.source(
            flow,
            data.name,
            next(iter(self._records[folder]))[0],
            schema=SCHEMA,
            event_time="ts",
            watermark=data.delay if data.declared else None,
            id="id",
            options={"maxOffsetsPerTrigger": self._per_batch},
        )

    def recorded(self, flow: hw.Flow, checkpoint: Path, folder: Path) -> Input:
        """What each batch of a run read, by the offsets that Spark wrote down."""
        names = [name for name, node in flow.sources.items() if node.streaming]
        return recorded(checkpoint, {name: self._records[folder / name] for name in names})

    def positions(self, data: SourceData) -> dict[int, list[int]]:
        """Where each record lies: one behind the other."""
        found: dict[int, list[int]] = defaultdict(list)
        rows = [row for batch in data.batches for row in batch]
        for offset, values in enumerate(rows):
            found[values[0]].append(packed(("", PARTITION, offset)))
        return found


def _text(value: Any) -> str:
    assert isinstance(value, datetime)
    return value.isoformat()
