"""Text tables as topics, for the tests of operators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql.types import StructType

from headwater.testing import Input
from tests.kafka.topics import Place, Topics, Values, recorded
from tests.support.streams import parse

PER_BATCH = 10
"""Messages of a micro-batch: Spark takes so many each time, whatever is in them."""


class TopicTables:
    """A topic of one partition for each table.

    A batch has as many messages as any other: behind its rows come some that can't be decoded, so
    that the next one's rows are in the next micro-batch, as with files, and at the same places in
    all topics.
    """

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._records: dict[str, dict[Place, Values]] = {}

    @property
    def are_used(self) -> bool:
        """Whether there is any."""
        return bool(self._records)

    def put(self, name: str, schema: StructType, text: str) -> dict[str, Any]:
        """Put a table into a new topic; the parameters of a source that reads it."""
        assert name not in self._records, "a table is put there once"
        topic = self._topics.make(name, 1)
        records = self._records[name] = {}
        for rows in parse(text, schema):
            assert len(rows) <= PER_BATCH
            values = [dict(zip(schema.names, row, strict=True)) for row in rows]
            places = self._topics.send(topic, [(0, value) for value in values])
            self._topics.send_raw(topic, [(0, b"{")] * (PER_BATCH - len(rows)))
            records.update(zip(places, map(_values, rows), strict=True))
        return {
            "format": "kafka",
            "options": {
                "kafka.bootstrap.servers": self._topics.servers,
                "subscribe": topic,
                "maxOffsetsPerTrigger": PER_BATCH,
            },
        }

    def recorded(self, checkpoint: Path, names: Iterable[str]) -> Input:
        """What each batch of a run read of some tables."""
        found: Mapping[str, Mapping[Place, Values]] = {n: self._records[n] for n in names}
        return recorded(checkpoint, found)


def _values(row: list[Any]) -> Values:
    return tuple(tuple(value) if isinstance(value, list) else value for value in row)
