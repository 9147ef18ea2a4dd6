"""OpenLineage: one run for each streaming query, with what the specification requires."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import headwater as hw
from headwater.query import Store
from headwater.store import EmbeddedWriter
from tests.export.reading import exported
from tests.lineage.conforming import conforms
from tests.store.small import batch, flow, reports, sink, source, stopped


def events(store: Store, **asked: Any) -> list[dict[str, Any]]:
    lines = exported(store, "openlineage", **asked).decode().splitlines()
    found = [json.loads(line) for line in lines]
    for event in found:
        conforms(event)
    return found


def test_a_run_for_each_query(store: Store) -> None:
    told = [(e["job"]["name"], e["eventType"]) for e in events(store)]
    assert told == [
        ("traffic", "START"),
        ("traffic", "RUNNING"),
        ("traffic", "RUNNING"),
        ("traffic", "RUNNING"),
        ("other", "START"),
        ("other", "RUNNING"),
        ("traffic", "COMPLETE"),
    ], "only a finished flow is complete"
    ids = {e["job"]["name"]: e["run"]["runId"] for e in events(store)}
    assert len(set(ids.values())) == 2
    assert ids == {e["job"]["name"]: e["run"]["runId"] for e in events(store)}, "always the same"


def test_times_are_those_of_the_batches(store: Store) -> None:
    traffic = [e for e in events(store) if e["job"]["name"] == "traffic"]
    times = [datetime.fromisoformat(event["eventTime"]) for event in traffic]
    rows = store.batches().to_pylist()
    first, second, third = [row["committed_at"] for row in rows if row["flow"] == "traffic"]
    assert times == [first, first, second, third, third]


def test_headwaters_own_facet(store: Store) -> None:
    facets = [
        {k: v for k, v in e["run"]["facets"]["headwater_progress"].items() if k[0] != "_"}
        for e in events(store)
        if e["eventType"] == "RUNNING"
    ]
    watermark = "2024-05-01T00:00:09Z"
    assert facets == [
        {"batch": 0, "results": 0, "edges": 0, "records": 0},
        {"batch": 1, "results": 4, "edges": 7, "records": 5, "watermark": watermark},
        {"batch": 2, "results": 1, "edges": 2, "records": 2, "watermark": watermark},
        {
            "batch": 0,
            "results": 1,
            "edges": 1,
            "records": 1,
            "watermark": "2024-05-01T00:00:06Z",
        },
    ]


def test_only_what_an_answer_holds(store: Store) -> None:
    start, running, complete = events(store, sink="counted", result_id=-8)
    assert complete["eventType"] == "COMPLETE"
    progress = running["run"]["facets"]["headwater_progress"]
    assert [progress[key] for key in ("batch", "results", "edges", "records")] == [1, 1, 3, 3]
    assert [one["name"] for one in start["inputs"]] == ["traffic/reports"]
    assert [one["name"] for one in start["outputs"]] == ["traffic/counted"]


def test_schemas_and_places_are_told_at_the_start(tmp_path: Path) -> None:
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow(source(path="/data/reports", format="parquet"), sink()))
        writer.commit(batch(0, stopped((7, 1, "a", 1, [1])), reports((1, 0, 5))))
    with hw.open(tmp_path) as store:
        start, running = events(store)
    (read,) = start["inputs"]
    assert read["facets"]["schema"]["fields"] == [
        {"name": "tid", "type": "int64"},
        {"name": "speed", "type": "int32"},
    ]
    assert (read["namespace"], read["name"]) == ("file", "/data/reports")
    (written,) = start["outputs"]
    assert [one["name"] for one in written["facets"]["schema"]["fields"]] == ["vid", "n"]
    assert start["job"]["facets"]["jobType"]["processingType"] == "STREAMING"
    assert running["inputs"] == [{"namespace": "file", "name": "/data/reports"}]
    assert running["outputs"] == [
        {"namespace": f"headwater://{tmp_path}", "name": "traffic/stopped"}
    ]


def test_nested_columns_have_fields(store: Store) -> None:
    counted = next(one for one in events(store)[0]["outputs"] if one["name"] == "traffic/counted")
    window = counted["facets"]["schema"]["fields"][0]
    assert (window["name"], window["type"]) == ("window", "struct")
    assert [part["name"] for part in window["fields"]] == ["start", "end"]


def test_a_span_without_results_has_no_event(store: Store) -> None:
    assert events(store, since="2030-01-01") == []
    assert len(events(store, sink="kept", batches=(0, 0))) == 2
