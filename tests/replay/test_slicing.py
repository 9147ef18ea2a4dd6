"""Slices, sessions and schedules without Spark."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.flow import nodes
from headwater.lowering.identity import file_positions
from headwater.replay.schedule import Schedule
from headwater.replay.sessions import merged as sessions
from headwater.replay.slicing import MOST_SPANS, contains, merged
from tests.testing.tables import source

spans = st.lists(
    st.tuples(st.integers(-1000, 1000), st.integers(0, 60)).map(lambda s: (s[0], s[0] + s[1])),
    max_size=200,
)


@given(spans)
def test_merged_spans_cover_all_and_are_few(given_: list[tuple[int, int]]) -> None:
    lows, highs = (np.array([s[i] for s in given_], np.int64) for i in (0, 1))
    found = merged(lows, highs)
    assert len(found) <= MOST_SPANS
    assert all(b < c for (_, b), (c, _) in pairwise(found)), "apart, in order"
    for low, high in given_:
        assert any(a <= low and high <= b for a, b in found)
    if len(given_) < MOST_SPANS:
        covered = {n for low, high in given_ for n in range(low, high + 1)}
        assert {n for a, b in found for n in range(a, b + 1)} == covered


def test_the_part_of_a_file_that_spans_meet() -> None:
    assert contains([(5, 9), (20, 30)], 0, 4) is None
    assert contains([(5, 9), (20, 30)], 8, 100) == (8, 30)
    assert contains([(5, 9), (20, 30)], 0, 100) == (5, 30)


def test_positions_follow_the_files_times() -> None:
    first, second = file_positions(1_700_000_000_000), file_positions(1_700_000_000_001)
    assert first[0] < first[1] < second[0]
    ancient, future = file_positions(0), file_positions(10**15)
    assert ancient[0] == 0, "times before the first number share it"
    assert future[1] < 2**63, "a position is a bigint whatever the file's time"


rows = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 9), st.integers(0, 5)), min_size=1, max_size=30
)


@given(rows, st.lists(st.integers(0, 20), min_size=6, max_size=6))
def test_sessions_as_a_stream_makes_them(
    given_: list[tuple[int, int, int]], steps: list[int]
) -> None:
    """Against a simulation batch by batch that keeps open sessions and gives out closed ones."""
    limits = np.array([0, *np.cumsum(steps)[:-1]], np.int64)
    starts, gaps, batches = (np.array([r[i] for r in given_], np.int64) for i in range(3))
    kept, begun, ended = sessions(starts, starts + gaps, batches, limits)
    expected: dict[int, tuple[int, int]] = {}
    open_: list[tuple[int, int, list[int]]] = []
    for batch, limit in enumerate(limits):
        open_ = [s for s in open_ if s[1] > limit]
        for i in np.flatnonzero(batches == batch):
            low, high, members = int(starts[i]), int(starts[i] + gaps[i]), [int(i)]
            if high <= limit:
                continue
            touching = [s for s in open_ if s[0] <= high and low <= s[1]]
            # Joining one session may make it touch the next.
            while touching:
                open_ = [s for s in open_ if s not in touching]
                low, high = (
                    min(low, *(s[0] for s in touching)),
                    max(high, *(s[1] for s in touching)),
                )
                members += [m for s in touching for m in s[2]]
                touching = [s for s in open_ if s[0] <= high and low <= s[1]]
            open_.append((low, high, members))
        expected |= {m: (low, high) for low, high, members in open_ for m in members}
    assert set(np.flatnonzero(kept).tolist()) == set(expected)
    for i, (low, high) in expected.items():
        assert (begun[i], ended[i]) == (low, high), given_


def test_a_step_lets_in_what_the_batch_before_allowed() -> None:
    schedule = Schedule((0, 10_000, 30_000))
    step = nodes.Aggregate(step="sums", inputs=(source(),), keys=(), columns=())
    assert schedule.given_out(step).tolist() == [0, 10_000, 30_000]
    assert schedule.let_in(step).tolist() == [0, 0, 10_000]


@pytest.mark.parametrize(("waits", "delay"), [((4_000, 1_000), 4_000), ((-2_000, 500), 500)])
def test_a_join_lags_behind_by_its_longest_wait(waits: tuple[int, int], delay: int) -> None:
    join = nodes.Join(
        step="pairs", inputs=(source("a"), source("b")), on=("k",), how="inner", waits=waits
    )
    step = nodes.Aggregate(step="sums", inputs=(join,), keys=(), columns=())
    schedule = Schedule((0, 1_000, 30_000))
    assert schedule.given_out(join).tolist() == [0, 1_000, 30_000]
    assert schedule.given_out(step).tolist() == [0, max(1_000 - delay, 0), 30_000 - delay]
