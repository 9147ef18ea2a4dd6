"""What is answered: pages without gaps, limits that are told, marks, the service itself."""

from __future__ import annotations

import random
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from fastapi.testclient import TestClient

from headwater import streams as registry
from tests.server.api import support
from tests.server.api.support import ARROW, AUTH, Place, arrow, event, few, served

# --- pages --------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_pages_have_every_result_once_while_others_come(tmp_path: Path, order: str) -> None:
    with support.place(tmp_path) as place, support.client(place.service()) as client:
        known, seen, after = set(place.made.results), list[str](), None
        for number in range(100):
            params = {"sink": "stopped", "limit": 3, "order": order}
            told = client.get(
                "/api/results", params={**params, **({"after": after} if after else {})}
            )
            page = told.json()
            assert len(page["rows"]) <= 3
            assert page["truncated"] is False
            seen += [row["result_id"] for row in page["rows"]]
            if number in (1, 3):
                place.add(2)
            after = page["next"]
            if after is None:
                break
        found = [int(one) for one in seen]
        assert len(found) == len(set(found)), "none twice"
        if order == "newest":
            assert set(found) == known, "those that come later are on no later page"
        else:
            assert set(found) == set(place.made.results), "those that come later are at the end"
        batches = [place.made.results[one][0] for one in found]
        assert batches == sorted(batches, reverse=order == "newest")


def test_answers_that_are_cut_say_how_much_there_is(place: Place) -> None:
    with support.client(place.service(limits=few(rows=4))) as client:
        result = max(place.made.results, key=lambda one: len(place.made.results[one][1]))
        held = len(place.made.results[result][1])
        url = f"/api/backward?sink=stopped&result_id={result}&limit=1000"
        told = client.get(url).json()
        assert (len(told["rows"]), told["truncated"], told["total"]) == (4, True, held)
        response = client.get(url, headers={"Accept": ARROW})
        assert arrow(response).num_rows == 4
        assert response.headers["x-headwater-truncated"] == str(held)
        told = client.get(f"/api/backward?sink=stopped&result_id={result}&limit=2").json()
        assert (len(told["rows"]), told["truncated"], told["total"]) == (2, True, held)
        page = client.get("/api/results?sink=stopped&limit=1000").json()
        assert (len(page["rows"]), page["truncated"]) == (4, False)
        assert page["next"]
        assert len(client.get("/api/streams/nums/events?limit=1000").json()["rows"]) == 4
        body = {"source": "reports", "where": "speed >= 0", "reason": "all"}
        told = client.post("/api/marks", json=body, headers=AUTH).json()
        assert len(told["results"]["rows"]) == 4
        assert told["results"]["truncated"] is True
        assert told["results"]["total"] == len(place.made.results)
        client.delete(f"/api/marks/{told['mark']}", headers=AUTH)


def test_pages_of_where_results_came_from(client: TestClient, place: Place) -> None:
    """Whatever is cut can be gone on with, in both forms, and ends."""
    body = {"source": "reports", "where": "speed >= 0", "reason": "all"}
    number = client.post("/api/marks", json=body, headers=AUTH).json()["mark"]
    results = sorted(place.made.results)[:6]
    records = sorted({record for one in results for record in place.made.results[one][1]})[:6]
    several = "&".join(f"result_id={one}" for one in results)
    of_records = "&".join(f"id={one}" for one in records)
    for path in (
        f"/api/backward?sink=stopped&{several}",
        f"/api/backward?sink=stopped&result_id={results[0]}",
        f"/api/forward?source=reports&{of_records}",
        f"/api/forward?source=reports&id={records[0]}",
        "/api/marked?",
    ):
        whole = client.get(path).json()
        assert (whole["truncated"], whole["next"]) == (False, None)
        assert whole["rows"], path
        for accept in ({}, {"Accept": ARROW}):
            found: list[dict[str, Any]] = []
            after: str | None = None
            for _ in range(len(whole["rows"])):
                asked = {**({"after": after} if after else {}), "limit": "3"}
                told = client.get(f"{path}&{urlencode(asked)}", headers=accept)
                assert told.status_code == 200, told.text
                if accept:
                    found += arrow(told).to_pylist()
                    after = told.headers.get("x-headwater-next")
                else:
                    found += told.json()["rows"]
                    after = told.json()["next"]
                if after is None:
                    break
            ids = ("result_id", "id", "source", "sink", "mark")
            pages = [[str(row.get(name)) for name in ids] for row in found]
            assert pages == [[str(row.get(name)) for name in ids] for row in whole["rows"]]
        for wrong in ("x", "[]", '["a", "b"]', "[1, 2]", "[null, null]", '{"a": 1}', "[[1], {}]"):
            told = client.get(f"{path}&{urlencode({'after': wrong})}")
            assert told.status_code == 422, (path, wrong)
    client.delete(f"/api/marks/{number}", headers=AUTH)


