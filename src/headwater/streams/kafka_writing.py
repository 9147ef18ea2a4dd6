"""Writing to Kafka: one transaction for each append, and the end of those that were left open.

Only who holds the stream's lock is in a transaction. Its name is noted in the stream's folder while
it is open: who finds one there knows that its writer died or gave up, and ends it by taking its
name, before anything else.
"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from headwater.streams.errors import LogUnreachable, StreamError
from headwater.streams.files import write_whole
from headwater.streams.kafka_client import client, library

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from confluent_kafka import Producer

    from headwater.streams.kafka_client import Client, Settings


Places: TypeAlias = "dict[tuple[int, str], int]"
"""The offsets of the first and last message of each part, and of the last key."""
_KEYS = (-1, "last")
_WAITING = 50_000
"""Messages that may wait to be sent once there were too many."""


class Part(NamedTuple):
    """What one entry writes: its events, and who published them."""

    values: list[bytes]
    headers: list[tuple[str, bytes]]


class Writer:
    """Writes transactions of one process to a stream, under the stream's lock."""

    def __init__(self, settings: Settings, folder: Path, identity: str) -> None:
        self._settings, self._open = settings, folder / "_transaction"
        self._identity, self._name = identity, ""
        self._producer: Producer | None = None
        self._client: Client | None = None

    def __del__(self) -> None:
        self._drop()

    def _drop(self) -> None:
        """Give up the producer, if there is one."""
        if self._producer is not None and self._client is not None:
            self._client.release(self._producer)
        self._producer = None

    def ready(self) -> None:
        """End what a dead process left open, and be able to begin."""
        try:
            left = self._open.read_text()
        except FileNotFoundError:
            left = ""
        if left or (self._client is not None and not self._client.is_mine):
            self._drop()
        if self._producer is None:
            # Never again the name of one that was given up: somebody else may have taken it.
            self._name = left or f"headwater-{self._identity[:12]}-{uuid.uuid4().hex[:12]}"
            settings = self._settings
            self._client = client(settings)
            with settings.telling("be published to"):
                self._producer = self._client.producer(self._name)
                try:
                    self._producer.init_transactions(settings.timeout)
                except BaseException:
                    self._drop()
                    raise
        if left:
            self._closed()

    def write(
        self, parts: Sequence[Part], keys: Sequence[tuple[bytes, bytes]]
    ) -> tuple[list[tuple[int, int]], int]:
        """Write all or nothing: the first and last offset of each part, and the last of keys."""
        producer = self._producer
        assert producer is not None
        write_whole(self._open, self._name.encode(), sync=False)
        places: Places = {}
        try:
            with self._settings.telling("be published to"):
                self._transact(producer, parts, keys, places)
        except BaseException:
            # What it left open is ended by who comes next.
            if self._open.read_bytes():
                self._drop()
            raise
        self._closed()
        spans = [(places[n, "first"], places[n, "last"]) for n in range(len(parts))]
        return spans, places.get(_KEYS, -1)

    def _transact(
        self,
        producer: Producer,
        parts: Sequence[Part],
        keys: Sequence[tuple[bytes, bytes]],
        places: Places,
    ) -> None:
        producer.begin_transaction()
        try:
            for number, part in enumerate(parts):
                self._send(producer, number, part, places)
            for key, value in keys:
                told = _noting(places, [_KEYS])
                self._put(producer, self._settings.keys, value, told, key=key)
            self._flush(producer)
        except BaseException:
            producer.abort_transaction(self._settings.timeout)
            self._closed()
            raise
        self._commit(producer)

    def _send(self, producer: Producer, number: int, part: Part, places: Places) -> None:
        topic, last = self._settings.topic, len(part.values) - 1
        # Of the others nothing is asked: if one fails, the transaction does.
        asked = {last: [(number, "last")]}
        asked.setdefault(0, []).append((number, "first"))
        for place, value in enumerate(part.values):
            told = _noting(places, asked[place]) if place in asked else None
            self._put(producer, topic, value, told, headers=part.headers)

    def _put(self, producer: Producer, topic: str, value: bytes, told: Any, **more: Any) -> None:
        try:
            producer.produce(topic, value, partition=0, on_delivery=told, **more)
            return
        except BufferError:  # many wait to be sent
            since, before = time.monotonic(), len(producer)
        except library().KafkaException as error:
            if error.args[0].name() != "MSG_SIZE_TOO_LARGE":
                raise
            raise StreamError(
                f"an event of {len(value):,} bytes as JSON is too large for stream "
                f"{self._settings.stream!r} on Kafka; nothing of the call was published"
            ) from error
        while before > _WAITING:
            producer.poll(0.05)
            since, before = self._progress(producer, since, before)
        self._put(producer, topic, value, told, **more)

    def _flush(self, producer: Producer) -> None:
        since, before = time.monotonic(), len(producer)
        while producer.flush(0.1):
            since, before = self._progress(producer, since, before)

    def _progress(self, producer: Producer, since: float, before: int) -> tuple[float, int]:
        """Refuse to wait for longer than the timeout while nothing moves."""
        now, left = time.monotonic(), len(producer)
        if left != before:
            return now, left
        if now - since > self._settings.timeout:
            kafka = library()
            raise kafka.KafkaException(kafka.KafkaError(kafka.KafkaError._TIMED_OUT))
        return since, before

    def _commit(self, producer: Producer) -> None:
        kafka, settings = library(), self._settings
        try:
            producer.commit_transaction(settings.timeout)
        except kafka.KafkaException as error:
            if error.args[0].txn_requires_abort():
                producer.abort_transaction(settings.timeout)
                self._closed()
                raise
            raise LogUnreachable(
                f"stream {settings.stream!r}: the broker at {settings.servers} did not confirm "
                "what was published; it is not known whether the events are there: publish again "
                "under a key"
            ) from error

    def _closed(self) -> None:
        write_whole(self._open, b"", sync=False)


def _noting(places: Places, keys: list[tuple[int, str]]) -> Any:
    """What notes the offset of a message once it is there."""

    def told(error: Any, message: Any) -> None:
        if error is None:
            places.update(dict.fromkeys(keys, message.offset()))

    return told
