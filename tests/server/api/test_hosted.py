"""With a host: flows and queries by REST, from deploying to erasing, on a running Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient

from headwater.deploy import Host
from headwater.server.service import Service
from headwater.server.settings import Settings
from headwater.testing.prov_graphs import Element
from tests.server.api import support
from tests.server.api.support import AUTH, TOKEN, Follower, event, eventually, few, served

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMA = support.SCHEMA
FLOW = f"""
flow: watch
nodes:
  nums:
    source: {{stream: nums, schema: "{SCHEMA}", event_time: at, id: n, watermark: 0 seconds}}
  large: {{filter: {{from: nums, where: v >= 2}}}}
  counted:
    aggregate: {{from: large, window: {{time: 10 seconds}}, by: k, columns: {{c: count(*)}}}}
  out: {{sink: {{from: counted, stream: counts}}}}
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Service]:
    """A service that runs flows."""
    home = tmp_path_factory.mktemp("hosted")
    plain = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    for name, value in plain.items():
        spark.conf.set(name, value)
    with Host(home / "flows", streams=home / "streams", live=True, spark=spark) as host:
        host.streams.create("nums", SCHEMA, event_time="at", id="n")
        settings = Settings(token=TOKEN, limits=few(seconds=60.0, replay_seconds=240.0))
        yield Service(
            settings, streams=host.streams, flows=host.folder, store=host.store, host=host
        )
    for name in plain:
        spark.conf.unset(name)


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[TestClient]:
    """A client that may write."""
    with support.client(service, headers=AUTH) as made:
        yield made


def done(response: Any, status: int = 200) -> dict[str, Any]:
    assert response.status_code == status, response.text
    told: dict[str, Any] = response.json()
    return told


def publish(client: TestClient, first: int, last: int) -> None:
    rows = [event(n) for n in range(first, last)]
    assert done(client.post("/api/streams/nums/events", json=rows))["events"] == last - first


def settled(service: Service) -> None:
    assert service.host.drain(120)
    for deployment in service.host.deployments.values():
        for unit in deployment.units:
            assert unit.error is None, unit.error


def test_a_flow_by_rest(service: Service, client: TestClient) -> None:
    told = done(client.post("/api/flows", json={"text": FLOW}))
    assert (told["flow"], told["version"], told["kept"]) == ("watch", 1, [])
    assert told["started"]
    publish(client, 0, 25)
    settled(service)
    (line,) = done(client.get("/api/flows"))["flows"]
    assert (line["flow"], line["wanted"]) == ("watch", "running")
    status = done(client.get("/api/flows/watch/status"))
    assert {node["node"] for node in status["nodes"]} == {"nums", "large", "counted", "out"}
    whole = done(client.get("/api/flows/watch"))
    assert whole["document"]["flow"] == "watch"
    assert [each["version"] for each in whole["versions"]] == [1]
    assert done(client.get("/api/health"))["flows"]["running"] == 1
    rows = done(client.get("/api/streams/counts/events"))["rows"]
    assert {(row["k"], row["c"]) for row in rows} >= {("a", 3), ("b", 3)}


def test_results_and_where_they_came_from(service: Service, client: TestClient) -> None:
    store = done(client.get("/api/store"))
    (sink,) = [one for one in store["sinks"] if one["name"] == "out"]
    page = done(client.get("/api/results", params={"sink": sink["qualified"], "where": "c = 3"}))
    row = page["rows"][0]
    asked = {"sink": sink["qualified"], "result_id": row["result_id"]}
    records = done(client.get("/api/backward", params=asked))["rows"]
    assert len(records) == 3
    assert {each["k"] for each in records} == {row["k"]}
    record = records[0]["id"]
    reached = done(client.get("/api/forward", params={"source": "nums", "id": record}))["rows"]
    assert row["result_id"] in {each["result_id"] for each in reached}
    one = done(client.get("/api/record", params={"source": "nums", "id": record}))
    assert one["row"]["n"] == int(record)
    graph = done(client.get("/api/graph"))
    assert row["result_id"] in {vertex["id"] for vertex in graph["vertices"]}