def test_an_export_has_a_limit(place: Place) -> None:
    with support.client(place.service(limits=few(export=20_000))) as client:
        told = client.get("/api/export?format=prov-json")
        assert (told.status_code, told.json()["kind"]) == (413, "TooLarge")
        assert "export fewer results" in told.json()["error"]
        one = next(iter(place.made.results))
        told = client.get(f"/api/export?format=prov-json&sink=stopped&result_id={one}")
        assert told.status_code == 200, told.text
        assert told.json()["entity"]


def test_the_graph_is_cut(place: Place) -> None:
    with support.client(place.service(limits=few(vertices=7))) as client:
        told = client.get("/api/graph?limit=100000").json()
        assert told["shown"]["vertices"] == len(told["vertices"]) == 7
        assert told["totals"]["vertices"] == len(place.made.records) + len(place.made.results)
        assert client.get("/api/graph?limit=2").json()["shown"]["vertices"] == 2
        assert client.get("/api/graph?limit=0").status_code == 422


# --- marks --------------------------------------------------------------------------------------


def test_marks_are_told_with_what_they_are_on(client: TestClient, place: Place) -> None:
    result = next(iter(place.made.results))
    record = place.made.results[result][1][0]
    asked = {"source": "reports", "id": str(record)}
    assert client.get("/api/record", params=asked).json()["marked"] == []
    one = {"sink": "stopped", "result_id": str(result)}
    assert client.get("/api/result", params=one).json()["marked"] is False
    body = {"source": "reports", "ids": [str(record)], "reason": "by hand"}
    number = client.post("/api/marks", json=body, headers=AUTH).json()["mark"]
    assert client.get("/api/record", params=asked).json()["marked"] == [number]
    assert client.get("/api/result", params=one).json()["marked"] is True
    shown = {row["id"]: row["marked"] for row in client.get("/api/graph").json()["vertices"]}
    assert shown[str(record)] is True
    assert shown[str(result)] is True
    told = client.get("/api/marked?sink=stopped").json()["rows"]
    assert str(result) in {row["result_id"] for row in told}
    assert client.delete(f"/api/marks/{number}", headers=AUTH).json() == {"removed": number}
    assert client.get("/api/record", params=asked).json()["marked"] == []


def test_erasing(tmp_path: Path) -> None:
    with support.place(tmp_path) as place, support.client(place.service()) as client:
        record = next(iter(place.made.records))
        body = {"source": "reports", "ids": [str(record)], "reason": "asked for", "dry_run": True}
        told = client.post("/api/erasures", json=body, headers=AUTH)
        assert told.status_code == 200, told.text
        assert told.json()["dry_run"] is True
        asked = {"source": "reports", "id": str(record)}
        assert client.get("/api/record", params=asked).json()["row"] is not None
        told = client.post("/api/erasures", json={**body, "dry_run": False}, headers=AUTH)
        assert (told.status_code, told.json()["records"]) == (200, 1)
        assert client.get("/api/record", params=asked).json()["row"] is None
        for wrong in ({}, {"where": "true", "ids": ["1"]}, {"mark": 1, "ids": ["1"]}, {"mark": 9}):
            told = client.post("/api/erasures", json={"source": "reports", **wrong}, headers=AUTH)
            assert told.status_code in (404, 409, 422), wrong


# --- the service itself -------------------------------------------------------------------------

SAMPLE = re.compile(
    r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? ([-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|Inf|NaN))$"
)
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')


