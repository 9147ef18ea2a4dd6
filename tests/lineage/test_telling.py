"""Events of a run: when they are told, what they say, and that no trouble with them counts."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from openlineage.client.event_v2 import RunEvent

from headwater.capture.listening import Brought
from headwater.capture.sink import BatchInfo
from headwater.errors import RunError
from headwater.lineage.columns import ColumnLineage
from headwater.lineage.describing import Description, End, Parent
from headwater.lineage.emitting import Emitter
from headwater.lineage.naming import Dataset
from headwater.lineage.telling import Teller
from tests.lineage.conforming import as_json

FILES, SINK = Dataset("file", "/data"), Dataset("headwater:///prov", "traffic/stopped")
IDENTITY = frozenset({"IDENTITY"})
TOLD = Description(
    flow="traffic",
    job="traffic",
    store="/prov",
    streaming=True,
    spark="4.2.0",
    sources=(End("reports", (FILES,), [{"name": "tid", "type": "int64"}], "headwater forward"),),
    sinks=(
        End(
            "stopped",
            (SINK,),
            [{"name": "w", "type": "struct", "fields": [{"name": "end", "type": "int64"}]}],
            "headwater backward /prov traffic/stopped RESULT_ID",
            ColumnLineage(
                {"w": {("reports", "tid"): IDENTITY}, "n": {}},
                {("reports", "tid"): frozenset({"GROUP_BY", "FILTER"})},
            ),
        ),
    ),
    where={"reports": (FILES,)},
)


class Receiver:
    """Stands for a client."""

    def __init__(self, emit: Callable[[], None] = lambda: None) -> None:
        self.events: list[RunEvent] = []
        self._emit = emit

    def emit(self, event: RunEvent) -> None:
        self._emit()
        self.events.append(event)

    def close(self, timeout: float) -> bool:
        return True


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def batch(number: int, results: int = 1) -> tuple[BatchInfo, Brought]:
    watermark = datetime(2025, 1, 1, 0, number, tzinfo=UTC)
    info = BatchInfo(number, watermark, results, 4 * results, 10)
    return info, Brought({"stopped": results}, {"reports": 10}, {"reports": 1})


def told(emitter: Emitter, receiver: Receiver) -> list[dict[str, Any]]:
    assert emitter.flush()
    return [as_json(event) for event in receiver.events]


def kinds(emitter: Emitter, receiver: Receiver) -> list[str]:
    return [event["eventType"] for event in told(emitter, receiver)]


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.fixture
def emitter(receiver: Receiver) -> Emitter:
    return Emitter(lambda: receiver)


def test_a_run_from_its_start_to_its_end(emitter: Emitter, receiver: Receiver) -> None:
    teller = Teller(lambda: TOLD, emitter)
    teller.began()
    teller.batch(*batch(0, 2))
    teller.batch(*batch(1, 3))
    teller.ended(None)
    start, complete = told(emitter, receiver)
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert (start["job"]["namespace"], start["job"]["name"]) == ("headwater", "traffic")
    kind = start["job"]["facets"]["jobType"]
    assert (kind["processingType"], kind["integration"]) == ("STREAMING", "HEADWATER")
    engine = start["run"]["facets"]["processing_engine"]
    assert (engine["name"], engine["version"]) == ("spark", "4.2.0")
    assert "headwater_progress" not in start["run"]["facets"]
    progress = complete["run"]["facets"]["headwater_progress"]
    said = {key: value for key, value in progress.items() if key[0] != "_"}
    assert said == {
        "batch": 1,
        "batches": 2,
        "results": 5,
        "edges": 20,
        "records": 20,
        "watermark": "2025-01-01T00:01:00Z",
    }


def test_what_is_read_and_written(emitter: Emitter, receiver: Receiver) -> None:
    teller = Teller(lambda: TOLD, emitter)
    teller.began()
    teller.batch(*batch(0, 2))
    teller.ended(None)
    start, complete = told(emitter, receiver)
    (read,), (written,) = complete["inputs"], complete["outputs"]
    assert (read["namespace"], read["name"]) == ("file", "/data")
    assert read["facets"]["schema"]["fields"] == [{"name": "tid", "type": "int64"}]
    assert read["facets"]["headwater_store"]["source"] == "reports"
    counted = read["inputFacets"]["inputStatistics"]
    assert (counted["rowCount"], counted["fileCount"]) == (10, 1)
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == 2
    assert "outputStatistics" not in start["outputs"][0].get("outputFacets", {})
    (window,) = written["facets"]["schema"]["fields"]
    assert window["fields"] == [{"name": "end", "type": "int64"}]
    store = written["facets"]["headwater_store"]
    assert (store["store"], store["sink"]) == ("/prov", "stopped")
    assert store["ask"] == "headwater backward /prov traffic/stopped RESULT_ID"
    lineage = written["facets"]["columnLineage"]
    (field,) = lineage["fields"]["w"]["inputFields"]
    assert (field["namespace"], field["name"], field["field"]) == ("file", "/data", "tid")
    assert field["transformations"] == [{"type": "DIRECT", "subtype": "IDENTITY"}]
    assert "n" not in lineage["fields"], "of a column that comes from none nothing is said"
    (rows,) = lineage["dataset"]
    assert [way["subtype"] for way in rows["transformations"]] == ["FILTER", "GROUP_BY"]


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (RunError("flow 'traffic' failed: no"), "flow 'traffic' failed: no"),
        (ValueError("org.apache.spark.X: bad\n\nplan"), "bad"),
        (ValueError("x" * 9_000), "x" * 2_000),
    ],
)
def test_a_run_that_fails(
    emitter: Emitter, receiver: Receiver, failure: Exception, said: str
) -> None:
    teller = Teller(lambda: TOLD, emitter)
    teller.began()
    teller.ended(failure)
    start, fail = told(emitter, receiver)
    assert (start["eventType"], fail["eventType"]) == ("START", "FAIL")
    facet = fail["run"]["facets"]["errorMessage"]
    assert (facet["message"], facet["programmingLanguage"]) == (said, "PYTHON")


def test_a_start_again_is_another_run_of_the_same_job(emitter: Emitter, receiver: Receiver) -> None:
    teller = Teller(lambda: TOLD, emitter)
    for _ in range(2):
        teller.began()
        teller.began()  # a query that goes on with a later watermark
        teller.batch(*batch(7))
        teller.ended(None)
        teller.ended(RunError("too late"))
    events = told(emitter, receiver)
    assert [e["eventType"] for e in events] == ["START", "COMPLETE"] * 2
    assert len({e["run"]["runId"] for e in events}) == 2
    assert len({e["job"]["name"] for e in events}) == 1
    assert events[3]["run"]["facets"]["headwater_progress"]["batches"] == 1, "counted anew"


def test_running_is_told_at_most_so_often(emitter: Emitter, receiver: Receiver) -> None:
    clock = Clock()
    teller = Teller(lambda: TOLD, emitter, every=60, clock=clock)
    teller.began()
    teller.batch(*batch(0))
    clock.now += 59
    teller.tick()
    assert kinds(emitter, receiver) == ["START"], "too early"
    clock.now += 1
    teller.tick()
    teller.tick()
    assert kinds(emitter, receiver) == ["START", "RUNNING"]
    clock.now += 600
    teller.tick()
    assert kinds(emitter, receiver) == ["START", "RUNNING"], "no batch since"
    teller.batch(*batch(1))
    teller.batch(*batch(2))
    teller.tick()
    running = told(emitter, receiver)[-1]
    assert running["run"]["facets"]["headwater_progress"]["batches"] == 3
    teller.ended(None)
    teller.tick()
    assert kinds(emitter, receiver) == ["START", "RUNNING", "RUNNING", "COMPLETE"]


def test_what_is_due_is_told_without_another_batch(receiver: Receiver) -> None:
    emitter = Emitter(lambda: receiver)
    teller = Teller(lambda: TOLD, emitter, every=0.0)
    teller.began()
    teller.batch(*batch(0))
    until = time.monotonic() + 10
    while len(receiver.events) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    assert kinds(emitter, receiver) == ["START", "RUNNING"]
    teller.ended(None)


def test_a_unit_is_part_of_its_flow(emitter: Emitter, receiver: Receiver) -> None:
    from dataclasses import replace

    run = "4aef8441-430b-498a-b9e6-6bc3ef13b7f5"
    unit = replace(TOLD, job="weather.storms", parent=Parent("weather", run))
    teller = Teller(lambda: unit, emitter)
    teller.began()
    (start,) = told(emitter, receiver)
    parent = start["run"]["facets"]["parent"]
    assert (parent["job"]["name"], parent["run"]["runId"]) == ("weather", run)
    assert start["job"]["name"] == "weather.storms"


def test_a_receiver_that_fails_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def refuse() -> None:
        raise ConnectionError("nobody is there")

    receiver = Receiver(refuse)
    emitter = Emitter(lambda: receiver)
    teller = Teller(lambda: TOLD, emitter)
    with caplog.at_level(logging.WARNING, "headwater"):
        for _ in range(5):
            teller.began()
            teller.batch(*batch(0))
            teller.ended(None)
        assert emitter.flush()
    assert (emitter.failed, emitter.emitted) == (10, 0)
    (said,) = [record.getMessage() for record in caplog.records]
    assert "nobody is there" in said, "told once"


def test_a_client_that_can_not_be_made(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> Any:
        raise RuntimeError("no such transport")

    emitter = Emitter(broken)
    teller = Teller(lambda: TOLD, emitter)
    teller.began()
    teller.ended(None)
    assert emitter.flush()
    assert emitter.failed == 2
    emitter.close()


def test_a_flow_that_can_not_be_described(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> Description:
        raise KeyError("column")

    receiver = Receiver()
    emitter = Emitter(lambda: receiver)
    teller = Teller(broken, emitter)
    teller.began()
    teller.batch(*batch(0))
    teller.ended(None)
    assert emitter.flush()
    assert (receiver.events, emitter.failed) == ([], 1)


def test_a_slow_receiver_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    going = threading.Event()
    receiver = Receiver(lambda: going.wait(30) and None)
    emitter = Emitter(lambda: receiver, room=3)
    teller = Teller(lambda: TOLD, emitter)
    began = time.monotonic()
    for _ in range(20):
        teller.began()
        teller.ended(None)
    assert time.monotonic() - began < 5, "no flow waits"
    assert emitter.dropped >= 40 - 3 - 1
    assert not emitter.flush(0.05)
    going.set()
    assert emitter.flush()
    assert emitter.emitted + emitter.dropped == 40
    assert sum("dropped" in record.getMessage() for record in caplog.records) == 1
