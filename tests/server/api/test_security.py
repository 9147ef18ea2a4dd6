"""Who may do what: tokens, names, pages of other places, rates; and what every answer says."""

from __future__ import annotations

import hmac
import logging
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from headwater.errors import HeadwaterError
from headwater.server import guard
from headwater.server.guard import CHECKS, POLICY, Rates
from headwater.server.operations import description
from headwater.server.service import Service
from headwater.server.settings import Settings
from tests.server.api import support
from tests.server.api.support import AUTH, READ_TOKEN, TOKEN, Follower, Place, few, served

PATHS = description()["paths"]
NAMES = {"flow": "weather", "stream": "nums", "query": "few", "job": "late", "node": "solve"}
OTHERS = {"action": "pause", "version": "1", "number": "1"}
WRITES = [
    (method, path.format(**NAMES, **OTHERS))
    for path, methods in PATHS.items()
    for method in methods
    if method != "get" and path not in CHECKS
]
READS = [
    path.format(**NAMES, **OTHERS)
    for path, methods in PATHS.items()
    if "get" in methods and not path.endswith("/follow")
]
FILES = ["/", "/trace", "/live", "/js/main.js", "/style.css"]
WRONG = [
    {},
    {"Authorization": ""},
    {"Authorization": TOKEN},
    {"Authorization": "Bearer"},
    {"Authorization": "Bearer "},
    {"Authorization": "Bearer wrong"},
    {"Authorization": f"Bearer {TOKEN[:-1]}"},
    {"Authorization": f"Bearer {TOKEN}x"},
    {"Authorization": f"Bearer  {TOKEN}"},
    {"Authorization": f"Bearer {TOKEN.upper()}"},
    {"Authorization": f"Basic {TOKEN}"},
    {"Authorization": f"Bearer {TOKEN}é".encode("latin-1").decode("latin-1")},
    {"X-Token": TOKEN},
    {"Cookie": f"token={TOKEN}"},
]


# --- tokens -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "path"), WRITES)
def test_writing_needs_the_token(client: TestClient, method: str, path: str) -> None:
    for headers in WRONG:
        encoded = {name: value.encode("latin-1") for name, value in headers.items()}
        told = client.request(method.upper(), path, headers=encoded)
        assert told.status_code == 401, headers
        assert told.json()["kind"] == "Token"
        assert told.headers["www-authenticate"].startswith("Bearer")
        assert TOKEN not in told.text
    told = client.request(method.upper(), path, params={"token": TOKEN, "access_token": TOKEN})
    assert told.status_code == 401, "not in the address, which is logged everywhere"


def test_checks_need_none(client: TestClient) -> None:
    assert client.post("/api/flows/check", json={"text": "flow: a"}).status_code == 200
    document = {"flow": "a", "nodes": {}}
    assert client.post("/api/flows/write", json={"document": document}).status_code == 200
    told = client.post("/api/replay", json={"sink": "none", "result_id": "1"})
    assert told.status_code == 409, "not 401; this service has no Spark"


