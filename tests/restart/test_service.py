"""The service killed at any moment: what was acknowledged is there once, and everything goes on."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import headwater as hw
from headwater import streams
from tests.restart.serving import Served
from tests.support import amount

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
WINDOW, BULK = 20, 50
FLOW = f"""
flow: sums
nodes:
  nums: {{source: {{stream: nums, schema: "n bigint, at timestamp", event_time: at, watermark: 5 seconds, id: n}}}}
  odd: {{filter: {{from: nums, where: n % 2 = 1}}}}
  out: {{sink: {{from: odd, stream: odds}}}}
  totals: {{aggregate: {{from: nums, window: {{time: {WINDOW} seconds}}, columns: {{total: sum(n), c: count(*)}}}}}}
  summed: {{sink: {{from: totals, stream: summed}}}}
"""  # noqa: E501


class Publisher(threading.Thread):
    """Publishes numbers in bulk by REST, each request until it is acknowledged."""

    def __init__(self, served: Served) -> None:
        super().__init__(daemon=True)
        self._served, self._ending = served, threading.Event()
        self.count = self.again = 0

    def run(self) -> None:
        """Publishes until it is told to end."""
        while not self._ending.is_set():
            self.publish(range(self.count, self.count + BULK))
            time.sleep(0.05)

    def publish(self, numbers: range) -> None:
        """Publishes some numbers."""
        rows = [
            {"n": n, "at": (BEGIN + timedelta(seconds=n)).isoformat(timespec="seconds")}
            for n in numbers
        ]
        path = f"/api/streams/nums/events?key=bulk-{numbers.start}"
        receipt = self._served.insist("POST", path, rows)
        # A killed service may have kept what it did not acknowledge: the key then says so.
        assert receipt["events"] == len(rows) or receipt["duplicate"]
        self.again += receipt["duplicate"]
        self.count = numbers.stop

    def end(self) -> None:
        """Publishes no more."""
        self._ending.set()
        self.join()


@pytest.mark.parametrize(
    ("kills", "seed"), [(amount(1, 2), 5), pytest.param(8, 17, marks=pytest.mark.long)]
)
def test_nothing_acknowledged_is_lost_and_every_flow_goes_on(
    tmp_path: Path, kills: int, seed: int
) -> None:
    chance = random.Random(seed)
    served = Served(tmp_path)
    served.start()
    schema = {"name": "nums", "schema": "n bigint, at timestamp", "event_time": "at", "id": "n"}
    served.call("POST", "/api/streams", schema)
    served.call("POST", "/api/flows", {"text": FLOW, "since": "start"})
    query = {"name": "tens", "sql": "select n, at from nums where n % 10 = 0", "since": "start"}
    served.call("POST", "/api/queries", query)
    elements = [
        {"type": "used", "activity": "m", "entity": "in", "function": "map", "execution": "m"},
        {"type": "wasGeneratedBy", "entity": "out", "activity": "m", "function": "map",
         "execution": "m"},
    ]  # fmt: skip
    publisher = Publisher(served)
    publisher.start()
    try:
        for turn in range(kills):
            time.sleep(chance.uniform(1.0, 8.0))
            if turn < len(elements):
                tell(served, elements[turn])
            served.kill()
            served.start()
        for element in elements[kills:]:
            tell(served, element)
        time.sleep(2.0)
    finally:
        publisher.end()
    count = publisher.count
    # One far ahead closes every window.
    publisher.publish(range(count + 10 * WINDOW, count + 10 * WINDOW + 1))
    far = count + 10 * WINDOW
    windows = -(-count // WINDOW)
    served.wait_for("/api/streams/summed", lambda told: told["events"] >= windows)
    served.wait_for("/api/streams/odds", lambda told: told["events"] >= count // 2)
    served.wait_for("/api/streams/tens", lambda told: told["events"] >= count // 10)
    flows = served.call("GET", "/api/flows")["flows"]
    assert {each["flow"]: each["state"] for each in flows} == {
        "sums": "running",
        "query-tens": "running",
    }
    assert served.call("POST", "/api/jobs/count/finish", {}) == {"job": "count", "finished": True}
    assert served.stop() == 0

    named = streams.open(tmp_path / "streams")
    everything = [*range(count), far]
    assert Counter(named.table("nums")["n"].to_pylist()) == Counter(everything)
    odds = named.table("odds")
    assert Counter(odds["n"].to_pylist()) == Counter(n for n in everything if n % 2)
    assert Counter(named.table("tens")["n"].to_pylist()) == Counter(
        n for n in everything if n % 10 == 0
    )
    store = hw.open(tmp_path / "flows" / "store")
    summed = named.table("summed").to_pylist()
    totals = {int((row["window"]["start"] - BEGIN).total_seconds()): row for row in summed}
    assert len(totals) == len(summed), "no window twice"
    looked = chance.sample(range(0, count, WINDOW), min(20, windows))
    for first in range(0, count, WINDOW):
        held = [n for n in range(first, first + WINDOW) if n < count]
        assert (totals[first]["total"], totals[first]["c"]) == (sum(held), len(held))
        if first not in looked:
            continue
        back = store.backward(entity=f"hw:streams/summed/{totals[first]['event_id']}")
        assert set(back["id"].to_pylist()) == {f"hw:streams/nums/{n}" for n in held}
    assert store.backward(entity="out")["id"].to_pylist() == ["in"]


def tell(served: Served, element: dict[str, str]) -> None:
    """Publishes what a foreign job tells of itself."""
    line = json.dumps(element).encode()
    served.call("POST", "/api/jobs/count/elements", line, "application/x-ndjson")
