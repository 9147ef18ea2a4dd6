"""What is answered: exact values in both forms, pages without gaps, limits that are told."""

from __future__ import annotations

import base64
import json
import math
import random
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from headwater import streams as registry
from headwater.plain import plain
from headwater.server.answers import as_json, safe
from headwater.store import EmbeddedWriter, ResultSet
from tests.server.api import support
from tests.server.api.support import ARROW, AUTH, Place, arrow, event, few, served
from tests.store.small import TIME, at, batch, flow, sink, source

LINES = {"Content-Type": "application/x-ndjson"}


# --- Arrow and JSON -----------------------------------------------------------------------------


def tables(place: Place) -> list[str]:
    """Every route that answers with a table, with something in it."""
    result = next(iter(place.made.results))
    record = place.made.results[result][1][0]
    return [
        "/api/results?sink=stopped&limit=1000",
        "/api/results?sink=stopped&order=oldest&limit=3",
        f"/api/backward?sink=stopped&result_id={result}",
        f"/api/backward?sink=stopped&result_id={result}&columns=false",
        f"/api/backward?entity=hw:traffic.standing.v1/stopped/{result}",
        f"/api/forward?source=reports&id={record}",
        f"/api/forward?source=reports&id={record}&id=0",
        f"/api/forward?entity=hw:traffic.standing.v1/reports/{record}",
        f"/api/graph/vertex?id={record}",
        "/api/marks",
        "/api/marked",
        "/api/jobs",
        "/api/streams/nums/events",
        "/api/streams/nums/events?newest=true&limit=5",
    ]


def test_tables_are_the_same_in_both_forms(client: TestClient, place: Place) -> None:
    body = {"source": "reports", "where": "speed >= 0", "reason": "all"}
    number = client.post("/api/marks", json=body, headers=AUTH).json()["mark"]
    for path in tables(place):
        told = client.get(path)
        assert told.status_code == 200, (path, told.text)
        found = arrow(client.get(path, headers={"Accept": f"text/html, {ARROW};q=0.9"}))
        ids = () if "/streams/" in path else ("id", "result_id", "source_id", "survivor")
        assert told.json() | {} == {**told.json(), **as_json(found, ids)}, path
        assert found.num_rows or path == "/api/jobs", path
    assert client.delete(f"/api/marks/{number}", headers=AUTH).status_code == 200
    assert client.delete(f"/api/marks/{number}", headers=AUTH).status_code == 404


def test_ids_are_texts_and_exact(client: TestClient, place: Place) -> None:
    rows = client.get("/api/results?sink=stopped&limit=1000").json()["rows"]
    assert {row["result_id"] for row in rows} == {str(one) for one in place.made.results}
    found = client.get("/api/graph").json()
    ids = {row["id"] for row in found["vertices"] if row["kind"] == "result"}
    assert ids == {str(one) for one in place.made.results}
    assert {type(row["source_id"]) for row in found["edges"]} == {str}


HOSTILE = [
    "<script>alert(1)</script>",
    "'; DROP TABLE results; --",
    "\u2028\u2029\u0000\x1b[31m\x7f",
    "‮evil\u200b",
    "a\nb\r\nc\td",
    '\\"\\u0000"',
    "data: x\n\nevent: y\n\n",
    "💥" * 50,
    "",
    "\ufeff",
    "x" * 10_000,
]
TYPES = pa.schema(
    [
        ("n", pa.int64()),
        ("big", pa.int64()),
        ("text", pa.string()),
        ("real", pa.float64()),
        ("exact", pa.decimal128(38, 10)),
        ("raw", pa.binary()),
        ("day", pa.date32()),
        ("at", TIME),
        ("many", pa.list_(pa.int64())),
        ("pair", pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])),
        ("by", pa.map_(pa.string(), pa.int64())),
        ("yes", pa.bool_()),
    ]
)


