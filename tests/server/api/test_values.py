"""What is answered: exact values, the same as Arrow and as JSON."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from headwater import streams as registry
from headwater.plain import plain
from headwater.server.answers import as_json, encoded, safe
from headwater.store import EmbeddedWriter, ResultSet
from tests.server.api import support
from tests.server.api.support import ARROW, AUTH, Place, arrow, few
from tests.store.small import TIME, at, batch, flow, sink, source


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
        assert told.json() | {} == {**told.json(), **json.loads(encoded(as_json(found, ids)))}, path
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
