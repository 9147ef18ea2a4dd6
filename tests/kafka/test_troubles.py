"""What goes wrong with topics: bad messages, deleted records, kills, partitions, bad options."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from headwater.cli import doctor
from tests.kafka.topics import Topics, packed
from tests.support.kafka import Broker

pytestmark = pytest.mark.spark

BAD: list[bytes | None] = [
    b"{",
    b'{"n": "x"}',
    b'{"n": 1} and more',
    b'{"n": 1},{"n": 2}',
    b"[]",
    b"7",
    b"",
    b"\xff\xfe",
    None,
]


def run(topics: Topics, flow: hw.Flow, store: str | None = None, **more: Any) -> int:
    """Run a flow to the end of its topics; how many letters its batches told of."""
    letters: list[int] = []
    flow.start(
        store=store or topics.home / "store",
        available_now=True,
        on_batch=lambda info: letters.append(info.letters),
        **more,
    ).wait()
    return sum(letters)


@pytest.mark.parametrize("prefix", ["", "delta:"])
def test_bad_messages_become_dead_letters(topics: Topics, spark: SparkSession, prefix: str) -> None:
    topic = topics.make("mixed")
    good = topics.send(topic, [(0, {"n": 1}), (1, {"n": 2})])
    bad = topics.send_raw(topic, [(2, value) for value in BAD])
    good += topics.send(topic, [(2, {"n": 3})])
    flow = hw.Flow("mixed", spark)
    flow.sink("all", topics.source(flow, "reports", topic, schema="n bigint"))
    assert run(topics, flow, f"{prefix}{topics.home / 'store'}") == len(BAD)
    assert not list((topics.home / "store").glob("_headwater/letters/*"))
    with hw.open(f"{prefix}{topics.home / 'store'}") as store:
        found = store.backward("all", store.results("all")["result_id"].to_pylist())
    assert sorted(found["n"].to_pylist()) == [1, 2, 3]
    assert set(found["id"].to_pylist()) == set(map(packed, good))
    files = (topics.home / "store" / "dead_letters" / "mixed" / "reports").glob("*.jsonl")
    letters = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert {(one["topic"], one["partition"], one["offset"]) for one in letters} == set(bad)
    reasons = {one["offset"]: one["reason"] for one in letters}
    assert reasons[bad[-1][2]] == "it has no value"
    assert reasons[bad[-2][2]] == "its value is not UTF-8"
    assert "not a JSON object of n:bigint" in reasons[bad[0][2]]


def test_a_lake_killed_after_a_commit_keeps_no_letters_aside(
    topics: Topics, interpreted: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topics.make("aside", 1)
    topics.send_raw(topic, [(0, b'{"n": 1}'), (0, b"{")])
    flow = hw.Flow("aside", interpreted)
    flow.sink("all", topics.source(flow, "reports", topic, schema="n bigint"))
    store = f"delta:{topics.home / 'store'}"

    def end(*_: object) -> None:
        raise OSError("killed")

    with monkeypatch.context() as patched:
        patched.setattr("headwater.capture.spread.unstage", end)
        with pytest.raises(hw.RunError, match="killed"):
            run(topics, flow, store)
    aside = topics.home / "store" / "_headwater" / "letters"
    assert list(aside.iterdir()), "there must be some for this to mean anything"
    run(topics, flow, store)
    assert not list(aside.iterdir())
    (file,) = (topics.home / "store" / "dead_letters" / "aside" / "reports").iterdir()
    assert len(file.read_text().splitlines()) == 1


def test_a_flow_may_fail_at_a_bad_message(topics: Topics, spark: SparkSession) -> None:
    topic = topics.make("strict")
    topics.send_raw(topic, [(0, b"{")])
    flow = hw.Flow("strict", spark)
    options = {"dead_letters": "fail"}
    flow.sink("all", topics.source(flow, "reports", topic, schema="n bigint", options=options))
    with pytest.raises(hw.RunError, match=rf"source 'reports': message {topic}/0/0 .* decoded"):
        run(topics, flow)


def test_a_message_s_own_parts_as_columns_and_as_event_time(
    topics: Topics, spark: SparkSession
) -> None:
    topic = topics.make("parts")
    topics.send_raw(topic, [(1, b'{"n": 5}')], key=b"k", headers={"h": b"x"}, timestamp=1_000)
    flow = hw.Flow("parts", spark)
    rows = topics.source(
        flow,
        "reports",
        topic,
        schema="n bigint",
        event_time="kafka_timestamp",
        watermark="1 second",
        options={"metadata": "key,headers,offset"},
    )
    flow.sink("all", rows)
    run(topics, flow)
    with hw.open(topics.home / "store") as store:
        (row,) = store.results("all").to_pylist()
    assert row["event_time"].timestamp() == 1
    assert (row["n"], row["kafka_key"], row["kafka_offset"]) == (5, b"k", 0)
    assert row["kafka_headers"] == [{"key": "h", "value": b"x"}]


def test_results_go_to_a_topic(topics: Topics, spark: SparkSession) -> None:
    topic, out = topics.make("in"), topics.make("out", 1)
    placed = topics.send(topic, [(0, {"n": 1}), (1, {"n": None})])
    flow = hw.Flow("handed", spark)
    rows = topics.source(flow, "reports", topic, schema="n bigint")
    servers = {"kafka.bootstrap.servers": topics.servers}
    flow.sink("all", rows, write=hw.to_kafka(out, servers, origins=2))
    with pytest.raises(hw.RunError, match="origins=2.* needs the ids"):
        run(topics, flow, capture="intervals")
    run(topics, flow, capture="eager")
    back = hw.Flow("back", spark)
    given = topics.source(
        back, "given", out, schema="n bigint", options={"metadata": "key,headers"}
    )
    back.sink("all", given)
    run(topics, back)
    with hw.open(topics.home / "store") as store:
        sent = {str(r["result_id"]): r["n"] for r in store.results("handed/all").to_pylist()}
        came = store.results("back/all").to_pylist()
    assert {row["kafka_key"].decode(): row["n"] for row in came} == sent
    for row in came:
        headers = {one["key"]: one["value"] for one in row["kafka_headers"]}
        assert headers["result_id"] == row["kafka_key"]
        origin = packed(placed[0 if row["n"] == 1 else 1])
        assert json.loads(headers["headwater.origins"]) == {
            "reports": {"count": 1, "ids": [origin]}
        }


@pytest.mark.parametrize("prefix", ["", "delta:"])
def test_origins_in_a_message_are_cut_and_counted(
    topics: Topics, spark: SparkSession, prefix: str
) -> None:
    topic, out = topics.make("many", 1), topics.make("summed", 1)
    topics.send(topic, [(0, {"n": n, "ts": f"2025-01-01T00:00:{n:02}Z"}) for n in range(5)])
    topics.send(topic, [(0, {"n": 9, "ts": "2025-01-01T01:00:00Z"})])
    flow = hw.Flow("summed", spark)
    rows = topics.source(
        flow,
        "reports",
        topic,
        schema="n bigint, ts timestamp",
        event_time="ts",
        watermark="0 seconds",
    )
    summed = rows.groupBy(F.window("ts", "1 minute")).agg(F.sum("n").alias("s"))
    servers = {"kafka.bootstrap.servers": topics.servers}
    flow.sink("all", summed, write=hw.to_kafka(out, servers, origins=2))
    run(topics, flow, f"{prefix}{topics.home / 'store'}", capture="eager")
    raw = spark.read.format("kafka").options(**servers, subscribe=out, includeHeaders="true").load()
    (message,) = raw.collect()
    told = json.loads({one.key: one.value for one in message.headers}["headwater.origins"])
    assert told["reports"]["count"] == 5
    assert len(told["reports"]["ids"]) == 2
    assert set(told["reports"]["ids"]) <= {packed(("", 0, offset)) for offset in range(5)}


def test_partitions_that_are_added_are_read(topics: Topics, spark: SparkSession) -> None:
    topic = topics.make("grows", 1)
    flow = hw.Flow("grows", spark)
    options = {"kafka.metadata.max.age.ms": "500"}
    flow.sink("all", topics.source(flow, "reports", topic, schema="n bigint", options=options))
    places = topics.send(topic, [(0, {"n": 0})])
    with flow.start(store=topics.home / "store", capture="intervals", trigger="200 milliseconds"):
        _until(topics.home / "store", "all", 1)
        topics.add_partitions(topic, 3)
        time.sleep(2)
        places += topics.send(topic, [(1, {"n": 1}), (2, {"n": 2}), (0, {"n": 3})])
        _until(topics.home / "store", "all", 4)
    with hw.open(topics.home / "store") as store:
        ids = store.results("all")["result_id"].to_pylist()
        found = store.backward("all", ids)
    assert {r["n"]: r["id"] for r in found.to_pylist()} == dict(enumerate(map(packed, places)))


def _until(store: Path, sink: str, count: int) -> None:
    end = time.monotonic() + 90
    while time.monotonic() < end:
        if (store / "headwater.duckdb").exists():
            try:
                with hw.open(store) as opened:
                    if opened.results(sink).num_rows >= count:
                        return
            except hw.HeadwaterError:
                pass
        time.sleep(0.3)
    raise AssertionError(f"{sink} did not get {count} results")


def test_topics_keep_their_numbers(topics: Topics, spark: SparkSession) -> None:
    one, two = topics.make("one", 1), topics.make("two", 1)
    topics.send(one, [(0, {"n": 1})])
    placed = topics.send(two, [(0, {"n": 2})])

    def flow(subscribed: str) -> hw.Flow:
        made = hw.Flow("numbers", spark)
        made.sink("all", topics.source(made, "reports", subscribed, schema="n bigint"))
        return made

    run(topics, flow(one))
    with pytest.raises(hw.StoreError, match="name them first and in this order"):
        run(topics, flow(f"{two},{one}"))
    run(topics, flow(f"{one},{two}"))
    with hw.open(topics.home / "store") as store:
        assert store.forward("reports", placed[0])["n"].to_pylist() == [2]
        found = store.backward("all", store.results("all")["result_id"].to_pylist())
    assert {r["n"]: r["id"] for r in found.to_pylist()} == {1: 0, 2: packed(placed[0], number=1)}


def test_deleted_records_are_told(topics: Topics, spark: SparkSession) -> None:
    topic = topics.make("short", 1)
    topics.send(topic, [(0, {"n": n}) for n in range(6)])
    flow = hw.Flow("short", spark)
    rows = topics.source(flow, "reports", topic, schema="n bigint", keep="none")
    flow.sink("all", rows)
    run(topics, flow, capture="eager")
    topics.send(topic, [(0, {"n": n}) for n in range(6, 9)])
    gone = TopicPartition(topic, 0, 8)
    for done in topics.admin.delete_records([gone]).values():
        done.result(30)
    with hw.open(topics.home / "store") as store:
        ids = store.results("all")["result_id"].to_pylist()
        assert len(store.backward("all", ids, columns=False)) == 6
        with pytest.raises(hw.StoreError, match=r"6 records .* no longer in topic short") as error:
            store.backward("all", ids)
        assert "\n" not in str(error.value)
    with pytest.raises(hw.RunError, match="were deleted before they were read") as failed:
        run(topics, flow, capture="eager")
    assert "\n" not in str(failed.value)


@pytest.mark.long
def test_without_the_connector_a_line_says_how_to_get_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.kafka.job", str(tmp_path), "127.0.0.1:1", "t"]
    environment = {k: v for k, v in os.environ.items() if k != "HEADWATER_KAFKA_JARS"}
    done = subprocess.run(
        command, env=environment, check=False, timeout=300, capture_output=True, text=True
    )
    assert done.returncode == 1
    said = done.stderr.strip().splitlines()[-1]
    assert "Spark's connector to Kafka is missing: set HEADWATER_KAFKA_JARS" in said


@pytest.mark.parametrize(
    ("how", "seconds"),
    [
        ("frozen", 3),
        pytest.param("killed", 1, marks=pytest.mark.long),
        pytest.param("killed", 60, marks=pytest.mark.long),
    ],
)
def test_a_flow_waits_for_a_broker_that_is_away(
    topics: Topics, kafka: Broker, interpreted: SparkSession, how: str, seconds: int
) -> None:
    topic = topics.make("falls")
    topics.send(topic, [(n % 3, {"n": n}) for n in range(9)])
    flow = hw.Flow("falls", interpreted)
    flow.sink("all", topics.source(flow, "reports", topic, schema="n bigint"))
    with flow.start(store=topics.home / "store", trigger="200 milliseconds") as running:
        _until(topics.home / "store", "all", 9)
        kafka.signal(signal.SIGSTOP if how == "frozen" else signal.SIGKILL)
        try:
            time.sleep(seconds)
            assert running.active
        finally:
            kafka.signal(signal.SIGCONT) if how == "frozen" else kafka.restart()
        topics.send(topic, [(n % 3, {"n": n}) for n in range(9, 18)])
        _until(topics.home / "store", "all", 18)
    with hw.open(topics.home / "store") as store:
        assert sorted(store.results("all")["n"].to_pylist()) == list(range(18))


@pytest.mark.long
def test_a_kill_between_the_store_and_spark_doubles_nothing(topics: Topics, kafka: Broker) -> None:
    topic = topics.make("killed")
    topics.send(topic, [(n % 3, {"n": n}) for n in range(45)])
    environment = {**os.environ, "HEADWATER_KAFKA_JARS": kafka.jars}
    command = [sys.executable, "-m", "tests.kafka.job", str(topics.home), kafka.servers, topic]
    killed = subprocess.run([*command, "1"], env=environment, check=False, timeout=300)
    assert killed.returncode == -signal.SIGKILL
    subprocess.run(command, env=environment, check=True, timeout=300)
    with hw.open(topics.home / "store") as store:
        assert sorted(store.results("all")["n"].to_pylist()) == list(range(45))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"subscribePattern": "a.*"}, "name them"),
        ({"subscribe": "a", "failOnDataLoss": "false"}, "lose records silently"),
        ({"subscribe": "a", "kafka.sasl.jaas.config": "x"}, "is a secret"),
        ({"subscribe": "a", "value": "xml"}, "is not one of json, text, binary"),
        ({"subscribe": "a,a"}, "named twice"),
        ({}, "needs its topics"),
        ({"subscribe": "a", "metadata": "size"}, "has no 'size'"),
    ],
)
def test_bad_options_are_refused_in_a_line(
    flow: hw.Flow, options: dict[str, str], said: str
) -> None:
    servers = {"kafka.bootstrap.servers": "127.0.0.1:1"}
    with pytest.raises(hw.FlowError, match=said) as error:
        flow.source("r", format="kafka", schema="n bigint", options={**servers, **options})
    assert "\n" not in str(error.value)


def test_doctor_looks_at_a_broker(topics: Topics, spark: SparkSession) -> None:
    assert doctor.answers(topics.servers).ok
    assert doctor.connector().ok
    assert not doctor.answers("127.0.0.1:1", timeout=1).ok
