"""Too much, for too long, or by accident: the service says so, and goes on for everybody else."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from headwater.server import guard
from tests.server.api import support
from tests.server.api.sending import BODIES, JSON, POSTS, sane
from tests.server.api.support import AUTH, Place, few, served

# --- sizes --------------------------------------------------------------------------------------


def test_a_body_that_is_too_large(place: Place) -> None:
    service = place.service(limits=few(body=1_000))
    with support.client(service) as client:
        for path in POSTS:
            told = client.post(path, content=b"x" * 1_001, headers={**AUTH, **JSON})
            assert told.status_code == 413, path
            assert sane(told)["kind"] == "TooLarge"


def test_lengths_that_are_lies_or_absent(place: Place) -> None:
    with served(place.service(limits=few(body=1_000))) as address:

        def parts() -> Any:
            for _ in range(100):
                yield b"x" * 100

        for path in (each for each in BODIES if not each.endswith("/pause")):
            told = httpx.post(f"{address}{path}", content=parts(), headers={**AUTH, **JSON})
            assert told.status_code == 413, (path, told.text)
        head = "POST /api/flows HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        more = f"Authorization: {AUTH['Authorization']}\r\n"
        for lie in ("-1", "x", "1e3", "99999999999999999999", "5\r\nContent-Length: 6"):
            told_raw = _raw(address, f"{head}{more}Content-Length: {lie}\r\n\r\n{{}}")
            assert told_raw.split(b" ")[1] in (b"400", b"413"), told_raw
        # Said to be longer than it is: it waits, and others do not.
        waiting = socket.create_connection((urlsplit(address).hostname, urlsplit(address).port))
        waiting.sendall(f"{head}{more}Content-Length: 50\r\n\r\n{{}}".encode())
        assert httpx.get(f"{address}/api/health").status_code == 200
        waiting.close()
        assert httpx.get(f"{address}/api/health").status_code == 200


def test_a_body_that_does_not_come(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "SLOWEST", 0.5)
    with served(place.service()) as address:
        head = (
            f"POST /api/streams/nums/events HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: {AUTH['Authorization']}\r\nContent-Type: application/json\r\n"
            "Content-Length: 1000\r\n\r\n{"
        )
        begun = time.monotonic()
        told = _raw(address, head)
        assert told.split(b" ")[1] == b"408", told
        assert b"TooSlow" in told
        assert time.monotonic() - begun < 10


def _raw(address: str, text: str) -> bytes:
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as made:
        made.sendall(text.encode())
        got = b""
        while not got.rstrip().endswith(b"}") and (more := made.recv(65_536)):
            got += more
        return got


def test_headers_that_are_too_long(place: Place) -> None:
    with served(place.service()) as address:
        with contextlib.suppress(httpx.ReadError, httpx.WriteError):  # it hangs up
            told = httpx.get(f"{address}/api/health", headers={"X": "x" * 200_000})
            assert told.status_code in (400, 431)
        assert httpx.get(f"{address}/api/health").status_code == 200


# --- time ---------------------------------------------------------------------------------------

ENDLESS = "SELECT count(*) AS n FROM range(1000000000000) a, range(1000000) b"


def test_endless_queries_end_and_nobody_waits_for_them(place: Place) -> None:
    service = place.service(limits=few(seconds=1.0, workers=2))
    store = service.store
    asked = store.results_page

    def endless(sink: str | None = None, **more: Any) -> Any:
        if sink == "endless":
            store._reader.query(ENDLESS)
        return asked(sink, **more)

    store.results_page = endless  # type: ignore[method-assign]
    with served(service) as address, ThreadPoolExecutor(4) as pool:
        url = f"{address}/api/results"

        def ask(sink: str) -> tuple[httpx.Response, float]:
            begun = time.monotonic()
            told = httpx.get(url, params={"sink": sink}, timeout=30)
            return told, time.monotonic() - begun

        slow = [pool.submit(ask, "endless") for _ in range(2)]
        time.sleep(0.2)
        begun = time.monotonic()
        assert httpx.get(f"{address}/api/health").status_code == 200
        assert httpx.get(f"{address}/api/streams").status_code == 200
        assert time.monotonic() - begun < 2.0
        for told, seconds in (each.result() for each in slow):
            assert (told.status_code, told.json()["kind"]) == (503, "TimedOut")
            assert 0.9 < seconds < 3.0
        told, seconds = ask("stopped")
        assert told.status_code == 200, "its threads are free again"
        assert seconds < 2.0


def test_too_many_queries_at_once_are_told_to_come_later(place: Place) -> None:
    service = place.service(limits=few(seconds=1.5, workers=1, waiting=1))
    service.store.results_page = lambda *_, **__: service.store._reader.query(ENDLESS)  # type: ignore[method-assign]
    with served(service) as address, ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: httpx.get(f"{address}/api/results", timeout=30), range(8)))
        kinds = [each.json()["kind"] for each in told]
        assert {each.status_code for each in told} == {503}
        assert kinds.count("Busy") >= 5
        assert all(r.headers["retry-after"] for r in told if r.json()["kind"] == "Busy")


# --- what goes wrong without anybody's doing ----------------------------------------------------


def test_what_nobody_foresaw_is_told_without_what_was_sent(
    place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    service, secret = place.service(), "s3cr3t" * 2

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"with a secret in it: {secret}")

    service.store.results_page = broken  # type: ignore[method-assign]
    service.streams.describe_all = broken  # type: ignore[method-assign]
    with served(service) as address:
        told = httpx.get(f"{address}/api/results", headers=AUTH)
        assert told.status_code == 500
        assert told.json() == {
            "error": "GET /api/results went wrong here: RuntimeError",
            "kind": "Internal",
        }
        assert told.headers["content-security-policy"]
        follower = support.Follower(f"{address}/api/streams/follow")
        assert follower.ended.wait(20)
        (trouble,) = follower.named("trouble")
        assert trouble["data"]["error"].endswith("went wrong here: RuntimeError")
    said = capfd.readouterr()
    assert "RuntimeError" in said.err
    assert "in broken" in said.err, "where it happened"
    for text in (said.out, said.err):
        assert secret not in text
        assert support.TOKEN not in text


def test_a_client_that_leaves_in_the_middle_of_its_body(
    place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    with served(place.service()) as address:
        parts = urlsplit(address)
        for path in BODIES:
            made = socket.create_connection((parts.hostname, parts.port))
            made.sendall(
                f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                f"Authorization: {AUTH['Authorization']}\r\nContent-Length: 50\r\n\r\n{{".encode()
            )
            made.close()
        time.sleep(0.3)
        assert httpx.get(f"{address}/api/health").status_code == 200
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("text", ["[" * 900_000, "- " * 400_000, "{a: " * 200_000])
def test_deep_texts_do_not_end_the_process(text: str) -> None:
    """In a process of its own: what overflows the stack of C can't be caught."""
    script = (
        "import sys; from headwater.compose import Composition, CompositionError\n"
        "try: Composition.parse(sys.stdin.read())\n"
        "except CompositionError as error: print('refused')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": "src"},
    )
    assert done.stdout.strip() == "refused", (done.returncode, done.stderr[-500:])