def parsed(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Prometheus' text, read by its rules: each name has one type, no sample comes twice."""
    types: dict[str, str] = {}
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    order: list[str] = []
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# "):
            _, kind, name, rest = line.split(" ", 3)
            assert kind in ("HELP", "TYPE")
            if kind == "TYPE":
                assert name not in types, f"{name} has a type already"
                assert rest in ("counter", "gauge", "histogram", "summary", "untyped")
                types[name] = rest
            continue
        match = SAMPLE.match(line)
        assert match, line
        name, labels, value = match.groups()
        base = re.sub("_(bucket|sum|count)$", "", name)
        family = base if types.get(base) in ("histogram", "summary") else name
        assert family in types, f"{name} has no type"
        if types[family] == "counter":
            assert name.endswith("_total"), name
        if not order or order[-1] != family:
            assert family not in order, f"{family} is in two places"
            order.append(family)
        pairs = tuple(LABEL.findall(labels or ""))
        assert "".join(f'{n}="{v}",' for n, v in pairs).rstrip(",") == (labels or "").rstrip(",")
        assert len({n for n, _ in pairs}) == len(pairs)
        assert pairs not in found.setdefault(name, {}), f"{line} comes twice"
        found[name][pairs] = float(value)
    return found


def test_metrics_are_read_by_prometheus(place: Place) -> None:
    with support.client(place.service()) as client:
        for _ in range(3):
            client.get("/api/store")
        client.get("/api/none")
        client.post("/api/streams/nums/events", json=[event(1), event(2)], headers=AUTH)
        told = client.get("/metrics")
        assert told.headers["content-type"].startswith("text/plain; version=0.0.4")
        found = parsed(told.text)
        requests = found["headwater_http_requests_total"]
        assert requests[("method", "GET"), ("status", "2xx")] == 3
        assert requests[("method", "GET"), ("status", "4xx")] == 1
        assert found["headwater_http_published_events_total"][()] == 2
        assert found["headwater_http_followers"][()] == 0
        buckets = list(found["headwater_http_request_seconds_bucket"].values())
        assert buckets == sorted(buckets)
        assert buckets[-1] == found["headwater_http_request_seconds_count"][()] == 5


def test_metrics_of_methods_that_there_are_not(place: Place) -> None:
    with support.client(place.service()) as client:
        for number in range(50):
            client.request(f"X{number}", "/api/store")
        found = parsed(client.get("/metrics").text)
        assert len(found["headwater_http_requests_total"]) < 10, "nobody makes more of them"


def test_health(client: TestClient) -> None:
    told = client.get("/api/health").json()
    assert told["status"] == "ok"
    assert told["flows"] == {"running": 0, "stopped": 2, "failed": 0}
    assert (told["runs"], told["reads"], told["writes"]) == (False, "open", "token")
    assert told["allow_code"] is False


def test_a_service_without_a_store(tmp_path: Path) -> None:
    service = support.Service(
        support.Settings(token=support.TOKEN, limits=few()),
        streams=registry.open(tmp_path / "streams"),
        flows=tmp_path / "flows",
        store=tmp_path / "store",
    )
    with support.client(service) as client:
        assert client.get("/api/health").status_code == 200
        assert client.get("/api/flows").json() == {"flows": []}
        assert client.get("/api/streams").json() == {"streams": []}
        assert client.get("/metrics").status_code == 200
        for path in ("/api/store", "/api/results", "/api/graph", "/api/marks", "/api/jobs"):
            told = client.get(path)
            assert (told.status_code, told.json()["kind"]) == (409, "StoreError"), path
            assert "no flow has run" in told.json()["error"]


def test_what_needs_a_host_says_so(client: TestClient) -> None:
    for method, path in (
        ("POST", "/api/flows/weather/stop"),
        ("POST", "/api/flows/weather/resume"),
        ("POST", "/api/flows/weather/undo"),
        ("DELETE", "/api/flows/weather"),
        ("DELETE", "/api/queries/few"),
        ("POST", "/api/jobs/late/elements"),
    ):
        told = client.request(method, path, headers=AUTH)
        assert told.status_code == 409, (path, told.text)
        assert "only shows" in told.json()["error"]
    told = client.post("/api/flows", json={"text": support.FLOW}, headers=AUTH)
    assert told.status_code == 409
    assert client.post("/api/flows/none/stop", headers=AUTH).status_code == 404


def test_many_at_once_get_right_answers(place: Place) -> None:
    """32 threads, each asking for what it knows the answer of."""
    results = sorted(place.made.results)
    with served(place.service()) as address, httpx.Client(base_url=address, timeout=60) as client:

        def ask(number: int) -> None:
            chance = random.Random(number)
            for _ in range(12):
                result = chance.choice(results)
                _, held = place.made.results[result]
                match chance.randrange(6):
                    case 0:
                        told = client.get(f"/api/backward?sink=stopped&result_id={result}").json()
                        assert sorted(int(row["id"]) for row in told["rows"]) == sorted(held)
                    case 1:
                        record = chance.choice(held)
                        told = client.get(f"/api/forward?source=reports&id={record}").json()
                        wanted = {
                            str(r) for r, (_, of) in place.made.results.items() if record in of
                        }
                        assert {row["result_id"] for row in told["rows"]} == wanted
                    case 2:
                        told = client.get(f"/api/result?sink=stopped&result_id={result}").json()
                        assert told["row"]["n"] == len(held)
                    case 3:
                        told = client.get("/api/graph?limit=20").json()
                        assert len(told["vertices"]) == 20
                    case 4:
                        told = client.get("/api/results?sink=stopped&limit=500").json()
                        assert {row["result_id"] for row in told["rows"]} == set(map(str, results))
                    case 5:
                        told = client.post("/api/flows/check", json={"text": support.FLOW}).json()
                        assert told["flow"] == "weather"

        with ThreadPoolExecutor(32) as pool:
            list(pool.map(ask, range(32)))
