"""The live graph as a topic: all of it, in order, and once, also after a kill."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from typer.testing import CliRunner

import headwater as hw
from headwater.cli.app import app
from headwater.query import publishing
from headwater.query.graph import EDGES, LABELS, VERTICES
from headwater.store import EmbeddedWriter
from tests.kafka.topics import Topics
from tests.live.made import fill, live_flow
from tests.store.small import sink, source
from tests.support.kafka import Broker

pytestmark = pytest.mark.spark

TABLES = {"vertex": VERTICES, "edge": EDGES, "label": LABELS}


def read(servers: str, topic: str) -> list[list[tuple[Message, dict[str, Any]]]]:
    """All that is committed in a topic, by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reading",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    found = []
    for number in sorted(consumer.list_topics(topic, 30).topics[topic].partitions):
        consumer.assign([TopicPartition(topic, number, 0)])
        found.append([(m, json.loads(m.value() or b"")) for m in _messages(consumer)])
    consumer.close()
    return found


def _messages(consumer: Consumer) -> Iterator[Message]:
    while True:
        message = consumer.poll(30)
        assert message is not None
        if message.error() is not None:
            assert message.error().name() == "_PARTITION_EOF"
            return
        yield message


def headers(message: Message) -> dict[str, str]:
    return {name: str(value, "utf-8") for name, value in message.headers() or []}


def check(servers: str, topic: str, store: hw.Store) -> int:
    """A topic has the graph of a store, each row once, in order for each key; its messages."""
    parts = read(servers, topic)
    rows: dict[str, list[dict[str, Any]]] = {what: [] for what in (*TABLES, "batch")}
    places: dict[bytes, int] = {}
    for number, part in enumerate(parts):
        last, stages = 0, dict[bytes, int]()
        for message, value in part:
            key = message.key() or b""
            told = headers(message)
            assert last <= int(told["position"]), "positions go up in a partition"
            last = int(told["position"])
            what = value.pop("what")
            assert places.setdefault(key, number) == number
            if what != "batch":
                assert told["batch"] == str(value["batch"])
                stage = list(TABLES).index(what)
                assert stage >= stages.get(key, 0), "vertex, edges, label"
                assert stage or key not in stages, "a vertex comes once"
                assert not stage or key in stages, "and first"
                stages[key] = stage
            rows[what].append(value)
    graph = store.graph()
    for what, table in zip(TABLES, (graph.vertices, graph.edges, graph.labels), strict=True):
        want = [json.loads(json.dumps(row, default=_text)) for row in table.to_pylist()]
        assert sorted(rows[what], key=repr) == sorted(want, key=repr), what
        assert want, what
    told_batches = sorted(row["position"] for row in rows["batch"])
    assert told_batches == [change.position for change in store.follow(wait=False)]
    return sum(map(len, parts))


def _text(value: Any) -> str:
    text: str = value.isoformat()
    return text


def filled(home: Path, seed: int = 1) -> Path:
    """A store with a graph of a few batches, without Spark."""
    place = home / f"store-{seed}"
    with EmbeddedWriter.open(place) as writer:
        fill(writer, seed)
    return place


@pytest.mark.parametrize("kind", ["", pytest.param("delta:", marks=pytest.mark.long)])
def test_a_flow_s_graph_goes_to_a_topic(
    topics: Topics, interpreted: SparkSession, kind: str
) -> None:
    topic, graph = topics.make("reports", 2), topics.name("graph")

    def put(*seconds: int) -> None:
        rows = [{"n": n, "ts": f"2025-01-01T00:00:{n:02}Z"} for n in seconds]
        topics.send(topic, [(row["n"] % 2, row) for row in rows])

    put(1, 2, 4, 11, 13)
    flow = hw.Flow("counted", interpreted)
    rows = topics.source(
        flow,
        "reports",
        topic,
        schema="n bigint, ts timestamp",
        event_time="ts",
        watermark="0 seconds",
        options={"maxOffsetsPerTrigger": 3, "dead_letters": "fail"},
    )
    flow.sink("counts", rows.groupBy(F.window("ts", "10 seconds", "5 seconds")).count())
    flow.sink("even", rows.filter("n % 2 = 0"))
    store = f"{kind}{topics.home / 'store'}"

    def run() -> hw.Run:
        started = flow.start(store=store, capture="eager", live=True, available_now=True)
        started.wait()
        return started

    def publish() -> int:
        kafka = ("--to-kafka", topics.servers, "--topic", graph)
        command = ["graph", store, "--follow", "--timeout", "0", *kafka, "--json"]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
        with hw.open(store) as opened:
            check(topics.servers, graph, opened)
        return len(done.output.splitlines())

    run()
    assert publish() > 1
    assert publish() == 0
    put(30)
    run().finish()
    assert publish() > 1
    with hw.open(store) as opened:
        all_ = opened.graph()
    assert all_.labels.num_rows == all_.vertices.num_rows