def test_tokens_are_compared_in_constant_time(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []

    def compare(given: bytes, known: bytes) -> bool:
        compared.append((given, known))
        return hmac.compare_digest(given, known)

    fake: Any = type("hmac", (), {"compare_digest": staticmethod(compare)})
    monkeypatch.setattr(guard, "hmac", fake)
    assert client.post("/api/streams/nums/stop", headers={"Authorization": "x"}).status_code == 401
    assert client.delete("/api/streams/none", headers=AUTH).status_code == 404
    assert compared == [
        (b"x", f"Bearer {TOKEN}".encode()),
        (f"Bearer {TOKEN}".encode(), f"Bearer {TOKEN}".encode()),
    ]


def test_reading_may_need_a_token_too(place: Place) -> None:
    with support.client(place.service(read_token=READ_TOKEN)) as client:
        for path in READS:
            told = client.get(path)
            wanted = 200 if path == "/api/health" else 401
            assert told.status_code == wanted, path
        for path in (*CHECKS, "/api/streams/nums/follow", "/api/openapi.json", "/metrics"):
            method = "POST" if path in CHECKS else "GET"
            assert client.request(method, path, json={}).status_code == 401, path
        for token in (READ_TOKEN, TOKEN):
            auth = {"Authorization": f"Bearer {token}"}
            assert client.get("/api/store", headers=auth).status_code == 200
            assert client.get("/metrics", headers=auth).status_code == 200
        auth = {"Authorization": f"Bearer {READ_TOKEN}"}
        told = client.post("/api/streams/quiet/stop", headers=auth)
        assert told.status_code == 401, "it is for reading"
        for path in FILES:
            assert client.get(path).status_code == 200, "the page itself has no secrets"
        assert client.get("/api/health").json()["reads"] == "token"


def test_a_service_for_reading_only(place: Place) -> None:
    with support.client(place.service(token=None)) as client:
        for method, path in WRITES:
            for headers in ({}, AUTH, {"Authorization": "Bearer None"}):
                told = client.request(method.upper(), path, headers=headers)
                assert (told.status_code, told.json()["kind"]) == (403, "ReadOnly")
        assert client.get("/api/store").status_code == 200
        assert client.get("/api/health").json()["writes"] == "off"


@pytest.mark.parametrize("token", ["", "short", "a" * 15, "ä" * 20])
def test_tokens_that_can_be_guessed_are_refused(token: str) -> None:
    with pytest.raises(HeadwaterError, match="too short or not plain text"):
        Settings(token=token)
    with pytest.raises(HeadwaterError, match="too short or not plain text"):
        Settings(read_token=token)


def test_tokens_are_told_nowhere(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    answers = []
    with (
        support.place(tmp_path) as own,
        served(service := own.service(read_token=READ_TOKEN)) as address,
        httpx.Client(base_url=address) as client,
    ):
        # What the client itself logs is not the service's doing.
        logging.getLogger("httpcore").setLevel(logging.CRITICAL)
        logging.getLogger("httpx").setLevel(logging.CRITICAL)
        for headers in (AUTH, {"Authorization": f"Bearer {READ_TOKEN}"}, {}):
            paths = (*READS, "/api/openapi.json", "/api/none", *FILES)
            answers += [client.get(path, headers=headers).text for path in paths]
            for method, path in WRITES:
                told = client.request(method, path, headers=headers, content=b"{")
                answers.append(told.text + str(told.headers))
    said = capfd.readouterr()
    for text in (*answers, said.out, said.err, caplog.text, repr(service.settings.limits)):
        for token in (TOKEN, READ_TOKEN):
            assert token not in text


# --- names and origins --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    (
        "evil.example evil.example:8260 localhost.evil.example 127.0.0.1.evil [::2] . "
        "localhost@evil.example 127.0.0.2 localhost:8260:evil 0.0.0.0"
    ).split(),
)
def test_other_names_are_not_known(client: TestClient, host: str) -> None:
    for path in ("/", "/api/health", "/api/store", "/js/main.js"):
        told = client.get(path, headers={"Host": host})
        assert (told.status_code, told.json()["kind"]) == (421, "Host"), path


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:8260", "[::1]", "[::1]:80"]
)
def test_own_names_are_known(client: TestClient, host: str) -> None:
    assert client.get("/api/health", headers={"Host": host}).status_code == 200


def test_a_name_that_was_allowed(place: Place) -> None:
    with support.client(place.service(hosts=("flows.example",))) as client:
        assert client.get("/api/health", headers={"Host": "flows.example"}).status_code == 200
        assert client.get("/api/health", headers={"Host": "localhost"}).status_code == 421


@pytest.mark.parametrize(
    "origin",
    (
        "https://evil.example null http://localhost.evil.example http://[ x file:// "
        "http://evil.example:8260 http://localhost@evil.example"
    ).split(),
)
def test_pages_of_other_places_may_not_write(client: TestClient, origin: str) -> None:
    for path in ("/api/streams/quiet/stop", "/api/flows/check", "/api/replay"):
        told = client.post(path, headers={**AUTH, "Origin": origin}, json={})
        assert (told.status_code, told.json()["kind"]) == (403, "Origin"), path
    told = client.get("/api/health", headers={"Origin": origin})
    assert told.status_code == 200
    assert "access-control-allow-origin" not in told.headers


