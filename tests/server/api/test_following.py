"""Server-sent events: they come, each once, and one can go on after the last that was seen."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from headwater.server import sending
from headwater.server.routes import graph as graph_routes
from headwater.server.routes import streams as stream_routes
from headwater.server.service import Service
from tests.server.api import support
from tests.server.api.support import Follower, Place, eventually, few, moment, served


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Each test changes it."""
    with support.place(tmp_path) as made:
        yield made


@pytest.fixture
def service(place: Place) -> Service:
    """A service on it."""
    return place.service()


@pytest.fixture
def address(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where it is served, looking often."""
    monkeypatch.setattr(stream_routes, "LOOK", 0.02)
    monkeypatch.setattr(stream_routes, "EVERY", 0.1)
    monkeypatch.setattr(graph_routes, "LOOK", 0.02)
    with served(service) as address:
        yield address


def publish(place: Place, first: int, last: int, at_once: int = 3, stream: str = "nums") -> None:
    for start in range(first, last, at_once):
        rows: list[dict[str, Any]] = [
            {"n": n, "at": moment(n), "k": "a", "v": 1.0}
            for n in range(start, min(last, start + at_once))
        ]
        if stream == "few":
            rows = [{"n": row["n"], "at": row["at"], "event_id": row["n"]} for row in rows]
        place.streams.publish(stream, rows)


def numbers(follower: Follower) -> list[int]:
    return [row["n"] for event in follower.named("events") for row in event["data"]["rows"]]


def test_events_of_a_stream_come_as_they_are_published(place: Place, address: str) -> None:
    follower = Follower(f"{address}/api/streams/nums/follow")
    publish(place, 100, 130)
    eventually(lambda: len(numbers(follower)) >= 30)
    assert numbers(follower) == list(range(100, 130))
    for event in follower.named("events"):
        assert event["id"] == event["data"]["position"]
        assert [column["name"] for column in event["data"]["columns"]] == ["n", "at", "k", "v"]


def test_from_the_start_or_after_a_position(place: Place, address: str) -> None:
    whole = Follower(f"{address}/api/streams/nums/follow?after=0")
    eventually(lambda: len(numbers(whole)) >= 20)
    assert numbers(whole) == list(range(20))
    some = Follower(f"{address}/api/streams/nums/follow?after=15")
    eventually(lambda: len(numbers(some)) >= 5)
    assert numbers(some) == list(range(15, 20))
    for wrong in ("x", "-1", "1.5", "{"):
        told = httpx.get(f"{address}/api/streams/nums/follow", params={"after": wrong})
        assert told.status_code in (409, 422), wrong
    assert httpx.get(f"{address}/api/streams/none/follow").status_code == 404


@pytest.mark.parametrize(
    ("path", "stream"), [("/api/streams/nums/follow", "nums"), ("/api/queries/few/follow", "few")]
)
def test_going_on_loses_nothing_and_doubles_nothing(
    place: Place, address: str, path: str, stream: str
) -> None:
    """Followers that leave again and again, while events come."""
    follower = Follower(f"{address}{path}")
    seen: list[int] = []
    last = None
    for part in range(5):
        publish(place, 200 + part * 20, 210 + part * 20, stream=stream)
        eventually(lambda known=follower: len(numbers(known)) >= 4)  # type: ignore[misc]
        follower.leave()
        # What comes while it goes may be read by it, or by the next.
        publish(place, 210 + part * 20, 220 + part * 20, stream=stream)
        assert follower.ended.wait(20)
        events = follower.named("events")
        seen += [row["n"] for event in events for row in event["data"]["rows"]]
        last = events[-1]["id"]
        follower = Follower(f"{address}{path}", last_event_id=last)
    eventually(lambda: seen + numbers(follower) == list(range(200, 300)))
    assert follower.status == 200


def test_large_batches_come_in_parts(place: Place, address: str) -> None:
    place.streams.publish(
        "nums", [{"n": n, "at": moment(n), "k": "", "v": 0.0} for n in range(3_000)]
    )
    follower = Follower(f"{address}/api/streams/nums/follow?after=20")
    eventually(lambda: len(numbers(follower)) >= 3_000)
    assert numbers(follower) == list(range(3_000))
    events = follower.named("events")
    assert max(len(event["data"]["rows"]) for event in events) <= 500
    middle = events[2]["id"]
    again = Follower(f"{address}/api/streams/nums/follow", last_event_id=middle)
    eventually(lambda: numbers(again) == list(range(int(middle) - 20, 3_000)))


def test_hostile_texts_stay_one_event(place: Place, address: str) -> None:
    texts = [
        "data: x\n\nevent: evil\ndata: {}\n\n",
        "\r\n\r\n",
        "\u2028\u2029\x85\x0b",
        ":\n",
        "id: 5\n",
        "\0",
    ]
    follower = Follower(f"{address}/api/streams/quiet/follow?after=0")
    place.streams.publish("quiet", [{"text": text} for text in texts])
    eventually(lambda: follower.named("events"))
    rows = [row for event in follower.events for row in event["data"]["rows"]]
    assert [row["text"] for row in rows] == texts
    assert {event["event"] for event in follower.events} == {"events"}


def test_the_end_of_a_stream_is_told(place: Place, address: str) -> None:
    follower = Follower(f"{address}/api/streams/quiet/follow")
    removed = Follower(f"{address}/api/streams/few/follow")
    place.streams.stop("quiet")
    assert follower.ended.wait(20)
    assert [event["event"] for event in follower.events] == ["ended"]
    place.streams.remove("few", force=True)
    assert removed.ended.wait(20)
    (trouble,) = removed.events
    assert trouble["event"] == "trouble"
    assert "few" in trouble["data"]["error"]


def test_all_streams_are_told_when_something_changes(place: Place, address: str) -> None:
    follower = Follower(f"{address}/api/streams/follow?intervals=2&interval=3600")
    eventually(lambda: follower.named("streams"))
    names = [stream["name"] for stream in follower.events[0]["data"]["streams"]]
    assert names == ["few", "nums", "quiet"]
    place.streams.publish("quiet", [{"text": "new"}])
    eventually(
        lambda: any(
            stream["name"] == "quiet" and stream["events"] == 1
            for event in follower.named("streams")
            for stream in event["data"]["streams"]
        )
    )


def test_flows_are_told(address: str) -> None:
    follower = Follower(f"{address}/api/flows/follow")
    eventually(lambda: follower.named("status"))
    told = follower.events[0]["data"]
    assert told.keys() == {"at", "flows", "results"}
    (last,) = told["results"]
    assert last["sink"] == "stopped"
    assert last["rows"]


# --- the graph ----------------------------------------------------------------------------------


def test_the_graph_grows_as_batches_come(place: Place, address: str) -> None:
    follower = Follower(f"{address}/api/graph/follow")
    for _ in range(4):
        place.add()
    eventually(lambda: sum(e["data"]["batches"] for e in follower.named("change")) >= 4)
    changes = [event["data"] for event in follower.named("change")]
    assert [int(event["id"]) for event in follower.events] == [c["position"] for c in changes]
    assert sum(change["batches"] for change in changes) == 4
    last = changes[-1]
    whole = httpx.get(f"{address}/api/graph").json()
    assert last["totals"] == whole["totals"]
    assert last["position"] == whole["position"]
    labels = {label["id"] for change in changes for label in change["labels"]}
    assert labels == {
        str(one) for one, came in place.made.labels.items() if came >= support.BATCHES
    }
    assert {label["kind"] for change in changes for label in change["labels"]} <= {"source"}
    assert {label["name"] for change in changes for label in change["labels"]} <= {"reports"}


def test_a_graph_that_was_followed_is_the_graph(place: Place, address: str) -> None:
    """What is seen at first and what is told later make the whole, wherever one goes on."""
    first = httpx.get(f"{address}/api/graph").json()
    vertices = {(v["kind"], v["id"]) for v in first["vertices"]}
    edges = {(e["source_id"], e["result_id"]) for e in first["edges"]}
    expired = {v["id"] for v in first["vertices"] if v["kind"] == "source" and v["expired"]}
    last = str(first["position"])
    for _ in range(3):
        place.add(2)
        follower = Follower(f"{address}/api/graph/follow", last_event_id=last)
        eventually(lambda known=follower: sum(e["data"]["batches"] for e in known.events) >= 2)  # type: ignore[misc]
        for event in follower.named("change"):
            told = event["data"]
            assert told["truncated"] is False
            vertices |= {(v["kind"], v["id"]) for v in told["vertices"]}
            edges |= {(e["source_id"], e["result_id"]) for e in told["edges"]}
            expired |= {label["id"] for label in told["labels"]}
            last = event["id"]
        follower.leave()
    whole = httpx.get(f"{address}/api/graph?limit=5000").json()
    assert vertices == {(v["kind"], v["id"]) for v in whole["vertices"]}
    assert edges == {(e["source_id"], e["result_id"]) for e in whole["edges"]}
    assert expired == {v["id"] for v in whole["vertices"] if v["kind"] == "source" and v["expired"]}


def test_many_batches_at_once_are_one_change(place: Place, address: str) -> None:
    follower = Follower(f"{address}/api/graph/follow?after=0&limit=10")
    eventually(lambda: follower.named("change"))
    told = follower.events[0]["data"]
    assert told["batches"] == support.BATCHES
    assert len(told["vertices"]) <= 10
    assert told["truncated"] is True
    assert told["counts"] == told["totals"]


@pytest.mark.parametrize("wrong", ["x", "-1", "²", "9" * 30, "1.5"])
def test_strange_places_in_the_graph(address: str, wrong: str) -> None:
    told = httpx.get(f"{address}/api/graph/follow", params={"after": wrong})
    assert told.status_code == 422
    # A client's header is as old as it may be: what is no position is none.
    follower = Follower(f"{address}/api/graph/follow", last_event_id=wrong.replace("²", "2x"))
    assert follower.status == 200
    follower.leave()


def test_flows_without_a_graph(address: str) -> None:
    for query in ("flow=none", "flow=none&after=3"):
        told = httpx.get(f"{address}/api/graph/follow?{query}")
        assert (told.status_code, told.json()["kind"]) == (404, "UnknownName")


# --- connections --------------------------------------------------------------------------------


def test_something_is_said_while_nothing_comes(
    place: Place, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "ALIVE", 0.1)
    follower = Follower(f"{address}/api/streams/quiet/follow")
    eventually(lambda: follower.comments >= 4)
    assert follower.events == []


def test_a_client_that_goes_frees_its_place(service: Service, place: Place, address: str) -> None:
    paths = ["/streams/quiet/follow", "/graph/follow", "/flows/follow", "/streams/follow"]
    for path in paths * 3:
        with httpx.stream("GET", f"{address}/api{path}") as told:
            assert next(told.iter_lines()) == ": headwater"
            assert told.headers["content-type"].startswith("text/event-stream")
            assert told.headers["cache-control"] == "no-store"
    eventually(lambda: service.counts.followers == 0)
    lines = httpx.get(f"{address}/metrics").text.splitlines()
    assert next(line for line in lines if line.startswith("headwater_http_followers")).endswith(
        " 0"
    )


def test_the_end_of_the_service_ends_followers_soon(place: Place) -> None:
    service = place.service()
    with served(service) as address:
        paths = ["/streams/quiet/follow", "/graph/follow", "/flows/follow", "/streams/follow"]
        followers = [Follower(f"{address}/api{path}") for path in paths]
        eventually(lambda: service.counts.followers == 4)
        begun = time.monotonic()
    assert time.monotonic() - begun < 6
    for follower in followers:
        assert follower.ended.wait(5)
    assert service.counts.followers == 0


def test_one_who_does_not_read_holds_up_nobody(place: Place) -> None:
    """Its connection fills up; others are served as ever."""
    service = place.service(limits=few(followers=4))
    text = "x" * 100_000
    with served(service) as address:
        with httpx.stream("GET", f"{address}/api/streams/quiet/follow?after=0") as told:
            assert told.status_code == 200
            for _ in range(40):
                place.streams.publish("quiet", [{"text": text}] * 5)
            reader = Follower(f"{address}/api/streams/quiet/follow?after=0")
            eventually(lambda: sum(len(e["data"]["rows"]) for e in reader.events) == 200)
            assert httpx.get(f"{address}/api/health").status_code == 200
        eventually(lambda: service.counts.followers <= 1)
    assert json.dumps(reader.events[0]["data"]["position"])
