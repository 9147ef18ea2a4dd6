"""Values that are no JSON, ids from a column, and records that the store keeps itself."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import TopicPartition
from pyspark.sql import SparkSession

import headwater as hw
from tests.kafka.topics import Topics, packed

pytestmark = pytest.mark.spark


def run(topics: Topics, flow: hw.Flow, capture: str = "eager") -> int:
    """Run a flow to the end of its topics; how many dead letters it told of."""
    letters: list[int] = []
    flow.start(
        store=topics.home / "store",
        capture=capture,
        available_now=True,
        on_batch=lambda info: letters.append(info.letters),
    ).wait()
    return sum(letters)


def traced(topics: Topics, source: str, column: str) -> dict[int, Any]:
    """The records behind all results of the sink `all`, by id."""
    with hw.open(topics.home / "store") as store:
        found = store.backward("all", store.results("all")["result_id"].to_pylist())
    assert set(found["source"].to_pylist()) == {source}
    return {row["id"]: row[column] for row in found.to_pylist()}


@pytest.mark.parametrize("value", ["text", "binary"])
def test_values_as_they_are(topics: Topics, spark: SparkSession, value: str) -> None:
    topic = topics.make("raw", 2)
    sent: list[bytes | None] = [b"a line", "é\n{".encode(), b"", None, b"\xff\x00"]
    places = topics.send_raw(topic, [(n % 2, one) for n, one in enumerate(sent)])
    flow = hw.Flow("raw", spark)
    kind = "string" if value == "text" else "binary"
    # Nothing is kept, so the values come from the topic once more.
    rows = topics.source(
        flow, "lines", topic, schema=f"v {kind}", options={"value": value}, keep="none"
    )
    flow.sink("all", rows)
    texts = {packed(place): one for place, one in zip(places, sent, strict=True)}
    if value == "text":
        del texts[packed(places[-1])]
        assert run(topics, flow) == 1, "what is not UTF-8"
        want: dict[int, Any] = {
            id_: None if one is None else one.decode() for id_, one in texts.items()
        }
    else:
        assert run(topics, flow) == 0
        want = dict(texts)
    assert traced(topics, "lines", "v") == want


def test_a_column_as_the_id(topics: Topics, spark: SparkSession) -> None:
    topic = topics.make("named", 2)
    topics.send(topic, [(n % 2, {"n": n, "name": f"r-{n}"}) for n in range(6)])
    flow = hw.Flow("named", spark)
    rows = topics.source(
        flow, "reports", topic, schema="n bigint, name string", id="name", keep="none"
    )
    flow.sink("all", rows.filter("n > 1"))
    run(topics, flow)
    with hw.open(topics.home / "store") as store:
        reached = store.forward("reports", "r-4")
        assert reached["n"].to_pylist() == [4]
        found = store.backward("all", reached["result_id"].to_pylist())
        assert found["name"].to_pylist() == ["r-4"], "read again from the topic, by its id"
        with pytest.raises(hw.UnknownId):
            store.forward("reports", "r-9")
    assert sorted(traced(topics, "reports", "n").values()) == [2, 3, 4, 5]


def test_kept_records_outlive_the_topic_s(topics: Topics, spark: SparkSession) -> None:
    topic = topics.make("kept", 1)
    topics.send(topic, [(0, {"n": n}) for n in range(6)])
    flow = hw.Flow("kept", spark)
    rows = topics.source(flow, "reports", topic, schema="n bigint", keep="all")
    flow.sink("all", rows.filter("n % 2 = 0").select((rows["n"] * 10).alias("tens")))
    run(topics, flow, capture="auto")
    with hw.open(topics.home / "store") as store:
        kept = store._reader.query("SELECT n FROM record_1 ORDER BY n")["n"].to_pylist()
    assert kept == list(range(6)), "also those that reached nothing"
    for done in topics.admin.delete_records([TopicPartition(topic, 0, -1)]).values():
        done.result(30)
    assert traced(topics, "reports", "n") == {packed(("", 0, n)): n for n in (0, 2, 4)}
