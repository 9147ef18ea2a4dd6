"""The live graph as messages of a Kafka topic: what each batch adds, in one transaction.

The topic itself says how far it is: every message has the position of its batch. Who goes on first
takes the name under which transactions are written, so nobody else writes any more, and then looks
at the ends of the partitions.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from headwater.errors import HeadwaterError, StoreError, UnknownName
from headwater.query.live import live_flows
from headwater.service.posting import as_json
from headwater.streams.errors import LogUnreachable, StreamError
from headwater.streams.kafka_client import SERVERS, Settings, administration, client, library
from headwater.streams.kafka_reading import partitions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from confluent_kafka import Producer

    from headwater.query.follow import GraphChange
    from headwater.store.reader import Reader

FLOW, QUERY, BATCH, POSITION = "flow", "query", "batch", "position"
"""The headers of every message."""
_CONFIG = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
_DOING = "be published to"
_LONGEST = 900
"""Seconds that a batch may take: what brokers admit at most, unless set otherwise."""
_LATER = "start again: it goes on from what the topic has"


def settings(topic: str, bootstrap: str | None, config: str | None) -> Settings:
    """Where the topic is."""
    servers = bootstrap or os.environ.get(SERVERS, "")
    if not servers:
        raise StreamError(
            f"topic {topic!r} needs a broker: give bootstrap='HOST:PORT', or the variable {SERVERS}"
        )
    return Settings(topic, topic, servers, config, what="topic")


def only(reader: Reader, flow: str | None) -> tuple[str, str]:
    """The flow whose graph is meant, and the id of its query: positions of several would mix."""
    live = live_flows(reader, flow)
    if len(live) > 1:
        raise UnknownName(
            f"a topic has the graph of one flow, and these have one: {', '.join(live)}; name it"
        )
    ((name, found),) = live.items()
    return name, found.query_id


def require_remembered(reader: Reader, flow: str, after: int) -> None:
    """Refuse to leave out batches that the store has forgotten."""
    gone = reader.query(
        "SELECT max(b.seq) AS seq FROM batches b JOIN flows f USING (query_id) "
        "WHERE f.flow = ? AND b.seq > ? AND b.seq <= "
        "(SELECT coalesce(max(value::BIGINT), 0) FROM meta WHERE key = 'forgotten')",
        [flow, after],
    )["seq"][0].as_py()
    if gone is not None:
        raise StoreError(
            f"the store has forgotten batches of flow {flow!r} that are not in the topic; publish "
            f"with after={gone} to go on without them"
        )


def messages(change: GraphChange, steps: Collection[str] = ()) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values: vertices, edges, labels, and one that says that the batch is whole.

    An edge has the key of the record that it comes from: what is told of a record is in one
    partition, its vertex first and its label last.
    """
    for row in change.vertices.to_pylist():
        yield _key(row["kind"], row["name"], row["id"]), _value("vertex", row)
    for row in change.edges.to_pylist():
        kind = "step" if row["source"] in steps else "source"
        yield _key(kind, row["source"], row["source_id"]), _value("edge", row)
    for row in change.labels.to_pylist():
        yield _key(row["kind"], row["name"], row["id"]), _value("label", row)
    told = {
        "flow": change.flow,
        "batch": change.batch,
        "position": change.position,
        "watermark": change.watermark,
        "vertices": change.vertices.num_rows,
        "edges": change.edges.num_rows,
        "labels": change.labels.num_rows,
    }
    yield _key("flow", change.flow), _value("batch", told)


def published(
    to: Settings,
    flow: str,
    query: str,
    steps: Collection[str],
    changes: Callable[[int], Iterator[GraphChange]],
) -> Iterator[GraphChange]:
    """The changes after those that the topic has, each once it is there."""
    topic = GraphTopic(to, flow, query)
    try:
        for change in changes(topic.position()):
            topic.send(change, steps)
            yield change
    finally:
        topic.close()


