"""Sources that fall silent, and how the watermark goes on without them."""

from __future__ import annotations

import time

import pytest

import headwater as hw
from headwater.capture.idle import Silence
from headwater.errors import RunError
from tests.live.test_graph import labelled, sums
from tests.support.streams import Lab, write

SECOND = 1_000_000


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_what_silence_allows() -> None:
    clock = Clock()
    silence = Silence(10, {"a": 2 * SECOND, "b": 0}, clock)
    clock.now += 11
    assert silence.watermark() is None, "nothing is known before the first record"
    silence.heard("a", 50 * SECOND)
    silence.heard("b", 40 * SECOND)
    clock.now += 9
    assert silence.watermark() is None, "nobody is idle"
    silence.heard("a", 60 * SECOND)
    clock.now += 2
    # b has been silent for eleven seconds: a's watermark is 60 - 2.
    assert silence.watermark() == 58 * SECOND
    silence.advanced()
    clock.now += 5
    assert silence.watermark() is None, "it was moved five seconds ago"
    clock.now += 5
    # Both are silent, a for twelve seconds: event time goes on with the clock.
    assert silence.watermark() == (58 + 12) * SECOND


@pytest.mark.spark
def test_windows_close_in_silence(flow: hw.Flow, lab: Lab) -> None:
    flow.sink("sums", sums(lab.source(flow, "a", "1 | 1 | 1 | 10\n2 | 4 | 1 | 20")))
    path = str(lab.home / "store")
    with flow.start(store=path, capture="eager", live=True, idle_after="2 seconds") as run:
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline and len(labelled(hw.open(path))) < 2:
            run.wait(timeout=0.5)
        store = hw.open(path)
        assert store.results("sums").num_rows == 2
        assert set(labelled(store)) == {1, 2}
        # It goes on: what comes later is taken, what is too late is not.
        write(lab.home / "a", "id bigint, ts timestamp, k int, v int", "3 | 3 | 1 | 5")
        write(lab.home / "a", "id bigint, ts timestamp, k int, v int", "4 | 500 | 1 | 5")
        write(lab.home / "a", "id bigint, ts timestamp, k int, v int", "5 | 900 | 1 | 5")
        while time.monotonic() < deadline and 4 not in labelled(hw.open(path)):
            run.wait(timeout=0.5)
    store = hw.open(path)
    assert 4 in labelled(store)
    assert 3 not in labelled(store)
    batches = store.batches()["batch"].to_pylist()
    assert batches == list(range(len(batches)))


@pytest.mark.spark
def test_what_idle_after_needs(flow: hw.Flow, lab: Lab) -> None:
    flow.sink("sums", sums(lab.source(flow, "a", "1 | 1 | 1 | 10")))
    with pytest.raises(RunError, match="needs live=True and no available_now"):
        flow.start(store=str(lab.home / "store"), idle_after="2 seconds")
