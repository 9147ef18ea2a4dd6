"""A service that runs nothing, on a store and streams that are filled by hand."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
from fastapi.testclient import TestClient

from headwater import streams as registry
from headwater.compose import Composition
from headwater.deploy.records import Change, DeploymentFiles
from headwater.server.app import application
from headwater.server.running import listening, serving
from headwater.server.service import Service
from headwater.server.settings import Limits, Settings
from headwater.store import EmbeddedWriter
from headwater.streams import Streams
from tests.live.made import Made, fill

TOKEN = "a-token-for-writing-0123456789"
READ_TOKEN = "a-token-for-reading-9876543210"
AUTH = {"Authorization": f"Bearer {TOKEN}"}
ARROW = "application/vnd.apache.arrow.stream"
BASE = "http://127.0.0.1"
SCHEMA = "n bigint, at timestamp, k string, v double"
FLOW = f"""
flow: weather
nodes:
  nums: {{source: {{stream: nums, schema: "{SCHEMA}", event_time: at, id: n}}}}
  few: {{filter: {{from: nums, where: v > 3}}}}
  out: {{sink: {{from: few, stream: few}}}}
"""
QUERY_FLOW = FLOW.replace("weather", "query-few").replace(
    "few: {filter: {from: nums, where: v > 3}}",
    'few: {sql: {from: nums, query: "select n, at from nums where v > 3"}}',
)
BATCHES = 12


@dataclass
class Place:
    """A service's folders, with what is in its store."""

    path: Path
    streams: Streams
    made: Made
    writer: EmbeddedWriter
    batches: int = BATCHES

    def service(self, **more: Any) -> Service:
        """A service on it."""
        limits = more.pop("limits", None) or Limits(rate=1e9, seconds=20.0)
        given = {"token": TOKEN, "limits": limits, **more}
        return Service(
            Settings(**given),
            streams=self.streams,
            flows=self.path / "flows",
            store=self.path / "store",
        )

    def add(self, batches: int = 1) -> None:
        """Have the flow commit more."""
        fill(
            self.writer,
            seed=self.batches,
            batches=batches,
            register=False,
            first=self.batches,
            made=self.made,
        )
        self.batches += batches


@contextlib.contextmanager
def place(path: Path) -> Iterator[Place]:
    """Folders with a store, streams, a deployed flow and a registered query."""
    streams = registry.open(path / "streams")
    streams.create("nums", SCHEMA, event_time="at", id="n")
    streams.create("few", "n bigint, at timestamp, event_id bigint")
    streams.create("quiet", "text string")
    streams.publish("nums", [{**event(n), "at": moment(n)} for n in range(20)])
    for name, text in (("weather", FLOW), ("query-few", QUERY_FLOW)):
        deployed(path / "flows", name, text)
    with EmbeddedWriter.open(path / "store") as writer:
        yield Place(path, streams, fill(writer, seed=3, batches=BATCHES), writer)


def moment(n: int) -> datetime:
    """A second after the other."""
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=n)


def event(n: int) -> dict[str, Any]:
    """An event of the stream `nums`, as it is sent."""
    at = moment(n).isoformat().replace("+00:00", "Z")
    return {"n": n, "at": at, "k": "ab"[n % 2], "v": n / 2}


def deployed(flows: Path, name: str, text: str) -> None:
    """A flow as if it had been deployed, and stopped."""
    files = DeploymentFiles(flows / name)
    files.save_version(Change(1, 1_700_000_000.0, "deploy", []), Composition.parse(text))
    files.save_state(version=1, target=1, wanted="stopped")


@contextlib.contextmanager
def client(service: Service, **more: Any) -> Iterator[TestClient]:
    """A client in the process. What goes wrong is an answer, as it is to others."""
    given = {"base_url": BASE, "raise_server_exceptions": False, **more}
    try:
        with TestClient(application(service), **given) as made:
            yield made
    finally:
        service.close()


@contextlib.contextmanager
def served(service: Service) -> Iterator[str]:
    """The service on a real socket; yields its address."""
    with serving(service, listening("127.0.0.1", 0)) as address:
        yield address


def few(**limits: Any) -> Limits:
    """Limits, all but some of them out of the way."""
    return replace(Limits(rate=1e9, seconds=20.0), **limits)


def arrow(response: httpx.Response) -> pa.Table:
    """A table that came as Arrow."""
    assert response.headers["content-type"] == ARROW, response.text
    table: pa.Table = pa.ipc.open_stream(response.content).read_all()
    return table


class Follower:
    """Reads server-sent events in a thread."""

    def __init__(self, url: str, **headers: str) -> None:
        self.events: list[dict[str, Any]] = []
        self.comments = 0
        self.status: int | None = None
        self.ended = threading.Event()
        self._headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self._url = url
        self._leave = threading.Event()
        self._opened = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        assert self._opened.wait(20)

    def _read(self) -> None:
        try:
            timeout = httpx.Timeout(20.0, read=60.0)
            with httpx.stream("GET", self._url, headers=self._headers, timeout=timeout) as told:
                self.status = told.status_code
                self._opened.set()
                event: dict[str, Any] = {}
                for line in told.iter_lines():
                    if self._leave.is_set():
                        return
                    if line.startswith(":"):
                        self.comments += 1
                    elif not line and event:
                        self.events.append(event)
                        event = {}
                    elif line:
                        name, _, value = line.partition(": ")
                        event[name] = json.loads(value) if name == "data" else value
        except httpx.HTTPError:
            pass  # the service ended
        finally:
            self._opened.set()
            self.ended.set()

    def named(self, name: str) -> list[dict[str, Any]]:
        """The events of a name."""
        return [event for event in list(self.events) if event["event"] == name]

    def leave(self) -> None:
        """Go away with the next line that comes."""
        self._leave.set()


def eventually(done: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for something."""
    until = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)
