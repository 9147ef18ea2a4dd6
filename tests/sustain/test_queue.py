"""What a queue counts, its history, the matrix, the metrics."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import FlowError
from headwater.sustain import Monitor, Queue, Totals
from headwater.sustain.metrics import FAMILIES, text
from headwater.sustain.simulation import departures


def test_counts_and_times() -> None:
    queue = Queue("storms")
    queue.arrived(10, at=0)
    queue.finished(4, made=1, compute=2.0, framework=0.5, at=3)
    now = queue.measured()
    assert (now.taken, now.done, now.made, now.length) == (10, 4, 1, 6)
    assert (now.service, now.efficiency, now.cardinality) == (0.5, 0.8, 0.25)
    assert now.rate == 10 / 4
    queue.observe(Totals(taken=20, done=20, made=5, compute=10.0, framework=2.5), at=9)
    assert queue.measured().length == 0


def test_what_is_measured_is_of_the_history_not_of_all_time() -> None:
    queue = Queue("n", size=64)
    for second in range(300):
        queue.arrived(1, at=second)
        queue.finished(1, compute=1.0 if second < 200 else 3.0, at=second + 0.5)
    now = queue.measured()
    assert (now.service, now.taken, queue.series().pieces) == (3.0, 300, 64)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 120), st.integers(-3, 3)), max_size=60),
    st.integers(64, 80),
)
def test_the_history_is_that_of_a_list(changes: list[tuple[float, int]], size: int) -> None:
    """Lengths by piece of time, against all changes kept."""
    queue, length = Queue("n", size=size), 0
    kept: list[tuple[float, int]] = []
    for at, change in sorted(changes):
        change = max(change, -length)
        if change >= 0:
            queue.arrived(change, at=at)
        else:
            queue.finished(-change, at=at)
        length += change
        kept.append((at, length))
    series = queue.series()
    if not kept:
        assert series.pieces == 0
        return
    first, end = int(kept[0][0]), int(kept[-1][0])
    begin = max(first, end - size + 1)
    assert (series.start, series.pieces) == (begin, end - begin + 1)
    for piece, (low, high, last) in enumerate(
        zip(series.low, series.high, series.last, strict=True), start=begin
    ):
        before = [n for at, n in kept if at < piece] or [0]
        within = [n for at, n in kept if piece <= at < piece + 1]
        lengths = [before[-1], *within]
        assert (low, high, last) == (min(lengths), max(lengths), lengths[-1])


def test_long_jobs_widen_their_history() -> None:
    queue = Queue("forecast", size=64)
    for hour in range(100):
        queue.arrived(1, at=hour * 3_600.0)
        queue.finished(1, compute=1_800.0, at=hour * 3_600.0 + 1_800)
    series = queue.series()
    assert series.span >= 16 * 1_800
    assert queue.measured().verdict.state == "healthy"
    assert Queue("forecast", service=3_600.0).measured().verdict.reason.startswith("0 s of history")


@settings(deadline=None)
@given(
    st.lists(st.floats(0, 100), min_size=1, max_size=30),
    st.floats(0.1, 5),
    st.integers(1, 4),
)
def test_the_simulator_serves_in_order_and_no_slot_twice(
    times: list[float], service: float, slots: int
) -> None:
    came = sorted(times)
    gone = list(departures(came, service, slots))
    assert gone == sorted(gone)
    for at, done in zip(came, gone, strict=True):
        assert done >= at + service - 1e-9
        # Those that are in a slot at the moment it starts: no more than there are slots.
        begins = done - service
        assert sum(other - service <= begins < other - 1e-9 for other in gone) <= slots


def test_a_matrix_of_nodes_with_other_pieces_of_time() -> None:
    monitor = Monitor("weather")
    monitor.queue("fast").arrived(3, at=0.0)
    monitor.queue("fast").finished(1, at=5.0)
    monitor.queue("slow", every=2.0).arrived(4, at=2.0)
    made = monitor.matrix()
    assert made.nodes == ("fast", "slow")
    assert made.times.tolist() == [2.0, 4.0, 6.0]
    assert np.array_equal(made.lengths, [[3, 3, 2], [0, 4, 4]])


LINE = re.compile(r'^[a-z_]+\{([a-z]+="(?:[^"\\\n]|\\.)*",?)+\} (\+Inf|-?[\d.e+-]+)$')


def test_metrics_are_in_prometheus_text_format() -> None:
    monitor = Monitor('we"ather', version="3")
    queue = monitor.queue("storms", capacity=500)
    for second in range(200):
        queue.arrived(2, at=second)
        queue.finished(1, compute=0.5, framework=0.1, at=second + 0.5)
    lines = text([monitor, Monitor("empty")]).splitlines()
    told = [line for line in lines if not line.startswith("#")]
    assert all(LINE.match(line) for line in told)
    labels = r'{flow="we\"ather",node="storms",version="3"}'
    assert f"headwater_events_in_total{labels} 400" in told
    assert f"headwater_events_in_transit{labels} 200" in told
    states = {line.split('state="')[1] for line in told if "queue_state" in line}
    assert states == {'growing"} 1', 'healthy"} 0', 'bursting"} 0', 'unknown"} 0'}
    assert len([line for line in lines if line.startswith("# TYPE")]) == len(FAMILIES) + 1
    assert text([]) == ""


def test_bad_settings_are_refused() -> None:
    with pytest.raises(FlowError, match="slots=0"):
        Queue("n", slots=0)
