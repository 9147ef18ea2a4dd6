"""Topics of a test: messages put into them, and what a run read of them in each batch."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

import headwater as hw
from headwater.flow import nodes
from headwater.testing import Input, interpret

Values = tuple[Any, ...]
Place = tuple[str, int, int]


class Topics:
    """Topics with names of their own, and the records that were put into them."""

    def __init__(self, servers: str, home: Path) -> None:
        self.servers = servers
        self.home = home
        self.admin = AdminClient({"bootstrap.servers": servers})
        self.records: dict[Place, Values] = {}
        self._suffix = uuid.uuid4().hex[:6]

    def name(self, topic: str) -> str:
        return f"{topic}-{self._suffix}"

    def make(self, topic: str, partitions: int = 3, **config: str) -> str:
        """A new topic; its full name."""
        new = NewTopic(self.name(topic), partitions, 1, config=config)
        self.admin.create_topics([new])[new.topic].result(30)
        return new.topic

    def add_partitions(self, topic: str, count: int) -> None:
        self.admin.create_partitions([NewPartitions(topic, count)])[topic].result(30)

    def send(self, topic: str, rows: Iterable[tuple[int, Mapping[str, Any]]]) -> list[Place]:
        """Put rows into partitions of a topic, as JSON; where they are."""
        return self.send_raw(
            topic, [(partition, json.dumps(row, default=_text).encode()) for partition, row in rows]
        )

    def send_raw(
        self, topic: str, values: Sequence[tuple[int, bytes | None]], **more: Any
    ) -> list[Place]:
        """Put values into partitions of a topic as they are."""
        places: list[Place] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            places.append((message.topic(), message.partition(), message.offset()))

        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 5})
        for partition, value in values:
            producer.produce(topic, value, partition=partition, on_delivery=delivered, **more)
            producer.flush(30)
        assert len(places) == len(values)
        return places

    def source(self, flow: hw.Flow, name: str, topic: str, **more: Any) -> hw.Frame:
        """A source over a topic."""
        options = {
            "kafka.bootstrap.servers": self.servers,
            "subscribe": topic,
            **more.pop("options", {}),
        }
        return flow.source(name, format="kafka", options=options, **more)


def _text(value: Any) -> str:
    assert isinstance(value, datetime)
    return value.isoformat()


def packed(place: Place, number: int = 0) -> int:
    """The id of a record, from what the docs say of it."""
    _, partition, offset = place
    return offset * 2**19 + number * 2**12 + partition


def recorded(checkpoint: Path, records: Mapping[str, Mapping[Place, Values]]) -> Input:
    """What each batch of a run read, by the offsets that Spark wrote down."""
    numbers = sorted(int(p.name) for p in (checkpoint / "offsets").iterdir() if p.name.isdigit())
    assert numbers == list(range(len(numbers)))
    reached: dict[tuple[str, str], int] = {}
    batches: list[dict[str, list[Values]]] = []
    places: list[dict[str, list[int]]] = []
    watermarks: list[int] = []
    for number in numbers:
        _, told, *lines = (checkpoint / "offsets" / str(number)).read_text().splitlines()
        watermarks.append(json.loads(told)["batchWatermarkMs"])
        ends = {
            (topic, partition): end
            for line in lines
            if line != "-"
            for topic, partitions in json.loads(line).items()
            for partition, end in partitions.items()
        }
        read = {
            name: [
                place
                for place in sorted(found, key=lambda place: (place[2], place[1]))
                if reached.get((place[0], str(place[1])), 0)
                <= place[2]
                < ends.get((place[0], str(place[1])), 0)
            ]
            for name, found in records.items()
        }
        batches.append({name: [records[name][p] for p in read[name]] for name in read})
        places.append({name: [packed(p) for p in read[name]] for name in read})
        reached = {**reached, **ends}
    return Input(batches, watermarks, {}, places)


def expected(
    flow: hw.Flow, sink: str, given: Input, records: Mapping[str, Mapping[Place, Values]]
) -> list[tuple[Values, frozenset[tuple[str, int]]]]:
    """What the reference interpreter says of a sink: rows with their sets."""
    ids = {
        (name, values): packed(place)
        for name, found in records.items()
        for place, values in found.items()
    }
    assert len(ids) == sum(map(len, records.values())), "rows are all different"

    def identify(source: nodes.Source, values: Values) -> int:
        return ids[source.name, values]

    found = interpret(flow.sinks[sink], given, identify=identify)
    return sorted(((_plain(one.values), one.provenance) for one in found), key=repr)


def told(store: hw.Store, sink: str) -> list[tuple[Values, frozenset[tuple[str, int]]]]:
    """What a store says of a sink: rows with their sets."""
    rows = store.results(sink)
    ids = rows["result_id"].to_pylist()
    sets: dict[int, set[tuple[str, int]]] = {one: set() for one in ids}
    assert len(sets) == len(ids)
    for edge in store.backward(sink, ids, columns=False).to_pylist() if ids else ():
        sets[edge["result_id"]].add((edge["source"], edge["id"]))
    own = rows.drop_columns(["result_id", "event_time"]).to_pylist()
    return sorted(
        ((_plain(tuple(r.values())), frozenset(sets[i])) for r, i in zip(own, ids, strict=True)),
        key=repr,
    )


def _plain(value: Any) -> Any:
    """A value in a form that both sides share."""
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, dict):
        return tuple(map(_plain, value.values()))
    if hasattr(value, "fields"):
        return tuple(_plain(part) for _, part in value.fields)
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value
