"""Streams on Kafka topics, with a broker of the tests' own."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import headwater as hw
from headwater import streams
from headwater.cli.streams import app
from headwater.compose.kinds import Filter
from headwater.deploy.units.feeding import Feeder, first_since, latest_time
from headwater.streams import SchemaClash, StreamError, StreamRemoved, Streams
from headwater.streams.errors import LogUnreachable
from headwater.streams.json_events import decode, encode
from headwater.streams.positions import Position
from headwater.streams.schema import parse as schema
from tests.deploy import support
from tests.streams.job import SIZE
from tests.support.kafka import broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NUMS = "n bigint, at timestamp, k string, v bigint"


class Kafka:
    """A broker that runs, and topics that nobody has used."""

    def __init__(self, servers: str, folder: Path) -> None:
        self.servers, self._folder = servers, folder
        self._numbers = itertools.count()

    def topic(self) -> str:
        """A new name."""
        return f"topic-{next(self._numbers)}"

    def create(self, opened: Streams, name: str, ddl: str, **given: Any) -> str:
        """A stream on a topic of its own."""
        topic, options = self.topic(), given.pop("options", {})
        options = {"bootstrap": self.servers, **options}
        opened.create(name, ddl, log=f"kafka:{topic}", options=options, **given)
        return topic

    @contextmanager
    def silent(self) -> Iterator[None]:
        """The broker answers nobody."""
        process = int((self._folder / "pid").read_text())
        os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(process, signal.SIGCONT)

    @cached_property
    def admin(self) -> Any:
        """What makes topics."""
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.servers, "log_level": 0})

    def topics(self) -> set[str]:
        """What topics there are."""
        return set(self.admin.list_topics(timeout=10).topics)

    def make(self, topic: str, partitions: int) -> None:
        """A topic that is not Headwater's."""
        from confluent_kafka.admin import NewTopic

        self.admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()

    def write(self, topic: str, *texts: bytes | None) -> None:
        """Others write without transactions."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.servers, "log_level": 0})
        for text in texts:
            producer.produce(topic, text, partition=0)
        assert producer.flush(10) == 0

    def messages(self, topic: str, number: int) -> list[Any]:
        """What others read."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(
            {"bootstrap.servers": self.servers, "group.id": "others", "log_level": 0}
        )
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = consumer.consume(number, 10)
        consumer.close()
        return found


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    folder = tmp_path_factory.mktemp("kafka") / "broker"
    with broker(folder) as running:
        yield Kafka(running.servers, folder)


@pytest.fixture
def nums(opened: Streams, kafka: Kafka) -> Streams:
    """A streams folder with a stream `nums` on Kafka."""
    kafka.create(opened, "nums", NUMS, event_time="at", id="n")
    return opened


def event(n: int) -> dict[str, Any]:
    return {"n": n, "at": NOON + timedelta(seconds=n), "k": "ab"[n % 2], "v": n * n}


def numbers(opened: Streams, name: str = "nums", column: str = "n") -> list[int]:
    return list(opened.table(name)[column].to_pylist())


def test_any_value_is_the_same_after_json() -> None:
    made = schema(
        "a bigint not null, b double, c binary, d date, t timestamp not null, u timestamp_ntz, "
        "e decimal(9,2), l array<timestamp>, s struct<x: binary, y: double>, "
        "m map<string, timestamp>, i map<bigint, boolean>, w string"
    )
    full = {
        "a": 1,
        "b": float("-inf"),
        "c": b"\x00\xff",
        "d": NOON.date(),
        "t": NOON,
        "u": datetime(2026, 1, 1, 0, 0, 0, 5),
        "e": Decimal("12.50"),
        "l": [NOON, None],
        "s": {"x": b"x", "y": 0.1},
        "m": [("k", NOON)],
        "i": [(7, True)],
        "w": 'ü"\n\u2028',
    }
    table = pa.Table.from_pylist([full, {"a": -(2**63), "t": NOON}], schema=made)
    texts = encode(table)
    assert all(json.loads(text) for text in texts)
    read, reasons = decode(texts, made)
    assert reasons == {}
    assert read.equals(table)


