"""Real runs, told to a file by the client's own transport."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from headwater import lineage
from tests.lineage.conforming import conforms
from tests.support.streams import SCHEMA, Lab, write

pytestmark = pytest.mark.spark

A = """
1 | 0 | 1 | 5
2 | 1 | 2 | 6
--
3 | 9 | 1 | 7
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that events go to."""
    for name in [name for name in os.environ if name.startswith("OPENLINEAGE")]:
        monkeypatch.delenv(name)
    place = tmp_path / "events.ndjson"
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "file")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", str(place))
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__APPEND", "true")
    return place


def events(log: Path) -> list[dict[str, Any]]:
    assert lineage.flush()
    found = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    for event in found:
        conforms(event)
    return found


def test_a_run_and_a_start_again(flow: hw.Flow, lab: Lab, log: Path) -> None:
    a = lab.source(flow, "a", A)
    flow.sink("out", a.groupBy(F.window("ts", "5 seconds")).agg(F.sum("v").alias("s")))
    store = lab.home / "store"
    flow.start(store=store, capture="eager", available_now=True).wait()
    start, complete = events(log)
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert (start["job"]["name"], start["job"]["namespace"]) == ("test", "headwater")
    assert start["run"]["facets"]["processing_engine"]["version"] == flow.spark.version
    (read,), (written,) = complete["inputs"], complete["outputs"]
    assert (read["namespace"], read["name"]) == ("file", str(lab.home / "a"))
    assert read["inputFacets"]["inputStatistics"]["fileCount"] == 2
    assert [one["name"] for one in read["facets"]["schema"]["fields"]] == ["id", "ts", "k", "v"]
    assert (written["namespace"], written["name"]) == (f"headwater://{store}", "test/out")
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == 1
    fields = written["facets"]["columnLineage"]["fields"]
    assert [one["field"] for one in fields["s"]["inputFields"]] == ["v"]
    assert [one["field"] for one in fields["window"]["inputFields"]] == ["ts"]
    asked = written["facets"]["headwater_store"]["ask"]
    assert asked == f"headwater backward {store} test/out RESULT_ID"
    assert hw.open(store).backward(asked.split()[3])["id"].to_pylist() == [1, 2]

    write(lab.home / "a", SCHEMA, "4 | 20 | 1 | 5")
    flow.start(store=store, capture="eager", available_now=True).wait()
    again = events(log)[2:]
    assert [one["eventType"] for one in again] == ["START", "COMPLETE"]
    assert again[0]["run"]["runId"] not in {start["run"]["runId"]}
    assert again[0]["job"]["name"] == "test"
    assert again[1]["inputs"][0]["inputFacets"]["inputStatistics"]["fileCount"] == 1


def test_a_run_that_fails(flow: hw.Flow, lab: Lab, log: Path) -> None:
    a = lab.source(flow, "a", A)

    def broken(rows: object, batch: int) -> None:
        raise ValueError("disk is full")

    flow.sink("out", a.select("v"), write=broken)
    with pytest.raises(hw.RunError, match="disk is full"):
        lab.run(flow, "eager")
    start, fail = events(log)
    assert (start["eventType"], fail["eventType"]) == ("START", "FAIL")
    assert "disk is full" in fail["run"]["facets"]["errorMessage"]["message"]


def test_batch_sources_and_files_that_results_are_handed_on_to(
    flow: hw.Flow, lab: Lab, log: Path
) -> None:
    a = lab.source(flow, "a", A, stream=False, options={}, keep="all")
    out = {"format": "parquet", "path": str(lab.home / "out")}
    flow.sink("out", a.select("v"), write=out)
    lab.run(flow, "eager")
    start, complete = events(log)
    assert start["job"]["facets"]["jobType"]["processingType"] == "BATCH"
    assert complete["inputs"][0]["inputFacets"]["inputStatistics"]["rowCount"] == 3
    places = [(one["namespace"], one["name"]) for one in complete["outputs"]]
    assert places == [
        (f"headwater://{lab.home}/store-1", "test/out"),
        ("file", str(lab.home / "out")),
    ]
    assert complete["outputs"][1]["facets"]["headwater_store"]["sink"] == "out"


def test_finishing_is_a_run(flow: hw.Flow, lab: Lab, log: Path) -> None:
    a = lab.source(flow, "a", A)
    flow.sink("out", a.groupBy(F.window("ts", "5 seconds")).count())
    run = flow.start(store=lab.home / "store", capture="eager", available_now=True)
    run.wait()
    run.finish()
    told = [one["eventType"] for one in events(log)]
    assert told[:2] == ["START", "COMPLETE"]
    assert told[2:] == ["START", "COMPLETE"] * ((len(told) - 2) // 2)
    assert len(told) > 2


def test_nothing_is_told_where_it_is_not_wanted(
    flow: hw.Flow, lab: Lab, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = lab.source(flow, "a", A)
    flow.sink("out", a.select("v"))
    lab.run(flow, "eager", lineage=False)
    monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
    lab.run(flow, "eager", lineage=True)
    assert events(log) == []


def test_a_receiver_that_is_not_there(
    flow: hw.Flow, lab: Lab, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", "/nowhere/at/all/events")
    a = lab.source(flow, "a", A)
    flow.sink("out", a.select("v"))
    assert lab.run(flow, "eager").results("out").num_rows == 3
    assert lineage.flush()
    assert lineage.emitter().failed == 2


def test_units_of_a_deployed_flow(
    tmp_path: Path, spark: SparkSession, interpreted: SparkSession, log: Path
) -> None:
    from headwater.compose import Composition
    from tests.deploy.support import NUMS, host_of, publish, settle

    text = f"""
    flow: small
    nodes:
      nums: {{source: {{{NUMS}}}}}
      few: {{filter: {{from: nums, where: v > 3}}}}
      out: {{sink: {{from: few, stream: some}}}}
    """
    with host_of(tmp_path, spark) as host:
        host.deploy(Composition.parse(text))
        publish(host, 0, 24)
        settle(host)
    told = events(log)
    started = [one for one in told if one["eventType"] == "START"]
    assert started
    parents = {one["run"]["facets"]["parent"]["job"]["name"] for one in told}
    runs = {one["run"]["facets"]["parent"]["run"]["runId"] for one in told}
    assert (parents, len(runs)) == ({"small"}, 1), "all are parts of one run"
    assert all(one["job"]["name"].startswith("small.") for one in told)
    assert all(".v1" not in one["job"]["name"] for one in told), "the same in every version"
    streams = f"headwater://{tmp_path}/streams"
    read = {one["name"] for e in told for one in e["inputs"] if one["namespace"] == streams}
    written = {one["name"] for e in told for one in e["outputs"] if one["namespace"] == streams}
    assert "nums" in read
    assert written
