"""How fast the service is: publishing, and asking where results came from.

The service is the real command in a process of its own; the clients are in this one.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater import streams as registry
from headwater.bench.paired import QUARTILES, quartiles
from headwater.bench.queries import filled
from headwater.bench.report import Table
from headwater.bench.requests import at_once, at_rate, request
from headwater.errors import HeadwaterError
from headwater.store import EmbeddedWriter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater.bench.harness import Progress

PARTS = ("publish", "ask")
CLIENTS = (1, 2, 4, 8, 16, 32, 64, 128)
BULK = 1_000
"""Events of one request, in bulk."""
SCHEMA = "n bigint, at timestamp, station string, dbz double"
QUICK: dict[str, dict[str, Any]] = {
    "publish": {"clients": (2,), "seconds": 0.2, "pairs": 1},
    "ask": {"edges": 100_000, "seconds": 0.1, "pairs": 1, "besides": ("alone",)},
}
"""Options of each part with which figures say nothing, but everything runs."""
BESIDES = ("alone", "beside")
"""Asked while nothing else runs, and while a flow does."""
GOALS = {"bulk": 20_000, "p99": 100.0, "alone": 200.0, "beside": 50.0}
_TOKEN = "a-token-for-measurements"
PUBLISH = {
    "events a request": ",",
    "clients": ",",
    "events/s": ",.0f",
    QUARTILES: ",.0f",
    "requests/s": ",.0f",
    "p50 ms": ",.1f",
    "p99 ms": ",.1f",
    "refused": ",",
}
ASK = {
    "beside": "",
    "asked": "",
    "requests/s": ",.0f",
    "answered/s": ",.1f",
    "p50 ms": ",.1f",
    "p95 ms": ",.1f",
    "p99 ms": ",.1f",
    QUARTILES: "",
    "failed": ",",
}


def measure(
    part: str,
    *,
    clients: Sequence[int] = CLIENTS,
    seconds: float = 1.0,
    pairs: int = 5,
    edges: int = 10_000_000,
    besides: Sequence[str] = BESIDES,
    folder: Path | None = None,
    progress: Progress = lambda doing, done, total: None,
) -> Iterator[Table]:
    """Measures one part."""
    with tempfile.TemporaryDirectory(prefix="headwater-bench-", dir=folder) as made:
        home = Path(made)
        match part:
            case "publish":
                yield _publishing(home, clients, seconds, pairs, progress)
            case "ask":
                yield _asking(home, edges, 10 * seconds, pairs, besides, progress)
            case _:
                raise ValueError(f"there is no part {part!r}")


def _publishing(
    home: Path, clients: Sequence[int], seconds: float, pairs: int, progress: Progress
) -> Table:
    title = "Events a second by REST, safe when acknowledged (JSON)"
    table = Table(f"{title}; medians of {pairs} × {seconds:g} s", PUBLISH)
    streams = registry.open(home / "streams")
    streams.create("radar", SCHEMA, event_time="at", id="n")
    sizes = [(size, many) for size in (BULK, 1) for many in clients]
    with _served(home, "--no-run") as port:
        bodies = {size: _events(size) for size in (BULK, 1)}
        at_once(port, 4, 1.0, lambda *_: _publish(port, bodies[BULK]))
        told: dict[tuple[int, int], list[Any]] = {each: [] for each in sizes}
        # In turns, so that a busy moment of the machine meets all alike.
        for done, (size, many) in enumerate(sizes * pairs):
            progress(f"{many} clients, {size} events each", done, len(sizes) * pairs)
            data = _publish(port, bodies[size])
            told[size, many].append(at_once(port, many, seconds, lambda *_, data=data: data))
    for (size, many), outcomes in told.items():
        rates = [outcome.rate for outcome in outcomes]
        table.rows.append(
            {
                "events a request": size,
                "clients": many,
                "events/s": statistics.median(rates) * size,
                QUARTILES: quartiles([rate * size for rate in rates]),
                "requests/s": statistics.median(rates),
                "p50 ms": statistics.median(outcome.ms(0.5) for outcome in outcomes),
                "p99 ms": statistics.median(outcome.ms(0.99) for outcome in outcomes),
                "refused": sum(sum(outcome.failed.values()) for outcome in outcomes),
            }
        )
    best = max(row["events/s"] for row in table.rows if row["events a request"] == BULK)
    met = "met" if best >= GOALS["bulk"] else "missed"
    table.notes.append(f"goal: {GOALS['bulk']:,} events/s in bulk; best {best:,.0f}: {met}")
    return table


def _asking(
    home: Path, edges: int, seconds: float, pairs: int, besides: Sequence[str], progress: Progress
) -> Table:
    title = f"Backward and forward of one id by REST, {edges:,} edges in the store"
    table = Table(f"{title}; medians of {pairs} × {seconds:g} s", ASK)
    steps = 1 + len(besides) * 2 * pairs
    progress("filling a store", 0, steps)
    store = home / "store"
    random = np.random.default_rng(7)
    with EmbeddedWriter.open(store) as writer:
        _, results, records = filled(writer, edges, "random", random)
        writer.compact()
    # With the demo's flow in it, names alone would not say which.
    asked = {
        "backward": [
            f"/api/backward?sink=bench/stopped&result_id={key}"
            for key in random.choice(results, 20_000)
        ],
        "forward": [
            f"/api/forward?source=bench/reports&id={key}" for key in random.choice(records, 20_000)
        ],
    }
    done = 1
    for beside in besides:
        rate = GOALS[beside]
        told: dict[str, list[Any]] = {name: [] for name in asked}
        with _flowing(home, store, beside == "beside") as port:
            for paths in asked.values():
                _ask(port, paths, rate, min(2.0, seconds))
            # In turns, so that a busy moment of the machine meets both alike.
            for turn in range(pairs):
                for name, paths in asked.items():
                    progress(f"{name}, {beside}", done, steps)
                    start = turn * int(rate * seconds)
                    told[name].append(_ask(port, paths, rate, seconds, start))
                    done += 1
        for name, outcomes in told.items():
            worst = [outcome.ms(0.99) for outcome in outcomes]
            table.rows.append(
                {
                    "beside": "a running flow" if beside == "beside" else "nothing",
                    "asked": name,
                    "requests/s": rate,
                    "answered/s": statistics.median(outcome.rate for outcome in outcomes),
                    "p50 ms": statistics.median(outcome.ms(0.5) for outcome in outcomes),
                    "p95 ms": statistics.median(outcome.ms(0.95) for outcome in outcomes),
                    "p99 ms": statistics.median(worst),
                    QUARTILES: quartiles(worst),
                    "failed": sum(sum(outcome.failed.values()) for outcome in outcomes),
                }
            )
    slowest = max(row["p99 ms"] for row in table.rows)
    met = "met" if slowest < GOALS["p99"] else "missed"
    table.notes.append(f"goal: p99 below {GOALS['p99']:.0f} ms; slowest {slowest:.1f} ms: {met}")
    return table


def _ask(port: int, paths: Sequence[str], rate: float, seconds: float, start: int = 0) -> Any:
    wanted = [paths[turn % len(paths)] for turn in range(start, start + int(rate * seconds))]
    return at_rate(port, rate, [request("GET", path, port) for path in wanted])


@contextlib.contextmanager
def _flowing(home: Path, store: Path, flow: bool) -> Iterator[int]:
    """The service on a store; with a flow, on one that grows meanwhile."""
    if not flow:
        with _served(home, "--no-run", "--store", str(store)) as port:
            yield port
        return
    import pyarrow.parquet as pq

    from headwater.examples import linear_road
    from headwater.examples.live_traffic import FLOW, LiveTraffic

    linear_road.generate(home / "data", reports=60_000)
    traffic = LiveTraffic(registry.open(home / "streams"), pq.read_table(home / "data"))
    traffic.declare()
    traffic.first()
    with _served(home, str(FLOW), "--store", str(store)) as port:
        time.sleep(20)  # the first hour of traffic is done
        traffic.start()
        time.sleep(5)
        try:
            yield port
        finally:
            traffic.stop()


@contextlib.contextmanager
def _served(home: Path, *given: str) -> Iterator[int]:
    """`headwater serve` in a process of its own; yields its port."""
    folders = ("--flows", str(home / "flows"), "--streams", str(home / "streams"))
    limits = {"HEADWATER_TOKEN": _TOKEN, "HEADWATER_RATE": "1000000"}
    log = (home / "serve.log").open("w")
    process = subprocess.Popen(
        [sys.executable, "-m", "headwater", "serve", *given, *folders, "--port", "0"],
        stdout=log,
        stderr=subprocess.STDOUT,
        env={**os.environ, **limits},
    )
    try:
        yield _port(process, home / "serve.log")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        log.close()


def _port(process: subprocess.Popen[bytes], log: Path, timeout: float = 120.0) -> int:
    until = time.monotonic() + timeout
    while time.monotonic() < until and process.poll() is None:
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", log.read_text())
        if found:
            return int(found[1])
        time.sleep(0.1)
    raise HeadwaterError(f"the service did not start: {log.read_text()[-500:]}")


def _publish(port: int, body: bytes) -> bytes:
    path = "/api/streams/radar/events"
    return request("POST", path, port, body, "application/json", _TOKEN)


def _events(count: int) -> bytes:
    rows = [
        {
            "n": n,
            "at": f"2025-01-01T00:{n // 60 % 60:02}:{n % 60:02}Z",
            "station": "KIND",
            "dbz": 7.5,
        }
        for n in range(count)
    ]
    return json.dumps(rows if count > 1 else rows[0]).encode()
