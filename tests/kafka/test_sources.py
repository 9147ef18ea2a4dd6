"""Topics as sources of flows: ids, columns, captures and reading again, on a broker."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from tests.kafka.topics import Place, Topics, Values, expected, packed, recorded, told
from tests.support import amount, full
from tests.support.streams import ask_by

pytestmark = pytest.mark.spark
T0 = datetime(2025, 1, 1, tzinfo=UTC)
SCHEMA = "n bigint, ts timestamp, k int, v int"
Records = dict[str, dict[Place, Values]]


def put(topics: Topics, topic: str, count: int, seed: int) -> dict[Place, Values]:
    """Rows in the partitions of a topic, out of order and sometimes late."""
    rnd = random.Random(seed)
    rows: list[Values] = []
    for n in range(count):
        late = rnd.randint(20, 60) if rnd.random() < 0.1 else rnd.randint(0, 8)
        ts = T0 + timedelta(seconds=n - late)
        rows.append((n, ts, rnd.randint(0, 2), rnd.randint(0, 9)))
    names = ("n", "ts", "k", "v")
    sent = [(rnd.randint(0, 2), dict(zip(names, row, strict=True))) for row in rows]
    return dict(zip(topics.send(topic, sent), rows, strict=True))


def build(topics: Topics, spark: SparkSession, names: dict[str, str]) -> hw.Flow:
    """A filter, a window aggregate and a join over two topics."""
    flow = hw.Flow("traffic", spark)
    given: dict[str, Any] = {
        "schema": SCHEMA,
        "event_time": "ts",
        "watermark": "5 seconds",
        "options": {"maxOffsetsPerTrigger": 30},
    }
    reports = topics.source(flow, "reports", names["reports"], **given)
    tolls = topics.source(flow, "tolls", names["tolls"], **given)
    flow.sink("fast", reports.filter("v > 6").select("n", "k"))
    counted = reports.groupBy("k", F.window("ts", "10 seconds")).agg(F.count("*").alias("c"))
    flow.sink("counted", counted)
    left = reports.select("n", "k", F.col("ts").alias("at")).alias("l")
    right = tolls.select(F.col("n").alias("m"), F.col("k").alias("j"), "ts").alias("r")
    on = "k = j and ts >= at - interval 3 seconds and ts <= at + interval 3 seconds"
    flow.sink("joined", left.join(right, F.expr(on)))
    return flow


def test_flows_over_topics_equal_the_reference_interpreter_in_every_capture(
    topics: Topics, spark: SparkSession
) -> None:
    names = {"reports": topics.make("reports"), "tolls": topics.make("tolls")}
    records = {
        "reports": put(topics, names["reports"], amount(90, 240), 1),
        "tolls": put(topics, names["tolls"], amount(45, 120), 2),
    }
    # A run in `ancestors` of its own is for full runs; its rule is asked of that in `intervals`.
    for capture in ("eager", "intervals", *(["ancestors"] if full() else [])):
        flow = build(topics, spark, names)
        place = topics.home / capture
        sinks = {capture: list(flow.sinks)}
        if capture == "ancestors":
            sinks = {"ancestors": ["fast", "counted"], "intervals": ["joined"]}
        flow.start(
            store=place / "store",
            checkpoint=place / "checkpoint",
            capture=sinks,
            available_now=True,
        ).wait()
        given = recorded(place / "checkpoint", records)
        assert len(given.batches) > 3
        with hw.open(place / "store") as store:
            for sink in flow.sinks:
                want = expected(flow, sink, given, records)
                assert want, sink
                assert told(store, sink) == want, f"{sink} as {capture}"
                if capture == "intervals" and sink == "counted":
                    ask_by(store, sink, "ancestors")
                    assert told(store, sink) == want, f"{sink} by its ancestors"


def test_records_are_read_again_by_id(topics: Topics, spark: SparkSession) -> None:
    topic = topics.make("reports")
    records = put(topics, topic, 20, 3)
    flow = hw.Flow("again", spark)
    reports = topics.source(flow, "reports", topic, schema=SCHEMA, keep="none")
    flow.sink("all", reports)
    flow.start(store=topics.home / "store", capture="eager", available_now=True).wait()
    with hw.open(topics.home / "store") as store:
        found = store.backward("all", store.results("all")["result_id"].to_pylist())
        rows = {r["id"]: (r["n"], r["ts"], r["k"], r["v"]) for r in found.to_pylist()}
        assert rows == {packed(place): row for place, row in records.items()}
        place, row = next(iter(records.items()))
        reached = store.forward("reports", place)
        assert reached["n"].to_pylist() == [row[0]]
        assert store.forward("reports", place[1:])["n"].to_pylist() == [row[0]]


def test_order_of_arrival_and_why_not(topics: Topics, spark: SparkSession) -> None:
    topic = topics.make("ordered", 1)
    places = topics.send(topic, [(0, {"n": n, "k": n % 2}) for n in (5, 3, 9, 1, 7)])
    flow = hw.Flow("ordered", spark)
    rows = topics.source(flow, "reports", topic, schema="n bigint, k int", keep="none")
    flow.sink("pairs", rows.count_window(2, 2).agg(F.sum("n").alias("s")))
    flow.sink("large", rows.filter("n > 4"))
    capture = {"eager": ["pairs", "large"]}
    flow.start(store=topics.home / "store", capture=capture, available_now=True).wait()
    ids = list(map(packed, places))
    with hw.open(topics.home / "store") as store:
        found = {values[-1]: {one for _, one in sets} for values, sets in told(store, "pairs")}
        assert found == {8: set(ids[:2]), 10: set(ids[2:4])}
        (fate,) = store.why_not("reports", ids[1], sink="large").to_pylist()
    assert fate["kind"] == "filtered"