@pytest.mark.parametrize("origin", ["http://127.0.0.1", "http://localhost:8260", "http://[::1]:1"])
def test_its_own_page_may(client: TestClient, origin: str) -> None:
    headers = {**AUTH, "Origin": origin}
    assert client.post("/api/streams/quiet/resume", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
def test_forms_of_other_pages_do_nothing(client: TestClient, place: Place, kind: str) -> None:
    """What a browser sends from anywhere without asking first."""
    before = place.streams.table("nums").num_rows
    body = b'{"n": 1, "text": "flow: a"}'
    for headers in ({"Content-Type": kind}, {"Content-Type": kind, **AUTH}):
        for method, path in WRITES:
            if method == "post" and path.endswith(("events", "flows", "marks", "erasures")):
                told = client.post(path, headers=headers, content=body)
                assert told.status_code in (
                    (401,) if headers.keys() == {"Content-Type"} else (415, 422)
                )
    told = client.post("/api/flows/check", headers={"Content-Type": kind}, content=body)
    assert told.status_code == 422
    assert place.streams.table("nums").num_rows == before


def test_browsers_may_not_ask_from_elsewhere(client: TestClient) -> None:
    told = client.options(
        "/api/streams/nums/events",
        headers={
            "Origin": "https://evil.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization",
        },
    )
    assert told.status_code >= 400
    assert not [name for name in told.headers if name.startswith("access-control")]


# --- headers ------------------------------------------------------------------------------------


def test_every_answer_says_what_browsers_must_know(place: Place) -> None:
    service = place.service(limits=few(body=100))
    service.store.marked = lambda *_: 1 / 0  # type: ignore[method-assign, assignment, return-value]
    with support.client(service) as client:
        asked = {
            "a table": client.get("/api/marks"),
            "Arrow": client.get("/api/marks", headers={"Accept": support.ARROW}),
            "an error": client.get("/api/flows/none"),
            "wrong values": client.get("/api/results?limit=x"),
            "no token": client.post("/api/streams"),
            "no such path": client.get("/api/none"),
            "not this way": client.put("/api/streams"),
            "too large": client.post("/api/streams", content=b"x" * 101, headers=AUTH),
            "another name": client.get("/", headers={"Host": "evil"}),
            "went wrong": client.get("/api/marked"),
            "a file": client.get("/api/export?format=dot"),
            "metrics": client.get("/metrics"),
            "description": client.get("/api/openapi.json"),
            **{path: client.get(path) for path in (*FILES, "/none.js")},
        }
        assert asked["went wrong"].status_code == 500
    for what, told in asked.items():
        assert told.headers["content-security-policy"] == POLICY, what
        assert told.headers["x-content-type-options"] == "nosniff", what
        assert told.headers["referrer-policy"] == "no-referrer", what
        assert told.headers["cross-origin-opener-policy"] == "same-origin", what
        assert told.headers["cross-origin-resource-policy"] == "same-origin", what
        assert told.headers["cache-control"] in ("no-store", "no-cache"), what
        assert "server" not in told.headers, what
    assert asked["a table"].headers["cache-control"] == "no-store"
    for word in ("unsafe", "http:", "https:", "*"):
        assert word not in POLICY


def test_files_have_their_types(client: TestClient) -> None:
    page = Path(guard.__file__).parent / "page"
    types = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}
    for file in page.rglob("*"):
        if file.suffix in types:
            told = client.get("/" + str(file.relative_to(page)))
            assert told.status_code == 200
            assert told.headers["content-type"].startswith(types[file.suffix])


# --- how often ----------------------------------------------------------------------------------


def test_rates_by_an_own_clock() -> None:
    rates = Rates(10.0)
    assert [rates.wait("a", 0.0) for _ in range(10)] == [0.0] * 10
    assert rates.wait("a", 0.0) == pytest.approx(0.1)
    assert rates.wait("a", 0.05) == pytest.approx(0.05), "one that was refused costs nothing"
    assert rates.wait("a", 0.1) == 0.0
    assert rates.wait("a", 0.1) > 0.0
    assert rates.wait("b", 0.1) == 0.0, "another client"
    assert [rates.wait("a", 100.0) for _ in range(11)].count(0.0) == 10, "no more are saved up"
    served_ = sum(not rates.wait("c", step / 100) for step in range(1_000))
    assert served_ == pytest.approx(110, abs=1), "ten a second, and ten at first"


def test_clients_are_forgotten_in_time() -> None:
    rates = Rates(1.0)
    for number in range(30_000):
        rates.wait(str(number), float(number))
    assert len(rates._buckets) <= 10_000


def test_too_many_requests(place: Place) -> None:
    with served(place.service(limits=few(rate=20.0))) as address:
        with httpx.Client(base_url=address) as client:
            told = [client.get("/api/health") for _ in range(60)]
        refused = [each for each in told if each.status_code == 429]
        assert refused
        assert {each.status_code for each in told} == {200, 429}
        for each in refused:
            assert each.json()["kind"] == "TooMany"
            assert int(each.headers["retry-after"]) >= 1


def test_so_many_follow_and_no_more(place: Place) -> None:
    service = place.service(limits=few(followers=3))
    with served(service) as address:
        url = f"{address}/api/streams/quiet/follow"
        first = [Follower(url) for _ in range(3)]
        support.eventually(lambda: service.counts.followers == 3)
        told = httpx.get(url)
        assert (told.status_code, told.json()["kind"]) == (503, "Busy")
        assert told.headers["retry-after"]
        assert httpx.get(f"{address}/api/health").status_code == 200
        first[0].leave()
        place.streams.publish("quiet", [{"text": "something"}])
        support.eventually(lambda: service.counts.followers == 2)
        again = Follower(url)
        assert again.status == 200
    assert service.counts.followers == 0, "the service's end is theirs"


# --- secrets of others --------------------------------------------------------------------------


def test_options_of_brokers_are_not_shown(
    service: Service, client: TestClient, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sasl-secret-of-a-broker"
    described = place.streams.describe

    def with_options(*given: Any, **more: Any) -> Any:
        told = described(*given, **more)
        options = {"sasl.password": secret, "bootstrap.servers": "broker:9092"}
        monkeypatch.setattr(type(told), "as_dict", lambda self: {**plain(self), "options": options})
        return told

    plain = type(described("nums")).as_dict
    monkeypatch.setattr(place.streams, "describe", with_options)
    told = client.get("/api/streams/nums")
    assert told.status_code == 200
    assert secret not in told.text
    assert "options" not in told.json()
    for path in READS:
        assert secret not in client.get(path).text
