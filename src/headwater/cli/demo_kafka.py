"""The demo on Kafka: a broker of its own, reports in a topic, alerts to another."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from headwater.errors import HeadwaterError
from headwater.session import KAFKA_JARS

if TYPE_CHECKING:
    from headwater import Flow

SCRIPT = Path(__file__).parents[3] / "scripts" / "kafka"
"""What starts a broker, in a checkout of Headwater."""
PARTITIONS = 3
_WAIT = 900
"""Seconds that it may take, with all jars to be fetched."""


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker that was started for the demo."""

    servers: str

    def fill(self, data: Path, topic: str) -> int:
        """Put the reports of a folder into a topic, those of a vehicle in order; how many."""
        from headwater.streams.json_events import encode
        from headwater.streams.kafka_client import administration, library

        servers = {"bootstrap.servers": self.servers}
        new = administration().NewTopic(topic, PARTITIONS, 1)
        admin = administration().AdminClient(servers)  # held until it has answered
        admin.create_topics([new])[topic].result(60)
        producer, reports = library().Producer({**servers, "linger.ms": 20}), pq.read_table(data)
        vehicles = reports["vid"].to_pylist()
        for vehicle, report in zip(vehicles, encode(reports), strict=True):
            while True:
                try:
                    producer.produce(topic, report, str(vehicle).encode())
                    break
                except BufferError:
                    producer.poll(0.1)
        if producer.flush(60):
            raise HeadwaterError(f"the broker at {self.servers} did not take all reports")
        return int(reports.num_rows)

    def flow(self, topic: str, alerts: str, per_batch: int) -> Flow:
        """Stopped vehicles from a topic, with the alerts to another."""
        import headwater as hw
        from headwater.examples import linear_road

        options = {"kafka.bootstrap.servers": self.servers}
        made = hw.Flow("traffic")
        reports = made.source(
            linear_road.SOURCE,
            format="kafka",
            options={**options, "subscribe": topic, "maxOffsetsPerTrigger": str(per_batch)},
            schema=linear_road.SCHEMA,
            event_time="ts",
            # Between partitions there is no order: some are read a little ahead of others.
            watermark="1 minute",
            id="tid",
        )
        write = hw.to_kafka(alerts, options, origins=10)
        made.sink("stopped", linear_road.stopped(reports), write=write)
        return made

    def count(self, topic: str) -> int:
        """How many messages a topic has."""
        from headwater.streams.kafka_client import library

        kafka = library()
        consumer = kafka.Consumer({"bootstrap.servers": self.servers, "group.id": "headwater-demo"})
        try:
            found = consumer.list_topics(topic, 60).topics[topic].partitions
            ends = (
                consumer.get_watermark_offsets(kafka.TopicPartition(topic, n), 60) for n in found
            )
            return sum(high - low for low, high in ends)
        finally:
            consumer.close()


def require_broker() -> None:
    """Say what a broker for the demo needs, where it is not there."""
    from headwater.streams.kafka_client import library

    library()
    if not SCRIPT.is_file():
        raise HeadwaterError(
            "--kafka starts a broker with scripts/kafka, which is in the repository: run it in a "
            "checkout, or without --kafka"
        )


@contextmanager
def broker(folder: Path) -> Iterator[Broker]:
    """A broker on this machine with its data in a folder, for as long as the block runs."""
    from headwater.streams.kafka_client import SERVERS

    place = folder / "kafka"
    given = {KAFKA_JARS: ",".join(_script("jars").split())}
    given[SERVERS] = _script("start", str(place), str(os.getpid())).strip()
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield Broker(given[SERVERS])
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        _script("stop", str(place))


def _script(*arguments: str) -> str:
    """What the script says, whatever signals this process gets meanwhile."""
    done = subprocess.run(
        [str(SCRIPT), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=_WAIT,
        start_new_session=True,
    )
    if done.returncode:
        told = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise HeadwaterError(f"no broker for the demo: {told[-1]}")
    return done.stdout
