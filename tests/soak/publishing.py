"""Publishers: the example streams in numbered chunks, each sent until it is acknowledged.

A chunk's events follow from its number and the seed, so what a stream must hold follows from
how many chunks were acknowledged. `python -m tests.soak.publishing HOME LEDGER SEED RATE` is the
publisher of readings as a process of its own, which can be killed: it goes on with the chunk
after the last one that its ledger has.
"""

from __future__ import annotations

import http.client
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from headwater import streams
from headwater.errors import HeadwaterError
from headwater.examples import linear_road, smart_grid
from tests.restart.serving import Served

PATIENCE = 300.0
"""Seconds for which a chunk is sent again and again."""


@dataclass(frozen=True)
class Supply:
    """A stream without end: a generated one again and again, each time later."""

    stream: str
    id: str
    rows: list[dict[str, Any]]
    length: timedelta
    chunk: int
    seed: int
    jumps: dict[int, float] = field(default_factory=dict)
    """By chunk: how far its producer's clock was off, in seconds."""

    def events(self, number: int) -> list[dict[str, Any]]:
        """A chunk's events, a little out of order."""
        off = timedelta(seconds=self.jumps.get(number, 0.0))
        found = []
        for place in range(number * self.chunk, (number + 1) * self.chunk):
            lap, at = divmod(place, len(self.rows))
            row = self.rows[at]
            later = row["ts"] + lap * self.length + off
            found.append({**row, self.id: row[self.id] + lap * len(self.rows), "ts": later})
        random.Random(self.seed * 1_000_003 + number).shuffle(found)
        return found

    def last(self, number: int) -> dict[str, Any]:
        """An event long after those of so many chunks, which closes their windows."""
        latest = self.events(number)[0]
        return {**latest, self.id: 10**12, "ts": latest["ts"] + timedelta(days=5)}


def traffic(seed: int) -> Supply:
    """Position reports of 100 vehicles."""
    with tempfile.TemporaryDirectory() as folder:
        linear_road.generate(Path(folder) / "out", 12_000, stopped=0.3, files=1, seed=seed)
        rows = pq.read_table(Path(folder) / "out").sort_by("tid").to_pylist()
    return Supply("reports", "tid", rows, timedelta(hours=1), 10, seed)


def grid(seed: int) -> Supply:
    """Readings of 40 meters over ten days."""
    with tempfile.TemporaryDirectory() as folder:
        smart_grid.generate(Path(folder) / "out", 9_600, files=1, seed=seed)
        rows = pq.read_table(Path(folder) / "out").sort_by("id").to_pylist()
    return Supply("readings", "id", rows, timedelta(days=10), 20, seed)


def insist(send: Callable[[], Any], troubles: dict[str, int], patience: float = PATIENCE) -> Any:
    """Do something until it is acknowledged; what went wrong meanwhile is counted by its kind."""
    until = time.monotonic() + patience
    while True:
        try:
            return send()
        except (OSError, http.client.HTTPException, HeadwaterError, AssertionError) as error:
            kind = type(error).__name__
            if isinstance(error, AssertionError):  # an answer: its status
                kind = f"status {str(error).split(': ')[1].split()[0]}"
            troubles[kind] = troubles.get(kind, 0) + 1
            if time.monotonic() > until:
                raise
            time.sleep(0.25)


class Publisher(threading.Thread):
    """Publishes a supply by REST."""

    def __init__(self, served: Served, supply: Supply, rate: float) -> None:
        super().__init__(daemon=True, name=f"publisher of {supply.stream}")
        self._served, self.supply, self._rate = served, supply, rate
        self._ending, self.turn = threading.Event(), threading.Lock()
        self.acknowledged = self.again = 0
        self.troubles: dict[str, int] = {}
        self.error: str | None = None

    def run(self) -> None:
        """Publishes until it is told to end."""
        while not self._ending.wait(self.supply.chunk / self._rate):
            with self.turn:
                number = self.acknowledged
                try:
                    self.send(self.supply.events(number), f"{self.supply.stream}-{number}")
                except Exception as error:  # noqa: BLE001 - the soak says what became of it
                    self.error = f"{self.name}: {type(error).__name__}: {error}"
                    return
                self.acknowledged = number + 1

    def send(self, events: list[dict[str, Any]], key: str) -> None:
        """Publishes some events, once, however often they have to be sent."""
        rows = [{**row, "ts": row["ts"].isoformat()} for row in events]
        path = f"/api/streams/{self.supply.stream}/events?key={key}"
        receipt = insist(lambda: self._served.call("POST", path, rows), self.troubles)
        # A service that was killed may have kept what it did not acknowledge: the key says so.
        assert receipt["events"] == len(rows) or receipt["duplicate"], receipt
        self.again += receipt["duplicate"]

    def jump(self, seconds: float) -> None:
        """Have the clock of the producer be off for the next chunk."""
        with self.turn:
            self.supply.jumps[self.acknowledged] = seconds

    def end(self) -> None:
        """Publishes no more."""
        self._ending.set()
        self.join()


def acknowledged(ledger: Path) -> int:
    """How many chunks a ledger has."""
    return ledger.read_bytes().count(b"\n") if ledger.exists() else 0


def publish_readings(home: Path, ledger: Path, seed: int, rate: float) -> None:
    """Publishes readings into the registry itself, until it is killed."""
    supply, registry = grid(seed), streams.open(home / "streams")
    with ledger.open("ab", buffering=0) as book:
        number = acknowledged(ledger)
        while True:
            publish_chunk(registry, supply, number, {})
            book.write(f"{number} {time.time()}\n".encode())
            number += 1
            time.sleep(supply.chunk / rate)


def publish_chunk(
    registry: streams.Streams, supply: Supply, number: int, troubles: dict[str, int]
) -> None:
    """One chunk, once."""
    rows, key = supply.events(number), f"{supply.stream}-{number}"
    insist(lambda: registry.publish(supply.stream, rows, key=key, consent=True), troubles)


if __name__ == "__main__":
    publish_readings(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
