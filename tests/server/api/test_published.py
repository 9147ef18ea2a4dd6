"""What is published by REST: events in all forms, all of a request or none of it, once."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pyarrow as pa
import pytest
from fastapi.testclient import TestClient

from tests.server.api import support
from tests.server.api.support import ARROW, AUTH, Place, event, few, served

LINES = {"Content-Type": "application/x-ndjson"}


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


def test_arrow_that_swells(place: Place) -> None:
    """Some kilobytes that would be many megabytes: refused before they are unpacked."""

    def sent(table: pa.Table, compression: str | None = None) -> Any:
        out = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression=compression)
        with pa.ipc.new_stream(out, table.schema, options=options) as stream:
            stream.write_table(table)
        body = out.getvalue().to_pybytes()
        assert len(body) < 100_000
        headers = {**AUTH, "Content-Type": ARROW}
        return client.post("/api/streams/quiet/events", content=body, headers=headers)

    with support.client(place.service(limits=few(unpacked=1 << 20))) as client:
        zeros, texts = pa.array([""] * 400_000), pa.array(["x" * 20_000] * 60)
        for swelling in (
            sent(pa.table({"text": zeros}), "zstd"),
            sent(pa.table({"text": zeros}), "lz4"),
            sent(pa.table({"text": texts.dictionary_encode()})),
        ):
            assert (swelling.status_code, swelling.json()["kind"]) == (413, "TooLarge")
            assert "1 MiB once it is unpacked" in swelling.json()["error"]
        for fine in (
            sent(pa.table({"text": zeros.slice(0, 40_000)}), "zstd"),
            sent(pa.table({"text": texts.slice(0, 40).dictionary_encode()}), "lz4"),
        ):
            assert fine.status_code == 200, fine.text