class GraphTopic:
    """A topic with the live graph of one flow."""

    def __init__(self, to: Settings, flow: str, query: str) -> None:
        self._to, self._flow, self._query = to, flow, query
        kafka = library()
        with to.telling(_DOING):
            self._partitions = self._made()
            name = f"headwater-graph-{query}-{to.topic}"
            self._producer: Producer = client(to).producer(name, _LONGEST)
            try:
                # Ends what one that died left open, and whoever else does the same.
                self._producer.init_transactions(to.timeout)
            except kafka.KafkaException:
                self.close()
                raise

    def close(self) -> None:
        """Let go of the connection."""
        client(self._to).release(self._producer)

    def position(self) -> int:
        """The position up to which the topic has the graph; 0 for a new one."""
        with self._to.telling("be read"), client(self._to).consumer() as consumer:
            ends = [_ends(consumer, self._to, number) for number in range(self._partitions)]
            tails = [
                found
                for number, (low, high) in enumerate(ends)
                if (found := _last(consumer, self._to, number, low, high)) is not None
            ]
        if not tails and any(low > 0 for low, _ in ends):
            raise StreamError(
                f"topic {self._to.topic!r} has lost all its messages, and with them how far it "
                "was: publish to a new topic"
            )
        for headers in tails:
            if headers.get(QUERY) != self._query.encode():
                other = headers.get(FLOW, b"").decode("utf-8", "replace")
                what = f"flow {other!r} of another store or start" if other else "something else"
                raise StreamError(
                    f"topic {self._to.topic!r} has messages of {what}: give flow {self._flow!r} a "
                    "topic of its own"
                )
        return max((int(headers[POSITION]) for headers in tails), default=0)

    def send(self, change: GraphChange, steps: Collection[str]) -> None:
        """Write a change, all or nothing."""
        headers = [
            (FLOW, change.flow.encode()),
            (QUERY, self._query.encode()),
            (BATCH, str(change.batch).encode()),
            (POSITION, str(change.position).encode()),
        ]
        kafka, producer = library(), self._producer
        try:
            producer.begin_transaction()
            try:
                for key, value in messages(change, steps):
                    self._put(key, value, headers)
                self._until(0)
            except BaseException:
                with suppress(kafka.KafkaException):
                    producer.abort_transaction(self._to.timeout)
                raise
            producer.commit_transaction(self._to.timeout)
        except kafka.KafkaException as error:
            raise self._told(error.args[0], change.position) from error

    def _put(self, key: bytes, value: bytes, headers: list[tuple[str, bytes]]) -> None:
        while True:
            try:
                self._producer.produce(self._to.topic, value, key, headers=headers)  # type: ignore[arg-type]
                return
            except BufferError:  # many wait to be sent
                self._until(len(self._producer) // 2)

    def _until(self, left: int) -> None:
        """Wait until so few messages wait; not for longer than the timeout while nothing moves."""
        producer, since, before = self._producer, time.monotonic(), -1
        while (now := len(producer)) > left:
            if now != before:
                since, before = time.monotonic(), now
            elif time.monotonic() - since > self._to.timeout:
                kafka = library()
                raise kafka.KafkaException(kafka.KafkaError(kafka.KafkaError._TIMED_OUT))
            producer.flush(0.1) if left == 0 else producer.poll(0.1)

    def _told(self, error: Any, position: int) -> HeadwaterError:
        if error.fatal() or error.name() in ("_FENCED", "INVALID_PRODUCER_EPOCH"):
            return StreamError(
                f"another process publishes the graph of flow {self._flow!r} to topic "
                f"{self._to.topic!r} since; this one ends before position {position}"
            )
        told = self._to.told(error, _DOING)
        return LogUnreachable(f"{told}; {_LATER}") if isinstance(told, LogUnreachable) else told

    def _made(self) -> int:
        """Make the topic if it is missing; the number of its partitions."""
        kafka, admin, to = library(), client(self._to).admin, self._to
        if partitions(to, to.topic) is None:
            wanted = administration().NewTopic(
                to.topic, num_partitions=-1, replication_factor=to.replication, config=_CONFIG
            )
            try:
                admin.create_topics([wanted], request_timeout=to.timeout)[to.topic].result()
            except kafka.KafkaException as error:
                if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                    raise
        resource = administration().ConfigResource("topic", to.topic)
        asked = admin.describe_configs([resource], request_timeout=to.timeout)[resource]
        if "compact" in asked.result()["cleanup.policy"].value:
            raise StreamError(
                f"topic {to.topic!r} is compacted, which leaves only the last message of a vertex: "
                "give one with cleanup.policy=delete"
            )
        until = time.monotonic() + to.timeout
        while (number := partitions(to, to.topic)) is None and time.monotonic() < until:
            time.sleep(0.05)  # the broker does not know yet what the controller has made
        return number or 1


def _ends(consumer: Any, to: Settings, number: int) -> tuple[int, int]:
    """The first offset of a partition, and that before which all is committed or taken back."""
    kafka = library()
    place = kafka.TopicPartition(to.topic, number)
    found: tuple[int, int] | None = consumer.get_watermark_offsets(
        place, timeout=to.timeout, cached=False
    )
    if found is None:
        raise kafka.KafkaException(kafka.KafkaError(kafka.KafkaError._TIMED_OUT))
    return found


def _last(consumer: Any, to: Settings, number: int, low: int, high: int) -> dict[str, bytes] | None:
    """The headers of the last message of a partition, looked for from the end backwards."""
    kafka, reach = library(), 2
    while low < high:
        start, last = max(low, high - reach), None
        consumer.assign([kafka.TopicPartition(to.topic, number, start)])
        until = time.monotonic() + to.timeout
        while True:
            message = consumer.poll(0.1)
            if message is None:
                if time.monotonic() > until:
                    raise kafka.KafkaException(kafka.KafkaError(kafka.KafkaError._TIMED_OUT))
            elif message.error() is None:
                last = message
            elif message.error().name() == "_PARTITION_EOF":
                break
            elif not message.error().retriable():
                raise kafka.KafkaException(message.error())
        if last is not None:
            return {name: value or b"" for name, value in last.headers() or ()}
        if start == low:
            break
        reach *= 16
    return None


def _key(*parts: str | int) -> bytes:
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode()


def _value(what: str, row: dict[str, Any]) -> bytes:
    return as_json({"what": what, **row}).encode()