def test_who_publishes_later_goes_on_alone(kafka: Broker, tmp_path: Path) -> None:
    topic = Topics(kafka.servers, tmp_path).make("graph")
    with hw.open(filled(tmp_path)) as store:
        sending = store.publish_graph(topic, bootstrap=kafka.servers, wait=False)
        first = [next(sending), next(sending)]
        other = store.publish_graph(topic, bootstrap=kafka.servers, wait=False)
        assert first[-1].position + 1 == next(other).position
        with pytest.raises(hw.HeadwaterError, match="another process publishes the graph") as told:
            next(sending)
        assert "\n" not in str(told.value)
        assert len(list(other)) == 9
        sent = check(kafka.servers, topic, store)
        assert list(store.publish_graph(topic, bootstrap=kafka.servers, wait=False)) == []
        assert check(kafka.servers, topic, store) == sent


def test_a_killed_publisher_doubles_nothing(kafka: Broker, tmp_path: Path) -> None:
    topic = Topics(kafka.servers, tmp_path).make("graph", 2)
    place = filled(tmp_path)
    command = [sys.executable, "-m", "tests.kafka.publishing", str(place), kafka.servers, topic]
    for after in ("4", "1"):
        killed = subprocess.run([*command, after], check=False, timeout=120)
        assert killed.returncode == -signal.SIGKILL
    with hw.open(place) as store:
        rest = list(store.publish_graph(topic, bootstrap=kafka.servers, wait=False))
        assert [change.position for change in rest] == list(range(6, 13))
        check(kafka.servers, topic, store)


def test_topics_that_can_t_have_a_graph(
    kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = Topics(kafka.servers, tmp_path)
    strange, mine = topics.make("strange"), topics.name("mine")
    squeezed = topics.make("squeezed", **{"cleanup.policy": "compact"})
    topics.send(strange, [(1, {"n": 1})])

    def publish(store: hw.Store, topic: str) -> int:
        return len(list(store.publish_graph(topic, bootstrap=kafka.servers, wait=False)))

    with hw.open(filled(tmp_path)) as store:
        with pytest.raises(hw.HeadwaterError, match="has messages of something else"):
            publish(store, strange)
        with pytest.raises(hw.HeadwaterError, match="is compacted, which leaves only the last"):
            publish(store, squeezed)
        with monkeypatch.context() as patch:
            patient = publishing.settings
            patch.setattr(publishing, "settings", lambda *to: replace(patient(*to), timeout=0.5))
            with pytest.raises(hw.HeadwaterError, match=r"no Kafka broker answers at 127.0.0.1:1 "):
                list(store.publish_graph(mine, bootstrap="127.0.0.1:1", wait=False))
        with pytest.raises(hw.HeadwaterError, match="needs a broker"):
            store.publish_graph(mine)
        assert publish(store, mine) == 12
        gone = [TopicPartition(mine, number, -1) for number in range(3)]
        for done in topics.admin.delete_records(gone).values():
            done.result(30)
        with pytest.raises(hw.HeadwaterError, match="lost all its messages"):
            publish(store, mine)


def test_a_topic_is_of_one_flow_of_one_store(kafka: Broker, tmp_path: Path) -> None:
    topics = Topics(kafka.servers, tmp_path)
    topic = topics.make("graph")
    with EmbeddedWriter.open(tmp_path / "both") as writer:
        fill(writer, 1, 2)
        writer.register(live_flow(source("other"), sink("also"), name="other", query_id="q2"))
    with hw.open(tmp_path / "both") as store:
        with pytest.raises(hw.HeadwaterError, match="these have one: .*; name it"):
            store.publish_graph(topic, bootstrap=kafka.servers)
        name = "traffic.standing.v1"
        given: dict[str, Any] = {"bootstrap": kafka.servers, "wait": False}
        assert len(list(store.publish_graph(topic, flow=name, **given))) == 2
        with pytest.raises(hw.HeadwaterError, match=f"messages of flow '{name}' of another"):
            list(store.publish_graph(topic, flow="other", **given))


def test_what_the_store_has_forgotten_is_not_passed_over(kafka: Broker, tmp_path: Path) -> None:
    topic = Topics(kafka.servers, tmp_path).make("graph")
    place = filled(tmp_path)
    given: dict[str, Any] = {"bootstrap": kafka.servers, "wait": False}
    with hw.open(place) as store:
        sending = store.publish_graph(topic, **given)
        next(sending)
    with duckdb.connect(str(place / "headwater.duckdb")) as database:
        database.execute("INSERT OR REPLACE INTO meta VALUES ('forgotten', '3')")
    with hw.open(place) as store:
        with pytest.raises(hw.StoreError, match="forgotten batches .* with after=3 to go on"):
            list(store.publish_graph(topic, **given))
        assert next(store.publish_graph(topic, after=3, **given)).position == 4
