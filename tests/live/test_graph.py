"""The live graph of small flows, worked out by hand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import headwater as hw
from headwater.errors import HeadwaterError, RunError, UnknownId
from tests.support.streams import T0, Lab

pytestmark = pytest.mark.spark

READINGS = """
1 | 1 | 1 | 10
2 | 4 | 1 | 20
--
3 | 12 | 1 | 30
--
4 | 25 | 1 | 40
--
5 | 60 | 1 | 50
"""


def sums(frame: hw.Frame, size: str = "10 seconds", slide: str = "5 seconds") -> hw.Frame:
    return frame.groupBy("k", F.window("ts", size, slide)).agg(F.sum("v").alias("s"))


def seconds(value: Any) -> Any:
    """A time as seconds after the first, as in the tables."""
    return (value - T0).total_seconds() if hasattr(value, "tzinfo") else value


def labelled(store: hw.Store, source: str = "a") -> dict[int, Any]:
    """By record: the watermark at which its label was delivered."""
    return {
        row["id"]: seconds(row["delivered"])
        for row in store.graph().labels.to_pylist()
        if (row["kind"], row["name"]) == ("source", source)
    }


def vertices(store: hw.Store, source: str = "a") -> dict[int, Any]:
    """By record: the watermark at which its vertex was delivered."""
    return {
        row["id"]: seconds(row["delivered"])
        for row in store.graph().vertices.to_pylist()
        if (row["kind"], row["name"]) == ("source", source)
    }


def test_records_are_labelled_with_their_last_window(flow: hw.Flow, lab: Lab) -> None:
    flow.sink("sums", sums(lab.source(flow, "a", READINGS)))
    store = lab.run(flow, "auto", live=True)
    assert vertices(store) == {1: 12, 2: 12, 3: 25, 4: 60}
    # The last window of 1 and 2 ends at 10, that of 3 at 20, that of 4 at 35.
    assert labelled(store) == {1: 12, 2: 12, 3: 25, 4: 60}
    graph = store.graph()
    results = {r["id"] for r in graph.vertices.to_pylist() if r["kind"] == "result"}
    assert results == {r["id"] for r in graph.labels.to_pylist() if r["kind"] == "result"}
    assert graph.edges.num_rows == 8
    assert {(e["source"], e["sink"]) for e in graph.edges.to_pylist()} == {("a", "sums")}
    assert store.alive("a").num_rows == 0
    assert store.expired("a")["id"].to_pylist() == [1, 2, 3, 4]
    assert [seconds(t) for t in store.expired("a")["event_time"].to_pylist()] == [1, 4, 12, 25]


def test_a_record_is_past_only_for_all_sinks(flow: hw.Flow, lab: Lab) -> None:
    records = lab.source(flow, "a", READINGS)
    flow.sink("short", sums(records))
    flow.sink("long", sums(records, "30 seconds", "30 seconds"))
    flow.sink("rows", records.filter("v > 20"))
    store = lab.run(flow, "eager", live=True)
    assert vertices(store) == {1: 12, 2: 12, 3: 4, 4: 12, 5: 25}
    # 1, 2, 3 and 4 are in the window that ends at 30; 5 in one that ends at 90.
    assert labelled(store) == {1: 60, 2: 60, 3: 60, 4: 60}
    assert store.alive("a")["id"].to_pylist() == [5]
    assert set(store.forward("a", 5)["final"].to_pylist()) == {False}
    assert set(store.forward("a", 4)["final"].to_pylist()) == {True}
    vertex = store.vertex(5, "a").to_pylist()[0]
    assert (vertex["kind"], vertex["expired"], vertex["labelled"]) == ("source", False, None)
    with pytest.raises(UnknownId, match="no vertex of 'a' with the id 77"):
        store.vertex(77, "a")


def test_stateless_paths_expire_a_record_in_its_own_batch(flow: hw.Flow, lab: Lab) -> None:
    flow.sink("rows", lab.source(flow, "a", READINGS).filter("v > 10"))
    store = lab.run(flow, "eager", live=True)
    assert labelled(store) == vertices(store)
    assert set(labelled(store)) == {2, 3, 4, 5}
    # It was filtered out, if it was read: the store, which keeps no records, can't tell.
    assert store.forward("a", 1)["final"].to_pylist() == [None]


def test_ananke_labels_by_the_sum_of_windows(flow: hw.Flow, lab: Lab) -> None:
    days = """
    1 | 1 | 1 | 10
    --
    2 | 9 | 1 | 20
    --
    3 | 10.5 | 1 | 20
    --
    4 | 18 | 1 | 20
    --
    5 | 20 | 1 | 20
    --
    6 | 60 | 1 | 20
    """
    flow.sink("sums", sums(lab.source(flow, "a", days), "10 seconds", "10 seconds"))
    tight = labelled(lab.run(flow, "eager", live=True))
    ananke = labelled(lab.run(flow, "eager", live=True, expiry="ananke"))
    assert tight == {1: 10.5, 2: 10.5, 3: 20, 4: 20, 5: 60}
    # A label waits until the watermark is more than 10 seconds after the record.
    assert ananke == {1: 18, 2: 20, 3: 60, 4: 60, 5: 60}


def test_chained_windows_and_a_join_that_lags(flow: hw.Flow, lab: Lab) -> None:
    first = sums(lab.source(flow, "a", READINGS)).withColumn("at", F.window_time("window"))
    flow.sink("later", first.groupBy(F.window("at", "20 seconds")).agg(F.sum("s").alias("s")))
    store = lab.run(flow, "eager", live=True)
    # 1 and 2 are in windows ending at 5 and 10; 3 in those ending at 15 and 20: all before 20.
    assert labelled(store) == {1: 25, 2: 25, 3: 25, 4: 60}


def test_rows_wait_for_partners(flow: hw.Flow, lab: Lab) -> None:
    left = lab.source(flow, "a", READINGS).alias("l")
    right = lab.source(
        flow,
        "b",
        "101 | 2 | 1 | 1\n--\n102 | 13 | 1 | 2\n--\n103 | 26 | 1 | 2\n--\n104 | 61 | 1 | 2",
    ).alias("r")
    pairs = left.join(
        right,
        F.expr("l.k = r.k AND r.ts >= l.ts AND r.ts <= l.ts + INTERVAL 10 SECONDS"),
    ).select(F.col("l.id").alias("x"), F.col("r.id").alias("y"))
    flow.sink("pairs", pairs)
    store = lab.run(flow, "eager", live=True)
    edges = {(e["source"], e["source_id"]) for e in store.graph().edges.to_pylist()}
    assert edges == {("a", i) for i in (1, 2, 3, 4, 5)} | {("b", i) for i in (101, 102, 103, 104)}
    # The watermarks are 2, 12, 25 and 60. A row on the left waits ten seconds for one on the
    # right; that one until the watermark has passed its own time.
    assert labelled(store, "a") == {1: 12, 2: 25, 3: 25, 4: 60}
    assert labelled(store, "b") == {101: 12, 102: 25, 103: 60}
    assert store.alive("a")["id"].to_pylist() == [5]


def test_sessions_are_tracked(flow: hw.Flow, lab: Lab) -> None:
    rows = """
    1 | 1 | 1 | 10
    2 | 3 | 2 | 10
    --
    3 | 9 | 1 | 20
    --
    4 | 17 | 1 | 20
    --
    5 | 20 | 3 | 20
    --
    6 | 40 | 4 | 20
    """
    records = lab.source(flow, "a", rows)
    sessions = records.groupBy("k", F.session_window("ts", "10 seconds")).agg(F.sum("v").alias("s"))
    flow.sink("sessions", sessions.filter("s > 10"))
    flow.sink("rows", records.select("id"))
    store = lab.run(flow, "eager", live=True)
    assert vertices(store) == {1: None, 2: None, 3: 3, 4: 9, 5: 17, 6: 20}
    # The session of 1, 3 and 4 ends at 27; that of 2 ended at 13, that of 5 at 30.
    assert labelled(store) == {1: 40, 2: 17, 3: 40, 4: 40, 5: 40}


@pytest.mark.parametrize("mode", ["intervals", "ancestors"])
def test_lazily_captured_results_are_resolved(mode: str, flow: hw.Flow, lab: Lab) -> None:
    flow.sink("sums", sums(lab.source(flow, "a", READINGS)))
    store = lab.run(flow, mode, live=True)
    assert labelled(store) == {1: 12, 2: 12, 3: 25, 4: 60}
    assert store.graph().edges.num_rows == 8
    first = store.results("sums")["result_id"][0].as_py()
    assert store.backward("sums", first)["id"].to_pylist() == [1, 2]
    assert store.rows_read == 0


def test_finishing_closes_every_window(flow: hw.Flow, lab: Lab) -> None:
    flow.sink("sums", sums(lab.source(flow, "a", READINGS)))
    path = str(lab.home / "store")
    run = flow.start(store=path, capture="eager", live=True, available_now=True)
    run.wait()
    run.finish()
    store = hw.open(path)
    assert store.results("sums").num_rows == 8
    assert store.alive("a").num_rows == 0
    assert store.expired("a").num_rows == 5
    assert set(store.forward("a", 5)["final"].to_pylist()) == {True}
    with pytest.raises(RunError, match="flow 'test' is finished in this store"):
        flow.start(store=path, capture="eager", live=True, available_now=True)


def test_unbounded_steps_are_named_and_labelled_at_the_end(flow: hw.Flow, lab: Lab) -> None:
    records = lab.source(flow, "a", READINGS)
    flow.sink("pairs", records.count_window(2).agg(F.sum("v").alias("s")))
    path = str(lab.home / "store")
    run = flow.start(store=path, capture="eager", live=True, available_now=True)
    run.wait()
    store = hw.open(path)
    assert labelled(store) == {}
    assert set(vertices(store)) == {1, 2, 3, 4}
    assert "count_window waits for rows to arrive" in store.unbounded()["a"]
    run.finish()
    assert set(labelled(store)) == {1, 2, 3, 4}


def test_a_batch_flow_is_past_at_once(flow: hw.Flow, lab: Lab, spark: Any) -> None:
    rows = spark.createDataFrame(pa.table({"id": [1, 2, 3], "k": [1, 1, 2]}))
    records = flow.source("a", df=rows, id="id")
    flow.sink("counts", records.groupBy("k").agg(F.count("*").alias("n")))
    store = lab.run(flow, "eager", live=True)
    assert set(labelled(store)) == {1, 2, 3}
    assert set(store.forward("a", 1)["final"].to_pylist()) == {True}


def test_the_graph_as_it_stood(flow: hw.Flow, lab: Lab) -> None:
    flow.sink("sums", sums(lab.source(flow, "a", READINGS)))
    store = lab.run(flow, "eager", live=True)
    then = store.graph(at=T0 + timedelta(seconds=25))
    assert then.edges.num_rows == 6
    assert store.graph(at=T0 + timedelta(seconds=24)).edges.num_rows == 4
    assert store.graph(at="2024-01-01").vertices.num_rows == 0
    changes = list(store.follow(wait=False))
    assert [c.batch for c in changes] == [0, 1, 2, 3, 4]
    assert sum(c.edges.num_rows for c in changes) == 8
    rest = list(store.follow(after=changes[2].position, wait=False))
    assert [c.batch for c in rest] == [3, 4]
    assert rest[0].labels["id"].to_pylist()[0] == 3


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"expiry": "tight"}, "expiry='tight' is a rule of the live graph; add live=True"),
        ({"live": True, "expiry": "soon"}, "expiry='soon' is not one of tight, ananke"),
        ({"live": True, "capture": "none"}, "capture='none' has no edges"),
        ({"live": True, "capture": {"eager": ["window"]}}, "captured in terms of window"),
    ],
)
def test_what_contradicts_is_refused(
    more: dict[str, Any], message: str, flow: hw.Flow, lab: Lab
) -> None:
    flow.sink("sums", sums(lab.source(flow, "a", READINGS)).named("window").filter("s > 0"))
    with pytest.raises(RunError, match=message):
        flow.start(store=str(lab.home / "store"), available_now=True, **more)
    assert not (lab.home / "store").exists()


def test_a_store_without_a_live_graph_says_so(flow: hw.Flow, lab: Lab) -> None:
    flow.sink("rows", lab.source(flow, "a", READINGS))
    store = lab.run(flow, "eager")
    with pytest.raises(HeadwaterError, match="start one with live=True"):
        store.graph()
    with pytest.raises(HeadwaterError, match="flow 'test' has no live graph"):
        store.alive("a")


def test_rows_of_named_steps_are_in_the_graph(flow: hw.Flow, lab: Lab) -> None:
    first = sums(lab.source(flow, "a", READINGS), "10 seconds", "10 seconds").named("tens")
    later = first.withColumn("at", F.window_time("window"))
    flow.sink("later", later.groupBy(F.window("at", "30 seconds")).agg(F.sum("s").alias("s")))
    store = lab.run(flow, "eager", live="steps")
    graph = store.graph()
    steps = {
        row["id"]: (seconds(row["event_time"]) + 1e-6, seconds(row["delivered"]))
        for row in graph.vertices.to_pylist()
        if row["kind"] == "step"
    }
    # Windows end at 10, 20 and 30; each is a vertex when it closes.
    assert sorted(steps.values()) == [(10, 12), (20, 25), (30, 60)]
    labels = {
        steps[row["id"]][0]: seconds(row["delivered"])
        for row in graph.labels.to_pylist()
        if row["kind"] == "step"
    }
    assert labels == {10: 60, 20: 60, 30: 60}
    into = {(e["source"], e["source_id"]) for e in graph.edges.to_pylist() if e["sink"] == "tens"}
    assert into == {("a", i) for i in (1, 2, 3, 4)}
    onwards = {e["source_id"] for e in graph.edges.to_pylist() if e["source"] == "tens"}
    assert onwards == set(steps)
    assert {e["sink"] for e in graph.edges.to_pylist() if e["source"] == "tens"} == {"later"}
    assert store.forward("a", 1)["sink"].to_pylist() == ["later"]
    assert set(
        store.backward("later", store.results("later")["result_id"][0].as_py())[
            "source"
        ].to_pylist()
    ) == {"a"}
    tens = store.results("tens").to_pylist()
    assert sorted(row["s"] for row in tens) == [30, 30, 40]


def test_naming_no_step(flow: hw.Flow, lab: Lab) -> None:
    flow.sink("sums", sums(lab.source(flow, "a", READINGS)))
    with pytest.raises(RunError, match="live='steps' shows the steps that have a name"):
        flow.start(store=str(lab.home / "store"), live="steps")
    with pytest.raises(RunError, match="live='rows' is not one of True, False, 'steps'"):
        flow.start(store=str(lab.home / "store"), live="rows")  # type: ignore[arg-type]
