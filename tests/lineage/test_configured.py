"""Whether events are told: by the client's own configuration, and not without one."""

from __future__ import annotations

import gzip
import json
import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater import lineage
from headwater.capture.listening import NOBODY
from headwater.errors import RunError
from headwater.lineage.telling import EVERY, Teller
from tests.lineage.conforming import conforms
from tests.lineage.test_telling import TOLD

FLOW: Any = SimpleNamespace(name="traffic")


@pytest.fixture(autouse=True)
def _unset(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import os

    for name in [name for name in os.environ if name.startswith("OPENLINEAGE")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def test_off_without_configuration() -> None:
    assert not lineage.is_configured()
    assert lineage.listener(FLOW, "prov", None) is NOBODY
    assert lineage.listener(FLOW, "prov", False) is NOBODY
    assert isinstance(lineage.listener(FLOW, "prov", True), Teller), "asked for"


@pytest.mark.parametrize(
    "name", ["OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT__TYPE"]
)
def test_on_where_it_is_configured(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "http://localhost:5000")
    assert isinstance(lineage.listener(FLOW, "prov", None), Teller)
    assert lineage.listener(FLOW, "prov", False) is NOBODY
    monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
    assert lineage.listener(FLOW, "prov", None) is NOBODY
    assert lineage.listener(FLOW, "prov", True) is NOBODY


@pytest.mark.parametrize("folder", [".", "home/.openlineage"])
def test_a_file_of_the_clients_is_enough(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / folder / "openlineage.yml").write_text("transport: {type: console}")
    assert lineage.is_configured()


def test_events_go_where_the_configuration_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    transport = {"type": "file", "log_file_path": str(tmp_path / "events"), "append": True}
    (tmp_path / "openlineage.yml").write_text(json.dumps({"transport": transport}))
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "roads")
    emitter = lineage.emitter()
    assert lineage.emitter() is emitter, "one for all flows"
    teller = Teller(lambda: TOLD, emitter)
    teller.began()
    teller.ended(None)
    assert lineage.flush()
    lines = (tmp_path / "events").read_text().splitlines()
    assert [json.loads(line)["eventType"] for line in lines] == ["START", "COMPLETE"]
    assert json.loads(lines[0])["job"]["namespace"] == "roads"
    assert emitter.emitted == 2
    assert lineage.counts()["emitted"] >= 2
    emitter.close()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server: Any = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        server.told.append((self.path, json.loads(body)))
        self.send_response(201)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


def test_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.told = []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        monkeypatch.setenv("OPENLINEAGE_URL", f"http://127.0.0.1:{server.server_port}")
        teller = Teller(lambda: TOLD, lineage.emitter())
        teller.began()
        teller.ended(None)
        assert lineage.flush()
        lineage.emitter().close()
    finally:
        server.shutdown()
        server.server_close()
    assert [event["eventType"] for _, event in server.told] == ["START", "COMPLETE"]
    assert {path for path, _ in server.told} == {"/api/v1/lineage"}
    conforms(server.told[0][1])


def test_on_the_console_where_nothing_is_configured(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "openlineage"):
        teller = Teller(lambda: TOLD, lineage.emitter())
        teller.began()
        assert lineage.flush()
    assert any('"eventType": "START"' in record.getMessage() for record in caplog.records)


def test_variables_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setenv("OPENLINEAGE_URL", "http://127.0.0.1:9")
    before = dict(os.environ)
    client = lineage._client()
    assert client.transport.kind in ("http", "composite")
    assert dict(os.environ) == before


def test_without_the_client(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lineage, "find_spec", lambda _: None)
    with pytest.raises(RunError, match="pip install 'headwater\\[server\\]'"):
        lineage.listener(FLOW, "prov", True)
    monkeypatch.setenv("OPENLINEAGE_URL", "http://localhost:5000")
    lineage._tell_once.cache_clear()
    with caplog.at_level(logging.WARNING, "headwater"):
        assert lineage.listener(FLOW, "prov", None) is NOBODY, "it may be meant for others"
        assert lineage.listener(FLOW, "prov", None) is NOBODY
    assert len(caplog.records) == 1


def test_how_often(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lineage._seconds() == EVERY == 60
    monkeypatch.setenv("HEADWATER_LINEAGE_EVERY", "5")
    assert lineage._seconds() == 5
    monkeypatch.setenv("HEADWATER_LINEAGE_EVERY", "soon")
    with pytest.raises(RunError, match="'soon' is not a number of seconds"):
        lineage._seconds()
