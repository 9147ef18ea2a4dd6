"""Alert sinks of a deployed flow: told by webhook, once, in order, and nobody waits for them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headwater as hw
from tests.deploy.support import event, eventually, host_of, parse, publish, rows, settle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Receiver(ThreadingHTTPServer):
    """Takes what is posted, by path; answers 503 while it is `gone`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.told: dict[str, list[dict[str, Any]]] = {}
        self.gone = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def events(self, path: str) -> list[dict[str, Any]]:
        return [event for body in self.told.get(path, ()) for event in body["events"]]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server: Any = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not server.gone:
            server.told.setdefault(self.path, []).append(body)
        self.send_response(503 if server.gone else 204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def test_alerts(
    tmp_path: Path, spark: SparkSession, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.deploy.units.alert._PATIENCE", (0.2,))
    url = receiver.url
    flow = parse(
        "tell",
        f"""
        high: {{filter: {{from: nums, where: v > 15}}}}
        out: {{sink: {{from: high, stream: out}}}}
        alone: {{sink: {{from: high, alert: {{webhook: "{url}/alone"}}}}}}
        both: {{sink: {{from: high, stream: both, alert: {{webhook: "{url}/both"}}}}}}
        added: {{function: {{from: nums, call: "tests.deploy.functions:add_pandas", schema: sum bigint, keep: [n, at]}}}}
        inside: {{sink: {{from: added, alert: {{webhook: "{url}/inside"}}}}}}
        """,
    )
    high = [n for n in range(30) if event(n)["v"] > 15]
    with host_of(tmp_path, spark) as host:
        deployment = host.deploy(flow)
        kinds = {unit.record.name: unit.record.runtime for unit in deployment.units}
        assert {name for name, kind in kinds.items() if kind == "alerts"} == {
            "alone",
            "both-alert",
            "inside-alert",
        }
        publish(host, 0, 10)
        settle(host)
        receiver.gone = True
        publish(host, 10, 20)
        eventually(lambda: any(u.state == "retrying" for u in deployment.units))
        troubled = next(u for u in deployment.units if u.state == "retrying")
        assert "see to the receiver" in str(troubled.error)
        eventually(lambda: len(rows(host, "out")) == len([n for n in high if n < 20]))
    with host_of(tmp_path, spark) as host:
        receiver.gone = False
        publish(host, 20, 30)
        settle(host)
        with hw.open(host.store) as store:
            for path in ("/alone", "/both"):
                told = receiver.events(path)
                assert [each["n"] for each in told] == high, "each once, in order"
            for each in receiver.events("/both"):
                back = store.backward(entity=f"hw:streams/both/{each['event_id']}")
                assert back["id"].to_pylist() == [f"hw:streams/nums/{each['n']}"]
        assert sorted(each["n"] for each in receiver.events("/inside")) == list(range(30))
