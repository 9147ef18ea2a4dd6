"""A host on the test process's Spark session, and events for it."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import headwater as hw
from headwater.compose import Composition
from headwater.deploy import Deployment, Host

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
NUMS = 'stream: nums, schema: "n bigint, at timestamp, k string, v bigint", event_time: at, id: n'


def host_of(
    tmp_path: Path, spark: SparkSession, *, live: bool = False, on_lake: bool = False
) -> Host:
    """A host in a test's folder."""
    store = f"delta:{tmp_path / 'lake'}" if on_lake else None
    folder, streams = tmp_path / "flows", tmp_path / "streams"
    return Host(folder, streams=streams, store=store, spark=spark, live=live)


def event(n: int) -> dict[str, Any]:
    """An event a second, of key a or b."""
    return {"n": n, "at": BEGIN + timedelta(seconds=n), "k": "ab"[n % 2], "v": n * n % 31}


def publish(host: Host, first: int, last: int, stream: str = "nums", at_once: int = 4) -> None:
    """Publish events, some at once."""
    for start in range(first, last, at_once):
        rows = [event(n) for n in range(start, min(last, start + at_once))]
        host.streams.publish(stream, rows)


def rows(host: Host, stream: str) -> list[dict[str, Any]]:
    """The events of a stream."""
    found: list[dict[str, Any]] = host.streams.table(stream).to_pylist()
    return found


def settle(host: Host) -> None:
    """Wait until all that was published has gone through, and nothing has failed."""
    assert host.drain(120)
    for deployment in host.deployments.values():
        for unit in deployment.units:
            assert unit.error is None, f"{unit.record.id}: {unit.error}"


def came_from(store: hw.Store, stream: str, row: dict[str, Any], source: str = "nums") -> set[int]:
    """The numbers of the events that an event of a stream came from."""
    found = store.backward(entity=f"hw:streams/{stream}/{row['event_id']}")["id"].to_pylist()
    prefix = f"hw:streams/{source}/"
    assert all(name.startswith(prefix) for name in found), found
    return {int(name.removeprefix(prefix)) for name in found}


def parse(name: str, text: str, watermark: str = "0 seconds") -> Composition:
    """A flow of nodes given as lines of YAML, beside the source `nums`."""
    lines = "\n".join(f"  {line.strip()}" for line in text.strip().splitlines())
    source = f"  nums: {{source: {{{NUMS}, watermark: {watermark}}}}}"
    return Composition.parse(f"flow: {name}\nnodes:\n{source}\n{lines}\n")


def ids(deployment: Deployment) -> list[str]:
    """The ids of the units at work."""
    return [unit.record.id for unit in deployment.units]


def eventually(done: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for something."""
    until = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)