def test_publish_read_describe_and_expire(nums: Streams, kafka: Kafka) -> None:
    first = nums.publish("nums", [event(0), event(1)])
    second = nums.publish("nums", [event(n) for n in range(2, 5)])
    assert (first.events, second.events) == (2, 3)
    assert numbers(nums) == [0, 1, 2, 3, 4]
    assert nums.table("nums").to_pylist()[3] == event(3)
    batches = list(nums.read("nums"))
    places = [int(b.start) + n for b in batches for n in range(len(b.table))]
    assert places == [*range(2), *range(int(second.start), int(second.end))]
    # From each position on, just what lies after it.
    _, end = nums.log("nums").bounds()
    for at in range(int(end) + 1):
        after = nums.table("nums", start=at)["n"].to_pylist()
        before = nums.table("nums", end=at)["n"].to_pylist()
        assert before + after == [0, 1, 2, 3, 4]
        assert len(after) == sum(place >= at for place in places)
    told = nums.describe("nums")
    assert (told.state, told.events, told.at_most) == ("live", 5, False)
    assert (told.last_event, told.last_time) == (event(4), event(4)["at"])
    assert sum(told.rates) == 5
    log = nums.log("nums")
    assert log.at(0) == Position.of(0)
    assert log.at(int(time.time() * 1_000) + 60_000) == end
    assert log.size() > 0
    assert nums.expire("nums", str(second.start)) == 2
    assert numbers(nums) == [2, 3, 4]
    with pytest.raises(StreamError, match=f"before position {second.start} have expired"):
        list(nums.read("nums", 0))
    assert nums.describe("nums").events == 3


