"""The events of the cascade and the work of its workflows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.examples.weather import cascade
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
