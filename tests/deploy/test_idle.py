"""Whether all has gone through: no event is missed that moves on while units are asked."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from headwater.capture.run import Run
from headwater.deploy.monitoring.measuring import all_idle, is_idle
from tests.deploy.fakes import FakeDeployment
from tests.deploy.support import host_of, parse, publish, rows, settle

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from headwater.deploy.units.job import JobUnit

EVENT = {"n": 1, "at": datetime(2026, 1, 1, tzinfo=UTC)}


class Teller:
    """Has told all; something may happen when it is asked."""

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        self._meanwhile = meanwhile

    @property
    def idle(self) -> bool:
        self._meanwhile()
        return True


def job_unit(tmp_path: Path) -> JobUnit:
    """A job that reads the stream `radar`, and has told all."""
    (unit,) = FakeDeployment(tmp_path, takes=1).units
    line: Any = unit.line
    line.runtime = SimpleNamespace(_teller=Teller(), wake=lambda: None)
    return unit


def test_an_event_that_goes_into_the_queue_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = job_unit(tmp_path)
    assert is_idle(unit)
    counts = unit.line.queue.counts

    def then_fed() -> Any:
        found = counts()
        unit.feed()
        return found

    monkeypatch.setattr(unit.line.queue, "counts", then_fed)
    unit._streams.publish("radar", [EVENT])
    assert not is_idle(unit)


def test_an_event_that_a_unit_hands_on_meanwhile(tmp_path: Path) -> None:
    unit = job_unit(tmp_path)
    assert all_idle([unit])
    line: Any = unit.line
    line.runtime._teller = Teller(lambda: unit._streams.publish("radar", [EVENT]))
    assert not all_idle([unit])


@pytest.mark.parametrize(
    ("said", "is_waiting"),
    [
        ("Waiting for data to arrive", True),
        ("Processing new data", False),  # it says so until it looks for the next batch
        ("Getting offsets from FileStreamSource[file:/here]", False),
    ],
)
def test_between_two_batches_a_query_does_not_wait(said: str, is_waiting: bool) -> None:
    run: Any = object.__new__(Run)
    run.query = SimpleNamespace(status={"message": said, "isTriggerActive": False})
    assert run.is_waiting is is_waiting


@pytest.mark.spark
def test_windows_that_close_without_data(tmp_path: Path, spark: SparkSession) -> None:
    """A window closes in the batch after the one that read its last event: that is waited for."""
    text = (
        "counts: {aggregate: {from: nums, by: k, window: {time: 10 seconds}, columns: {c: count(*)}}}\n"
        "out: {sink: {from: counts, stream: counts}}"
    )
    with host_of(tmp_path, spark) as host:
        host.deploy(parse("closing", text), since="start")
        for closed in range(1, 6):
            publish(host, 10 * closed - 10, 10 * closed + 1, at_once=11)
            settle(host)
            assert len(rows(host, "counts")) == 2 * closed
