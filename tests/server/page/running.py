"""A service in a process of its own: Linear Road with live traffic, and notes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq

from headwater import streams as registry
from headwater.examples import linear_road
from headwater.examples.live_traffic import FLOW, LiveTraffic

TOKEN = "a-token-for-the-tests"
REPORTS = 6_000
SPEED = 30.0
"""How much faster than the clock traffic is: a vehicle reports once a second."""
START = 120.0
"""Seconds that a service may take to start, and to have the first hour of traffic behind it."""
NOTES = """\
flow: notes
nodes:
  notes:
    source:
      {stream: notes, schema: "id bigint, at timestamp, body string", event_time: at, id: id}
  said:  {filter: {from: notes, where: "body <> ''"}}
  kept:  {sink: {from: said, stream: kept}}
"""
"""A flow for texts that people write: what they contain is shown, whatever it is."""


def moment(iso: str) -> datetime:
    """A time as the service tells it."""
    return datetime.fromisoformat(iso.replace("Z", "+00:00"))


_AT = re.compile(r"serves at (http://[^/\s]+)")


def until(true: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"this did not come true in {seconds} s"
        time.sleep(0.2)


@dataclass(slots=True)
class Running:
    """A service that runs, and the folders that it works in."""

    folder: Path
    address: str
    streams: registry.Streams
    reports: pa.Table
    token: str = TOKEN
    traffic: LiveTraffic | None = None
    cars: int = 0
    reserved: datetime | None = None
    """Up to when reports were made by `standing`: earlier ones may come too late."""

    def drive(self) -> None:
        """Let traffic go on from where the stream ends."""
        self.traffic = LiveTraffic(self.streams, self.reports, SPEED)
        self.traffic.start()

    def halt(self) -> None:
        """Stop traffic: with it, time as the flow knows it."""
        if self.traffic is not None:
            self.traffic.stop()
            assert self.traffic.error is None, self.traffic.error
        self.traffic = None

    @contextmanager
    def still(self) -> Iterator[None]:
        """A while without traffic: what is alive stays so."""
        self.halt()
        try:
            yield
        finally:
            self.drive()

    def standing(self) -> list[dict[str, Any]]:
        """Reports of a car of its own: four in which it stands, and one of another car.

        They come after all reports so far. With the last one the window of the four closes, which
        gives an alert, while the fourth is in windows that are still open.
        """
        last = self.get("/streams/reports")["last_event"]
        newest = moment(last["ts"])
        begun = max(newest, self.reserved or newest) + timedelta(seconds=1)
        self.reserved = begun + timedelta(seconds=140)
        self.cars += 1
        car = {**last, "vid": 1_000_000 + self.cars, "speed": 0, "pos": 1234}
        times = [begun + timedelta(seconds=at) for at in (0, 30, 60, 90, 140)]
        made = [
            {**car, "tid": 1_000_000 + 10 * self.cars + n, "ts": at.isoformat()}
            for n, at in enumerate(times)
        ]
        made[-1]["vid"] += 500_000
        return made

    def stand(self) -> dict[str, Any]:
        """Publish them; the fourth, which is alive until traffic goes on."""
        made = self.standing()
        columns = [{**row, "ts": moment(row["ts"])} for row in made]
        self.streams.publish(
            "reports", pa.Table.from_pylist(columns, self.reports.schema), consent=True
        )
        self.wait("/results", lambda t: t["rows"], sink="stopped", where=f"vid = {made[0]['vid']}")
        return made[3]

    def get(self, path: str, **parameters: Any) -> Any:
        """What the REST API says at a path below /api."""
        answer = httpx.get(f"{self.address}/api{path}", params=parameters, timeout=60)
        answer.raise_for_status()
        return answer.json()

    def wait(self, path: str, enough: Any, seconds: float = 90, **parameters: Any) -> Any:
        """The first answer that is enough."""
        told = None

        def look() -> bool:
            nonlocal told
            told = self.get(path, **parameters)
            return bool(enough(told))

        until(look, seconds)
        return told

    def alerts(self, **parameters: Any) -> list[dict[str, Any]]:
        """Results of `stopped`."""
        rows: list[dict[str, Any]] = self.get("/results", sink="stopped", **parameters)["rows"]
        return rows

    def note(self, number: int, body: str) -> None:
        """Publish a note; its time is that of its number, in seconds."""
        at = pa.array([(1_800_000_000 + number) * 1_000_000], pa.timestamp("us"))
        rows = pa.table({"id": pa.array([number], pa.int64()), "at": at, "body": [body]})
        self.streams.publish("notes", rows, consent=True)


@contextmanager
def running(folder: Path) -> Iterator[Running]:
    """A service with an hour of traffic behind it and more to come, until the block ends."""
    reports = pq.read_table(linear_road.generate(folder / "data", reports=REPORTS, files=1)[0])
    streams = registry.open(folder / "streams")
    traffic = LiveTraffic(streams, reports, SPEED)
    traffic.declare()
    traffic.first()
    (folder / "notes.yaml").write_text(NOTES)
    options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    with served(
        folder, FLOW, folder / "notes.yaml", environment={"JDK_JAVA_OPTIONS": options}
    ) as address:
        made = Running(folder, address, streams, reports)
        made.note(0, "the first note")
        made.wait("/store", _has_all, START)
        made.drive()
        try:
            yield made
        finally:
            made.halt()


def _has_all(store: dict[str, Any]) -> bool:
    results = {sink["name"]: sink["results"] for sink in store["sinks"]}
    return all(results.get(name) for name in ("stopped", "accidents", "kept"))


@contextmanager
def served(
    folder: Path,
    *arguments: str | Path,
    port: int = 0,
    environment: dict[str, str] | None = None,
) -> Iterator[str]:
    """`headwater serve` with the folder's flows, streams and store; its address."""
    places = [f"--{name}={folder / name}" for name in ("flows", "streams", "store")]
    log = (folder / "serve.log").open("a")
    process = subprocess.Popen(
        [sys.executable, "-m", "headwater", "serve", *arguments, *places, f"--port={port}"],
        cwd=folder,
        env={**os.environ, "HEADWATER_TOKEN": TOKEN, "COLUMNS": "200", **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )
    assert process.stdout is not None
    late = threading.Timer(START, process.kill)
    late.start()
    try:
        found = next(filter(None, map(_AT.search, process.stdout)), None)
        assert found, f"the service did not start: {(folder / 'serve.log').read_text()[-2000:]}"
        late.cancel()
        yield found[1]
    finally:
        late.cancel()
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        log.close()


def wait_here(folder: Path) -> None:
    """Run a service until Enter, to try tests against it."""
    with running(folder) as made:
        made.halt()
        print(made.address, flush=True)
        sys.stdin.readline()


if __name__ == "__main__":
    wait_here(Path(sys.argv[1]))
