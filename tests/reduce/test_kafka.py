"""Reductions of Kafka topics, with a broker of the tests' own, against the plain closure."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.testing.prov_graphs import dependencies
from tests.reduce.on_kafka import LATE, LINES, TOLD
from tests.reduce.streams import dependencies_in
from tests.support.kafka import Broker, broker


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker(tmp_path_factory.mktemp("kafka") / "broker") as running:
        yield running


def run(kafka: Broker, *arguments: object) -> str:
    """Run a module in a process whose Spark has the connector."""
    done = subprocess.run(
        [sys.executable, "-m", *map(str, arguments)],
        env=kafka.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    return done.stdout


def elements(lines: list[dict[str, object]]) -> int:
    return sum(len(group) if isinstance(group := line.get("group"), list) else 1 for line in lines)


def test_a_topic_is_read_once_over_restarts(kafka: Broker, tmp_path: Path) -> None:
    store = tmp_path / "store"
    told = run(kafka, "tests.reduce.on_kafka", tmp_path, kafka.servers).splitlines()
    first, *times, ends = [json.loads(line) for line in told]
    # Another process goes on with the job that was left half done.
    done = json.loads(
        run(
            kafka,
            *("headwater", "reduce", "kafka:halves", "--store", store, "--job", "halves"),
            *("--option", f"bootstrap.servers={kafka.servers}", "--once", "--finish", "--json"),
        )
    )
    assert done["complete"]
    assert first[2] > 0
    assert done["elements"] > 0
    assert first[2] + done["elements"] == elements(LINES)
    assert ends[2] == elements(LINES)
    assert sum(counted for _, _, counted in times) == elements(LATE)
    assert sum(batches for _, batches, _ in times) > 4
    for name in ("halves", "times", "ends"):
        assert dependencies_in(store, name) == dependencies(TOLD), name