def test_a_replay_with_its_steps(client: TestClient) -> None:
    row = done(client.get("/api/results?sink=out&where=c%20%3D%203"))["rows"][0]
    body = {"sink": "out", "result_id": row["result_id"], "steps": True}
    told = done(client.post("/api/replay", json=body, headers={"Authorization": ""}))
    assert told["matches"] is True
    assert told["differences"] == {}
    assert told["row"]["c"] == told["stored"]["c"] == 3
    assert len(told["sources"]["rows"]) == 3
    shown = [step["step"] for step in told["steps"]]
    for step in told["steps"]:
        assert set(step["inputs"]) <= set(shown), "those that are not shown are passed by"
        assert step["count"] == step["total"] == len(step["rows"])
    assert told["steps"][0]["inputs"] == []
    assert all(step["inputs"] for step in told["steps"][1:])


def test_why_not(service: Service, client: TestClient) -> None:
    def ends(number: int) -> set[str]:
        params = {"source": "nums", "id": str(number)}
        return {row["kind"] for row in done(client.get("/api/why-not", params=params))["rows"]}

    assert ends(0) == {"filtered"}
    assert ends(8) == {"reached"}
    assert ends(24) == {"open"}
    told = client.get("/api/why-not", params={"source": "nums", "id": "999999"})
    assert (told.status_code, told.json()["kind"]) == (404, "UnknownId")
    assert client.get("/api/why-not", params={"source": "none", "id": "1"}).status_code == 404
    for id_ in ("x", "[1, 2]", "1.5", "-", "null"):
        told = client.get("/api/why-not", params={"source": "nums", "id": id_})
        assert told.status_code in (404, 409, 422), told.text
    # One that was only just published: no batch has it, or the latest has.
    for number in (25, 26, 27):
        publish(client, number, number + 1)
        told = client.get("/api/why-not", params={"source": "nums", "id": str(number)})
        assert told.status_code in (200, 404), told.text
        if told.status_code == 200:
            assert {row["kind"] for row in told.json()["rows"]} <= {"unread", "open"}
    settled(service)
    assert ends(27) == {"open"}


def test_marks_and_erasing(client: TestClient) -> None:
    row = done(client.get("/api/results?sink=out&where=c%20%3D%203"))["rows"][0]
    records = done(
        client.get("/api/backward", params={"sink": "out", "result_id": row["result_id"]})
    )["rows"]
    body = {"source": "nums", "ids": [records[0]["id"]], "reason": "a test"}
    told = done(client.post("/api/marks", json=body), 201)
    assert told["records"] == 1
    assert row["result_id"] in {each["result_id"] for each in told["results"]["rows"]}
    one = done(client.get("/api/result", params={"sink": "out", "result_id": row["result_id"]}))
    assert one["marked"] is True
    done(client.delete(f"/api/marks/{told['mark']}"))
    dry = client.post("/api/erasures", json={**body, "dry_run": True})
    assert dry.status_code in (200, 409), dry.text


def test_changing_and_undoing(service: Service, client: TestClient) -> None:
    changed = FLOW.replace("v >= 2", "v >= 4")
    checked = done(client.post("/api/flows/check", json={"text": changed}))
    assert "large" in json.dumps(checked["difference"]["changed"])
    told = done(client.post("/api/flows", json={"text": changed}))
    assert told["version"] == 2
    assert told["started"]
    assert told["ended"]
    told = done(client.post("/api/flows/watch/undo"))
    assert told["version"] == 3
    text = done(client.get("/api/flows/watch"))["text"]
    assert "v >= 2" in text
    old = done(client.get("/api/flows/watch/versions/2"))
    assert "v >= 4" in old["text"]
    assert client.get("/api/flows/watch/versions/9").status_code == 404