def hostile_rows() -> list[dict[str, Any]]:
    reals = [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308, 0.1]
    return [
        {
            "n": number,
            "big": [2**63 - 1, -(2**63), 2**53, 2**53 + 1, -(2**53) - 1, 0][number % 6],
            "text": text,
            "real": reals[number % len(reals)],
            "exact": Decimal("1234567890123456789012345678.0123456789") * (-1) ** number,
            "raw": bytes(range(256)) if number % 2 else b"",
            "day": date(1 + 900 * number, 2, 3),
            "at": datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=number - 3),
            "many": [2**60, None, -1] if number % 2 else None,
            "pair": {"a": 2**62, "b": [text, None]},
            "by": [(text, 2**61)],
            "yes": [True, False, None][number % 3],
        }
        for number, text in enumerate(HOSTILE)
    ]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A store with a result of each hostile text."""
    path = tmp_path_factory.mktemp("hostile")
    rows = hostile_rows()
    columns = {
        field.name: pa.array([row[field.name] for row in rows], field.type) for field in TYPES
    }
    made = pa.table({
        "__hw_id": pa.array([2**63 - 1 - n for n in range(len(rows))], pa.int64()),
        "__hw_time": pa.array([at(n) for n in range(len(rows))], TIME),
        **columns,
    })  # fmt: skip
    with EmbeddedWriter.open(path / "store") as writer:
        writer.register(flow(source(), sink("stopped", TYPES)))
        writer.commit(batch(0, {"stopped": ResultSet(made)}))
        service = support.Service(
            support.Settings(limits=few()),
            streams=registry.open(path / "streams"),
            flows=path / "flows",
            store=path / "store",
        )
        with support.client(service) as client:
            yield client


def test_hostile_values_come_back_as_they_are(hostile: TestClient) -> None:
    told = hostile.get("/api/results?sink=stopped&order=oldest&limit=100")
    assert told.status_code == 200
    assert "NaN" not in re.sub(r'"NaN"', "", told.text), "that is no JSON"
    got = {int(row["n"]): row for row in json.loads(told.text)["rows"]}
    for row in hostile_rows():
        seen = got[row["n"]]
        assert seen["result_id"] == str(2**63 - 1 - row["n"])
        assert seen["text"] == row["text"]
        assert int(seen["big"]) == row["big"]
        assert isinstance(seen["big"], str) == (abs(row["big"]) > 2**53)
        if math.isfinite(row["real"]):
            assert seen["real"] == row["real"]
            assert math.copysign(1, seen["real"]) == math.copysign(1, row["real"])
        else:
            assert (
                seen["real"]
                == {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(row["real"])]
            )
        assert Decimal(seen["exact"]) == row["exact"]
        assert base64.b64decode(seen["raw"]) == row["raw"]
        assert date.fromisoformat(seen["day"]) == row["day"]
        assert datetime.fromisoformat(seen["at"]) == row["at"]
        assert seen["at"].endswith("Z")
        assert seen["many"] == (None if row["many"] is None else [str(2**60), None, -1])
        assert seen["pair"] == {"a": str(2**62), "b": [row["text"], None]}
        assert seen["by"] == {row["text"]: str(2**61)}
        assert seen["yes"] == row["yes"]
    found = arrow(
        hostile.get("/api/results?sink=stopped&order=oldest&limit=100", headers={"Accept": ARROW})
    )
    by_n = {row["n"]: row for row in found.to_pylist()}
    for row in hostile_rows():
        same = {name: by_n[row["n"]][name] for name in row}
        assert {**same, "real": 0} == {**row, "real": 0}
        assert same["real"] == row["real"] or math.isnan(row["real"])


def test_hostile_values_in_conditions(hostile: TestClient) -> None:
    for number, text in enumerate(HOSTILE):
        if "\0" in text or len(text) > 1_000:
            continue
        where = "text = '" + text.replace("'", "''") + "'"
        rows = hostile.get("/api/results", params={"sink": "stopped", "where": where}).json()[
            "rows"
        ]
        assert [row["n"] for row in rows] == [number], text


@given(values=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**54), 2**54)))
def test_numbers_that_javascript_would_round_are_texts(values: list[int]) -> None:
    told = json.loads(json.dumps(safe(plain(values))))
    assert [int(one) for one in told] == values
    assert all(float(one) == one for one in told if isinstance(one, int))


# --- publishing ---------------------------------------------------------------------------------


def test_events_come_in_all_forms(client: TestClient, place: Place) -> None:
    url = "/api/streams/nums/events"
    before = place.streams.table("nums").num_rows
    one = client.post(url, json=event(100), headers=AUTH)
    assert (one.status_code, one.json()["events"]) == (200, 1)
    many = client.post(url, json=[event(101), event(102)], headers=AUTH)
    assert many.json()["events"] == 2
    lines = b"\n".join(json.dumps(event(n)).encode() for n in range(103, 106)) + b"\n\n"
    assert client.post(url, content=lines, headers={**AUTH, **LINES}).json()["events"] == 3
    table = place.streams.table("nums").slice(0, 2)
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    sent = client.post(
        url, content=out.getvalue().to_pybytes(), headers={**AUTH, "Content-Type": ARROW}
    )
    assert sent.json()["events"] == 2
    assert client.post(url, json=[], headers=AUTH).json()["events"] == 0
    rows = place.streams.table("nums").slice(before)
    assert rows["n"].to_pylist() == [100, 101, 102, 103, 104, 105, 0, 1]
    told = client.get(url, params={"after": one.json()["start"], "limit": 3}).json()
    assert [row["n"] for row in told["rows"]] == [100, 101, 102]
    told = client.get(url, params={"after": told["position"]}).json()
    assert [row["n"] for row in told["rows"]] == [103, 104, 105, 0, 1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"n": "x"},
        {"n": 1.5},
        {"n": 2**63},
        {"at": "soon"},
        {"v": "NaN?"},
        {"k": 3},
        {"k": {"a": 1}},
        {"more": 1},
        {"n": [1]},
        {"n": True},
    ],
)
def test_all_or_none(client: TestClient, place: Place, wrong: dict[str, Any]) -> None:
    before = place.streams.table("nums").num_rows
    rows = [event(n) for n in range(50)]
    rows[37] = {**rows[37], **wrong}
    for body, kind in (
        (json.dumps(rows).encode(), "application/json"),
        ("\n".join(map(json.dumps, rows)).encode(), "application/x-ndjson"),
    ):
        told = client.post(
            "/api/streams/nums/events", content=body, headers={**AUTH, "Content-Type": kind}
        )
        assert told.status_code == 422, told.text
        assert "event 37" in told.json()["error"]
    assert place.streams.table("nums").num_rows == before


def test_a_key_makes_it_once(place: Place) -> None:
    streams = place.streams
    before = streams.table("nums").num_rows
    with served(place.service()) as address, ThreadPoolExecutor(8) as pool:
        url = f"{address}/api/streams/nums/events"

        def send(number: int) -> dict[str, Any]:
            rows = [event(1_000 + number % 4 * 10 + n) for n in range(10)]
            told = httpx.post(
                url, params={"key": f"batch {number % 4}"}, json=rows, headers=AUTH, timeout=30
            )
            assert told.status_code == 200, told.text
            found: dict[str, Any] = told.json()
            return found

        told = list(pool.map(send, range(32)))
    assert sum(each["events"] for each in told) == 40
    assert sum(not each["duplicate"] for each in told) == 4
    assert streams.table("nums").num_rows == before + 40


def test_a_stream_that_is_stopped_takes_none(client: TestClient, place: Place) -> None:
    place.streams.create("held", "n bigint")
    url = "/api/streams/held"
    assert client.post(f"{url}/stop", headers=AUTH).status_code == 200
    told = client.post(f"{url}/events", json={"n": 1}, headers=AUTH)
    assert told.status_code == 409
    assert client.get(url).json()["state"] == "stopped"
    assert client.post(f"{url}/resume", headers=AUTH).status_code == 200
    assert client.post(f"{url}/events", json={"n": 1}, headers=AUTH).status_code == 200
    assert client.delete(url, headers=AUTH).status_code == 200
    assert client.get(url).status_code == 404
    body = {"name": "held", "schema": "n bigint, at timestamp", "event_time": "at", "id": "n"}
    told = client.post("/api/streams", json=body, headers=AUTH)
    assert (told.status_code, told.json()["fields"][0]) == (201, {"name": "n", "type": "bigint"})
    assert client.post("/api/streams", json=body, headers=AUTH).status_code == 409


def test_arrow_that_points_beyond_its_end(client: TestClient) -> None:
    """Bytes changed at random: refused or taken, but nothing is read that was not sent."""
    table = pa.table({"text": pa.array(["one", "two", None, "four"] * 20)})
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    whole = out.getvalue().to_pybytes()
    chance = random.Random(5)
    for _ in range(150):
        body = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            body[chance.randrange(len(body))] = chance.randrange(256)
        told = client.post(
            "/api/streams/quiet/events",
            content=bytes(body),
            headers={**AUTH, "Content-Type": ARROW},
        )
        assert told.status_code in (200, 409, 422), told.text


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