def test_others_read_and_write_the_topic(opened: Streams, kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.make(topic, 1)
    kafka.write(topic, b'{"n": 1, "at": "2026-01-01T12:00:00Z", "more": [1]}')
    opened.create(
        "nums", "n bigint, at timestamp", log=f"kafka:{topic}", options={"bootstrap": kafka.servers}
    )
    node = streams.Producer("weather/storms", "flow", version=3)
    opened.publish("nums", {"n": 2, "at": NOON}, producer=node, consent=True)
    written = kafka.messages(topic, 2)[1]
    assert json.loads(written.value()) == {"n": 2, "at": "2026-01-01T12:00:00.000000Z"}
    assert dict(written.headers()) == {
        "headwater.producer": b"flow weather/storms",
        "headwater.version": b"3",
    }
    kafka.write(topic, b"nonsense", b'{"n": "x"}', None, b'{"n": 3}', b"[]")
    rows = opened.table("nums").to_pylist()
    assert [(row["n"], row["at"]) for row in rows] == [(1, NOON), (2, NOON), (3, None)]
    places = [int(b.start) + n for b in opened.read("nums") for n in range(len(b.table))]
    assert places == [0, 1, 6]
    assert numbers(opened) == [1, 2, 3]
    letters = list(opened.letters("nums").read())
    assert sorted(letter["where"] for letter in letters) == [f"offset {n}" for n in (3, 4, 5, 7)]
    assert opened.describe("nums").last_event == {"n": 3, "at": None}
    with opened.subscribe("nums", consumer="c", idle=0) as batches:
        assert [n for b in batches for n in b.table["n"].to_pylist()] == [1, 2, 3]
        batches.done()
    assert opened.describe("nums").consumers[0].lag == 0, "nothing of it is left to be read"
    kafka.write(topic, b"nonsense")
    with opened.subscribe("nums", consumer="c", idle=0) as batches:
        assert [len(b.table) for b in batches] == [0]
        batches.done()
    assert opened.consumers("nums")[0].position == opened.log("nums").bounds()[1]
    opened.remove("nums", force=True)
    assert topic in kafka.topics(), "it is not Headwater's"


def test_topics_come_and_go_with_their_streams(opened: Streams, kafka: Kafka) -> None:
    topic = kafka.create(opened, "nums", NUMS)
    assert {topic, f"{topic}.keys"} <= kafka.topics()
    with pytest.raises(StreamError, match=f"topic '{topic}' is stream 'nums' already"):
        opened.create("more", NUMS, log=f"kafka:{topic}", options={"bootstrap": kafka.servers})
    with pytest.raises(StreamError, match="stream 'nums' is there already"):
        kafka.create(opened, "nums", NUMS)
    opened.publish("nums", event(1))
    log, follower = opened.log("nums"), opened.subscribe("nums")
    assert next(follower).table.num_rows == 1
    opened.remove("nums", force=True)
    for use in (log.bounds, log.last, lambda: next(follower)):
        with pytest.raises(StreamRemoved, match="stream 'nums' in .* was removed"):
            use()
    follower.close()
    deadline = time.monotonic() + 10
    while {topic, f"{topic}.keys"} & kafka.topics():
        assert time.monotonic() < deadline
    wide = kafka.topic()
    kafka.make(wide, 3)
    with pytest.raises(StreamError, match=f"topic '{wide}' of stream 'w' has 3 partitions"):
        opened.create("w", NUMS, log=f"kafka:{wide}", options={"bootstrap": kafka.servers})
    assert opened.names() == []


def test_what_is_wrong_is_told(
    nums: Streams, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SchemaClash, match="column 'n' of stream 'nums' is bigint, not string"):
        nums.publish("nums", {"n": "three"})
    with pytest.raises(SchemaClash, match="column 'extra' is not in stream 'nums'"):
        nums.publish("nums", {"extra": 3})
    with pytest.raises(StreamError, match="an event of 2,.* bytes as JSON is too large"):
        nums.publish("nums", [event(0), {"n": 1, "k": "x" * 2_000_000}])
    assert numbers(nums) == []
    assert nums.publish("nums", event(0)).events == 1
    nums.stop("nums")
    with pytest.raises(StreamError, match="stream 'nums' is stopped"):
        nums.publish("nums", event(1))
    nums.resume("nums")
    with pytest.raises(StreamError, match="option 'speed' .* is none of bootstrap, config"):
        kafka.create(nums, "more", NUMS, options={"speed": "high"})
    with pytest.raises(StreamError, match="needs the option bootstrap=HOST:PORT, or the variable"):
        nums.create("more", NUMS, log="kafka:more")
    with pytest.raises(LogUnreachable, match=r"no Kafka broker answers at 127\.0\.0\.1:1 within"):
        kafka.create(nums, "more", NUMS, options={"bootstrap": "127.0.0.1:1", "timeout": "1"})
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(StreamError, match=r"pip install 'headwater\[kafka\]'"):
        nums.log("nums")


def test_on_the_command_line(tmp_path: Path, kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_KAFKA", kafka.servers)
    monkeypatch.setenv("HEADWATER_STREAMS", str(tmp_path / "streams"))
    words = ["create", "nums", "--schema", "n bigint", "--log", f"kafka:{kafka.topic()}"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    monkeypatch.delenv("HEADWATER_KAFKA")  # the stream knows it from now on
    streams.open().publish("nums", [{"n": n} for n in range(3)])
    shown = CliRunner().invoke(app, ["show", "nums"])
    assert f"bootstrap={kafka.servers}" in shown.output
    assert "3 (positions 0 to 3)" in shown.output


def test_what_was_published_can_be_read_at_once(nums: Streams) -> None:
    for n in range(40):
        nums.publish("nums", event(n))
        last = nums.log("nums").last()
        assert last is not None
        assert last.table["n"].to_pylist() == [n]


def test_consumers_and_keys(nums: Streams) -> None:
    for batch in range(3):
        assert nums.publish("nums", event(batch), key=("query", batch)).events == 1
        assert nums.publish("nums", event(batch), key=("query", batch)).events == 0
    assert nums.publish("nums", event(1), key=("query", 1)).events == 0
    assert nums.publish("nums", event(9), key="job").events == 1
    assert streams.open(nums.folder).publish("nums", event(9), key="job").events == 0
    assert nums.log("nums").number("query") == 2
    assert nums.log("nums").number("nobody") is None
    assert numbers(nums) == [0, 1, 2, 9]
    with nums.subscribe("nums", consumer="dashboard", idle=0) as batches:
        next(batches)
        batches.done()
    (lag,) = nums.describe("nums").consumers
    assert lag.lag == 3
    with nums.subscribe("nums", consumer="dashboard", idle=0) as batches:
        assert [n for b in batches for n in b.table["n"].to_pylist()] == [1, 2, 9]
        batches.done()
    (lag,) = nums.describe("nums").consumers
    assert (lag.lag, lag.at_most) == (0, False)
    with nums.publisher("nums", size=100) as publisher:
        for n in range(250):
            publisher.send(event(n))
        publisher.send({"n": "many"})
    assert (publisher.published, publisher.rejected) == (250, 1)
    assert nums.describe("nums").events == 254


def test_who_has_read_all_that_the_broker_deletes_has_lost_nothing(
    opened: Streams, kafka: Kafka
) -> None:
    from confluent_kafka import TopicPartition

    def delete() -> None:  # with the marks of transactions
        for done in kafka.admin.delete_records([TopicPartition(topic, 0, -1)]).values():
            done.result()

    topic = kafka.create(opened, "nums", NUMS)
    opened.publish("nums", [event(0), event(1)])
    opened.advance("nums", "quick", 2)
    opened.advance("nums", "slow", 1)
    delete()
    assert [lag.lag for lag in opened.describe("nums").consumers] == [0, 0]
    assert opened.describe("nums").events == 0
    opened.publish("nums", event(2))
    opened.publish("nums", event(3))
    with opened.subscribe("nums", consumer="quick", idle=0) as batches:
        assert [n for b in batches for n in b.table["n"].to_pylist()] == [2, 3]
    with (
        opened.subscribe("nums", consumer="slow", idle=0) as batches,
        pytest.raises(StreamError, match="before position 2 have expired; read from 2 on"),
    ):
        next(batches)
    assert numbers(opened) == [2, 3]


def start(folder: Path, writer: str, batches: int, *kill: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.streams.kafka_job", folder, writer, batches, *kill]
    return subprocess.Popen(
        [str(word) for word in command], stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
    )


def acknowledged(process: subprocess.Popen[str]) -> int:
    out, _ = process.communicate(timeout=60)
    return len(out.splitlines())


@pytest.mark.parametrize("point", ["begun", "sent", "committed", "over"])
def test_a_publisher_killed_in_a_transaction(opened: Streams, kafka: Kafka, point: str) -> None:
    kafka.create(opened, "numbers", "number bigint")
    killed = start(opened.folder, "job", 3, point, 1)
    assert acknowledged(killed) == 1
    assert killed.returncode == -signal.SIGKILL
    # The next publisher waits for no timeout of the dead one's transaction.
    before = time.monotonic()
    assert opened.publish("numbers", {"number": -1}, key="other").events == 1
    there = numbers(opened, "numbers", "number")
    assert time.monotonic() - before < 8
    done = (1 + (point in ("committed", "over"))) * SIZE
    assert there == [*range(done), -1]
    assert acknowledged(start(opened.folder, "job", 3)) == 3
    assert numbers(opened, "numbers", "number") == [*range(done), -1, *range(done, 3 * SIZE)]


def test_processes_publish_at_once_under_the_same_keys(opened: Streams, kafka: Kafka) -> None:
    kafka.create(opened, "numbers", "number bigint")
    same = [start(opened.folder, "job", 15) for _ in range(2)]
    other = start(opened.folder, "else", 15)
    victim = start(opened.folder, "job", 15)
    assert victim.stdout is not None
    victim.stdout.readline()
    time.sleep(0.02)
    os.kill(victim.pid, signal.SIGKILL)
    victim.communicate()
    assert [acknowledged(each) for each in [*same, other]] == [15] * 3
    found = numbers(opened, "numbers", "number")
    assert sorted(found) == sorted(2 * list(range(15 * SIZE)))
    assert opened.describe("numbers").events == 30 * SIZE


def test_a_forked_child_has_connections_of_its_own(nums: Streams) -> None:
    nums.publish("nums", event(0))
    reading = nums.read("nums")
    next(reading)
    child = os.fork()
    if not child:
        code = 1
        try:
            del reading
            nums.publish("nums", event(1))
            code = 0 if numbers(nums) == [0, 1] else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    nums.publish("nums", event(2))
    assert numbers(nums) == [0, 1, 2]


def test_a_broker_that_does_not_answer(opened: Streams, kafka: Kafka, tmp_path: Path) -> None:
    kafka.create(opened, "nums", NUMS, options={"timeout": "1"})
    opened.publish("nums", event(0), key=("query", 0))
    feeder = Feeder(opened, "nums", tmp_path / "inputs", 0)
    with kafka.silent():
        for use in (
            lambda: opened.publish("nums", event(1), key=("query", 1)),
            lambda: opened.describe("nums"),
            lambda: opened.table("nums"),
        ):
            before = time.monotonic()
            with pytest.raises(LogUnreachable, match="within 1 s; start it") as told:
                use()
            assert "\n" not in str(told.value)
            assert time.monotonic() - before < 6
        assert feeder.feed() == 0
        assert feeder.trouble is not None
        opened.create("near", NUMS)
        told = {each.name: each.state for each in opened.describe_all()}
        assert told == {"near": "idle", "nums": "unreachable"}, "the others are told"
    # It is back: what was in doubt is published again, and is there once.
    deadline = time.monotonic() + 30
    while True:
        try:
            opened.publish("nums", event(1), key=("query", 1))
            break
        except LogUnreachable:
            assert time.monotonic() < deadline
    assert numbers(opened) == [0, 1]
    while feeder.feed() == 0:
        assert time.monotonic() < deadline
    assert feeder.trouble is None


def test_a_query_is_fed_with_files(
    nums: Streams, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "inputs"

    def fed() -> list[int]:
        return [
            n for f in sorted(folder.glob("*.parquet")) for n in pq.read_table(f)["n"].to_pylist()
        ]

    for n in range(0, 12, 3):
        nums.publish("nums", [event(n + place) for place in range(3)])
    feeder = Feeder(nums, "nums", folder, 4)  # in the second transaction
    feeder.until = 6
    assert feeder.feed() == 2
    assert fed() == [3, 4]
    (folder / ".00000000000000000008.parquet").write_bytes(b"half")  # of one that was killed
    feeder = Feeder(nums, "nums", folder, 4)
    assert feeder.position == 6
    with monkeypatch.context() as patched:
        patched.setattr(
            "time.time_ns", lambda: 1_000_000_000 * int(NOON.timestamp())
        )  # stands still
        assert feeder.feed() == 7
    assert feeder.feed() == 0
    assert fed() == list(range(3, 12))
    files = sorted(folder.glob("*.parquet"))
    assert feeder.after(files[-1].name) == feeder.position == feeder.end
    times = [file.stat().st_mtime_ns // 1_000_000 for file in files]
    assert all(a < b for a, b in itertools.pairwise(times))
    at = {n: int(event(n)["at"].timestamp()) * 1_000_000 for n in range(13)}
    assert latest_time(folder, "at") == at[11]
    log = nums.log("nums")
    assert [first_since(nums, "nums", 0, "at", at[n]) for n in (0, 5, 6)] == [0, 4, 8]
    assert first_since(nums, "nums", 0, "at", at[12]) == int(log.bounds()[1])


def test_a_deployment_reads_a_topic(tmp_path: Path, kafka: Kafka, spark: SparkSession) -> None:
    flow = support.parse(
        "kafka",
        """
        some: {filter: {from: nums, where: n % 2 = 0}}
        out: {sink: {from: some, stream: out}}
        """,
    )
    with support.host_of(tmp_path, spark) as host:
        kafka.create(host.streams, "nums", NUMS, event_time="at", id="n")
        deployment = host.deploy(flow)
        support.publish(host, 0, 10)
        support.settle(host)
        node = flow["some"]
        assert isinstance(node, Filter)
        host.deploy(flow.replace("some", replace(node, where="n % 2 = 0 or n % 3 = 0")))
        assert support.ids(deployment) == ["some@2"]
        support.publish(host, 10, 20)
        support.settle(host)
    with support.host_of(tmp_path, spark) as host:  # another process would go on like this
        support.publish(host, 20, 30)
        support.settle(host)
        wanted = [n for n in range(30) if n % 2 == 0 or (n >= 10 and n % 3 == 0)]
        made = support.rows(host, "out")
        assert sorted(row["n"] for row in made) == wanted
        with hw.open(host.store) as store:
            for row in made:
                assert support.came_from(store, "out", row) == {row["n"]}
        (lag,) = [
            c for c in host.streams.describe("nums").consumers if c.consumer == "kafka.some.v2"
        ]
        assert lag.lag == 0
