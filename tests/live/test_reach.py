"""How far records reach: the rules of steps, composed by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from headwater.flow.reach import FOREVER, OWN_BATCH, Reach
from headwater.flow.reach_rules import Rule
from headwater.live.pending import UNKNOWN, Pending
from headwater.live.sessions import SessionStep
from headwater.times import NO_TIME

S = 1_000_000


def window(step: str, of: str, size: int, slide: int | None = None, lag: int = 0) -> Rule:
    return Rule(step, "window", (of,), lag * S, size * S, (slide or size) * S)


def reach(*rules: Rule) -> Reach:
    last = rules[-1].step
    sink = Rule("out", "pass", (last,))
    return Reach("a", (Rule("a", "start"), *rules, sink), ("out",))


def until(of: Reach, *seconds: float) -> list[float]:
    found = of.until(np.array([int(second * S) for second in seconds]))
    return [value / S if abs(value) < FOREVER else value for value in found.tolist()]


def test_windows() -> None:
    assert until(reach(window("w", "a", 10)), 0, 9.999, 10, 11) == [10, 10, 20, 20]
    assert until(reach(window("w", "a", 10, 5)), 0, 4, 5, 9) == [10, 10, 15, 15]
    # Windows [0, 2), [5, 7), …: between them a record is in none.
    assert until(reach(window("w", "a", 2, 5)), 1, 3, 5) == [2, OWN_BATCH, 7]
    # The window that ends at 10 gives a row at 9.999999, which is in the one that ends at 30.
    assert until(reach(window("w", "a", 10), window("v", "w", 30)), 1, 29, 31) == [30, 30, 60]


def test_a_record_without_a_time_is_past_at_once() -> None:
    assert reach(window("w", "a", 10)).until(np.array([NO_TIME])).tolist() == [OWN_BATCH]


def test_what_follows_a_join_lags_behind() -> None:
    pair = Rule("j", "pair", ("a", "b"), waits=(10 * S, 0))
    assert until(reach(pair), 1) == [11]
    # The pair may be at 11, in the window that ends at 20, which closes ten seconds later.
    assert until(reach(pair, window("w", "j", 20, lag=10)), 1) == [30]


def test_endless_steps_are_named() -> None:
    endless = reach(Rule("c", "endless", ("a",), why="it waits"))
    assert str(endless.unbounded) == "step 'c': it waits"
    assert until(endless, 1) == [FOREVER]


def test_what_waits_above_a_session_counts() -> None:
    rules = (window("w", "a", 10), Rule("s", "session", ("w",), size=3 * S))
    found = reach(*rules)
    assert until(found, 1) == [10]
    assert found.after("s", np.array([13 * S])).tolist() == [13 * S]
    assert list(found.sessions) == ["s"]


def test_rules_are_plain_data() -> None:
    given = reach(window("w", "a", 10), Rule("s", "session", ("w",), size=3 * S))
    assert Reach.from_json(json.loads(json.dumps(given.to_json()))) == given


def test_alive_since_is_the_earliest_that_is_not_past() -> None:
    found = Reach("a", reach(window("w", "a", 10, 5)).rules, ("out",), ananke=10 * S)
    for watermark in range(0, 40 * S, 2_500_000):
        since = found.alive_since(watermark)
        assert since is not None
        assert (
            found.until(np.array([since]))[0] > watermark >= found.until(np.array([since - 1]))[0]
        )
    assert Reach("a", found.rules, ("out",), ananke=None).alive_since(0) is None


@pytest.fixture
def pending(tmp_path: Path) -> Pending:
    return Pending(tmp_path, lambda t: t + 10, lambda ids: np.zeros(len(ids), bool), False)


def test_times_are_held_until_they_are_past(pending: Pending, tmp_path: Path) -> None:
    chance = np.random.default_rng(5)
    ids = chance.permutation(20_000)
    for batch in range(20):
        mine = ids[batch * 1000 : (batch + 1) * 1000]
        pending.add(batch, mine, np.full(1000, batch * 10))
        pending.expire(batch * 10)
        assert len(list(tmp_path.glob("*.arrow"))) <= 2
        assert (pending.at(mine) == batch * 10).all()
    assert len(pending) <= 5_000, "what is past is let go"
    assert pending.at(np.array([1 << 40])).tolist() == [UNKNOWN]


def test_a_process_that_comes_after(pending: Pending, tmp_path: Path) -> None:
    for batch in range(3):
        pending.add(batch, np.array([batch]), np.array([100 + batch]))
    again = Pending(tmp_path, pending.until, pending.held, False)
    # Batch 2 was not committed: it runs again.
    again.restore(last_batch=1)
    assert again.at(np.array([0, 1, 2])).tolist() == [100, 101, UNKNOWN]
    assert sorted(file.name for file in tmp_path.glob("*")) == ["0.arrow", "1.arrow"]


def test_sessions_by_rows(tmp_path: Path) -> None:
    found = reach(Rule("s", "session", ("a",), size=10))
    step = SessionStep(found.sessions["s"], found, tmp_path)
    rows = np.array([[1, 1, 2], [5, 12, 5], [100, 101, 102]])  # keys, times, records
    step.advance(0, tuple(rows), 0, 0)
    assert step.due(np.array([100, 101, 102, 103])).tolist() == [FOREVER] * 3 + [OWN_BATCH]
    # The session of key 2 ends at 15, that of key 1 at 22, unless more comes.
    step.advance(1, tuple(np.array([[1], [20], [104]])), 16, 0)
    assert step.due(np.array([100, 102, 104])).tolist() == [FOREVER, OWN_BATCH, FOREVER]
    again = SessionStep(found.sessions["s"], found, tmp_path)
    again.restore(1)
    # A row whose session would have ended before the last watermark is late.
    again.advance(2, tuple(np.array([[1], [4], [105]])), 30, 16)
    assert again.due(np.array([100, 101, 104, 105])).tolist() == [OWN_BATCH] * 4
