"""The events of the cascade and the work of its workflows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from lxml import etree
from pyspark.sql import SparkSession

from headwater.errors import HeadwaterError
from headwater.examples.weather import cascade, queues
from headwater.examples.weather.cascade_picture import picture
from headwater.streams import Streams


def test_events_come_in_a_wave(registry: Streams, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--streams", str(registry.folder), "--seconds", "9", "--pace", "0"]
    assert cascade.main(arguments) == 0
    assert capsys.readouterr().out == "13 events\n"
    told = registry.table("events")
    assert told["event"].to_pylist() == list(range(13))
    seconds = [at.timestamp() for at in told["at"].to_pylist()]
    assert [round(at - seconds[0]) for at in seconds] == [0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 8]
    assert cascade.main(arguments) == 1
    assert "events" in capsys.readouterr().err


def test_a_workflow_solves_a_system_for_each_event_alone() -> None:
    batch = pa.RecordBatch.from_pydict({"event": [3, 4, 5]})
    residuals = cascade.solve(batch, 200)["residual"].to_pylist()
    assert all(0 < residual < 0.001 for residual in residuals)
    assert cascade.solve(batch.slice(1, 1), 200)["residual"].to_pylist() == [residuals[1]]


@pytest.mark.spark
@pytest.mark.long
def test_the_cascade_runs_and_its_queues_are_seen(calm: SparkSession, tmp_path: Path) -> None:
    seen = queues.run(tmp_path, seconds=5, size=20, spark=calm)
    assert seen.events == (1, 3, 4, 3, 1)
    assert seen.solved == sum(seen.events)
    assert set(seen.lengths) == set("ABCDEF")
    for row in seen.lengths.values():
        assert len(row) >= len(seen.events)
        assert row[-1] == 0
        assert max(row) <= sum(seen.events)
    assert all(stay > 0 for stay in seen.times.values())
    assert seen.expected["A"] == pytest.approx(seen.rate * seen.service, rel=0.2)
    rows = [line.split() for line in seen.text().splitlines()]
    assert [*map(int, rows[1][1:])] == list(seen.lengths["A"])
    root = etree.fromstring(picture(seen).encode())
    assert len(root.findall(".//{*}polyline")) == 6


def test_a_wave_is_found_in_lengths_that_have_it() -> None:
    came = tuple(len(rows) for rows in cascade.events(32, datetime.now(UTC)))
    late, other = (0, 0, 0, *came), tuple(second // 5 % 2 for second in range(35))
    lengths = dict.fromkeys("ABCDE", late) | {"F": other}
    ones = dict.fromkeys("ABCDEF", 1.0)
    seen = queues.Queues(9, 0.1, came, lengths, ones, ones, sum(came))
    assert seen.wave("A") > 0.8  # type: ignore[operator]
    assert seen.wave("F") < 0.1  # type: ignore[operator]
    assert seen.little("A") == sum(came) / 35
    assert replace(seen, events=came[:9]).wave("A") is None


def test_a_cascade_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HeadwaterError, match="give 1 or more"):
        queues.run(tmp_path, seconds=0)
