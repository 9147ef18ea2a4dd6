"""The publisher of provenance, to a topic of a real broker."""

from __future__ import annotations

import json
import uuid
from typing import Any

from confluent_kafka import Consumer

from headwater.prov import Emitter
from tests.support.kafka import Broker


def messages(servers: str, topic: str, count: int) -> list[tuple[bytes, dict[str, Any]]]:
    """The keys and values of a topic's first messages."""
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    try:
        read = consumer.consume(count, 30)
    finally:
        consumer.close()
    return [(one.key(), json.loads(one.value())) for one in read]


def test_what_an_emitter_tells_is_in_the_topic(kafka: Broker) -> None:
    topic = f"told-{uuid.uuid4().hex[:6]}"
    with Emitter(f"kafka:{topic}", "count", servers=kafka.servers) as emitter:
        with emitter.execution("map", name="m1") as run:
            run.used("in-1")
        emitter.end()
    told = dict(messages(kafka.servers, topic, 2))
    assert told[b"m1"]["group"][0]["entity"] == "in-1"
    assert told[b"count"] == {"type": "end", "job": "count"}