def test_stopping_and_resuming(service: Service, client: TestClient) -> None:
    assert done(client.post("/api/flows/watch/stop"))["wanted"] == "stopped"
    publish(client, 30, 50)
    eventually(lambda: done(client.get("/api/health"))["flows"]["stopped"] == 1)
    assert done(client.post("/api/flows/watch/resume"))["wanted"] == "running"
    settled(service)
    rows = done(client.get("/api/streams/counts/events?limit=1000"))["rows"]
    assert sum(row["c"] for row in rows if row["window"]["start"] == "2026-01-01T00:00:30Z") == 10


def test_a_query_is_registered_and_listened_to(service: Service, client: TestClient) -> None:
    body = {"name": "loud", "sql": "select n, v * 2 as w from nums where v > 24"}
    told = done(client.post("/api/queries", json=body), 201)
    assert (told["query"], told["streams"], told["to"]["stream"]) == ("loud", ["nums"], "loud")
    assert client.post("/api/queries", json=body).status_code == 409
    with served_beside(service) as address:
        follower = Follower(f"{address}/api/queries/loud/follow?after=0")
        publish(client, 48, 56)
        eventually(lambda: sum(len(e["data"]["rows"]) for e in follower.named("events")) >= 7, 120)
    rows = [row for e in follower.named("events") for row in e["data"]["rows"]]
    assert {(row["n"], row["w"]) for row in rows} == {(n, float(n)) for n in range(49, 56)}
    assert "loud" in {each["query"] for each in done(client.get("/api/queries"))["queries"]}
    made = next(row for row in rows if row["n"] == 50)
    entity = f"hw:streams/loud/{made['event_id']}"
    inputs = done(client.get("/api/backward", params={"entity": entity}))["rows"]
    assert [row["id"] for row in inputs] == ["hw:streams/nums/50"]
    done(client.delete("/api/queries/loud", params={"keep": "false"}))
    assert client.get("/api/queries/loud").status_code == 404
    assert client.get("/api/streams/loud").status_code == 404
    wrong = {"name": "bad", "sql": "select nothing from nums"}
    assert client.post("/api/queries", json=wrong).status_code in (409, 422)
    assert client.get("/api/queries/bad").status_code == 404


def served_beside(service: Service) -> Any:
    """The same flows on a real socket: in-process clients can't follow what does not end."""
    beside = Service(
        service.settings, streams=service.streams, flows=service.flows, store=service.path
    )
    return served(beside)


def test_a_foreign_job(client: TestClient) -> None:
    told = [
        Element("used", "x1", "photo", "read", "x1", "n1"),
        Element("wasGeneratedBy", "tags", "x1", "read", "x1", "n1"),
        Element("used", "x2", "tags", "count", "x2", "n1"),
        Element("wasGeneratedBy", "totals", "x2", "count", "x2", "n1", output=True),
    ]
    lines = "".join(json.dumps(one.to_json()) + "\n" for one in told)
    body = {"content": lines, "headers": {"Content-Type": "application/x-ndjson"}}
    assert done(client.post("/api/jobs/photos/elements", **body)) == {
        "job": "photos",
        "elements": 4,
    }
    assert done(client.post("/api/jobs/photos/finish"))["finished"] is True
    (job,) = done(client.get("/api/jobs"))["rows"]
    assert (job["job"], job["elements"]) == ("photos", 4)
    found = done(client.get("/api/backward", params={"entity": "totals"}))["rows"]
    assert [row["id"] for row in found] == ["photo"]
    found = done(client.get("/api/forward", params={"entity": "photo"}))["rows"]
    assert [row["id"] for row in found] == ["totals"]
    assert client.post("/api/jobs/photos/elements", **body).status_code == 409
    assert client.post("/api/jobs/none/finish").status_code == 404
    assert client.get("/api/backward", params={"entity": "nobody"}).status_code == 404


def test_removing(service: Service, client: TestClient) -> None:
    assert done(client.delete("/api/flows/watch")) == {"removed": "watch"}
    assert client.get("/api/flows/watch").status_code == 404
    assert client.delete("/api/flows/watch").status_code == 404
    assert done(client.get("/api/results?sink=out&limit=1"))["rows"], "its results stay"
