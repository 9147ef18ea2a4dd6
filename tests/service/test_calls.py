"""Calls under way: bounded, timed, tried again; no Spark."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from headwater.service import calls
from headwater.service.calls import Calls, Failed, Final, Outcome, Policy

QUICK = Policy(concurrency=4, retries=2, timeout=5.0, backoff=0.001)


def outcomes(function: Any, events: list[Any], policy: Policy = QUICK) -> list[Outcome]:
    """What comes of each event, in the order of the events."""
    under_way: Calls[Any] = Calls(function, policy)
    done: dict[bytes, Outcome] = {}
    left = list(enumerate(events))
    while len(done) < len(events):
        while left and under_way.room:
            number, event = left.pop(0)
            under_way.start(str(number).encode(), event)
        done.update(under_way.finished(1.0))
    return [done[str(number).encode()] for number in range(len(events))]


def test_answers_come_back_under_their_keys() -> None:
    found = outcomes(lambda event: event * 10, [1, 2, 3, 4, 5, 6])
    assert found == [Outcome(n * 10, None, 1) for n in range(1, 7)]


def test_a_failing_call_is_tried_again_until_it_works() -> None:
    tried: list[int] = []

    def flaky(event: int) -> str:
        tried.append(event)
        if len(tried) < 3:
            raise ConnectionError("not yet")
        return "there"

    assert outcomes(flaky, [7]) == [Outcome("there", None, 3)]
    assert tried == [7, 7, 7]


def test_an_event_whose_every_call_fails_has_the_last_reason() -> None:
    def raising(event: int) -> None:
        raise ValueError(f"no {event}\nat all")

    assert outcomes(raising, [1]) == [Outcome(None, "ValueError: no 1 at all", 3)]
    assert outcomes(raising, [1], Policy(retries=0)) == [
        Outcome(None, "ValueError: no 1 at all", 1)
    ]


def test_what_another_call_would_not_change_is_not_tried_again() -> None:
    tried: list[int] = []

    def refused(event: int) -> None:
        tried.append(event)
        raise Final("HTTP 404 Not Found")

    assert outcomes(refused, [1, 2]) == [Outcome(None, "HTTP 404 Not Found", 1)] * 2
    assert sorted(tried) == [1, 2]


def test_a_call_that_hangs_is_not_waited_for() -> None:
    free = threading.Event()

    def hanging(event: int) -> int:
        if event == 2:
            free.wait(60)
        return event

    start = time.monotonic()
    policy = Policy(concurrency=2, retries=1, timeout=0.2, backoff=0.001)
    found = outcomes(hanging, [1, 2, 3, 4], policy)
    took = time.monotonic() - start
    free.set()
    assert found == [
        Outcome(1, None, 1),
        Outcome(None, "timed out", 2),
        Outcome(3, None, 1),
        Outcome(4, None, 1),
    ]
    assert 0.4 <= took < 5


def test_an_answer_after_its_time_is_not_heard() -> None:
    tried: list[int] = []

    def late_at_first(event: int) -> str:
        tried.append(event)
        if len(tried) == 1:
            time.sleep(0.3)
            return "late"
        return "in time"

    policy = Policy(concurrency=1, retries=1, timeout=0.15, backoff=0.001)
    assert outcomes(late_at_first, [1], policy) == [Outcome("in time", None, 2)]


def test_no_more_calls_run_at_once_than_allowed() -> None:
    lock, now, most = threading.Lock(), [0], [0]

    def counted(event: int) -> int:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.02)
        with lock:
            now[0] -= 1
        return event

    outcomes(counted, list(range(20)), Policy(concurrency=3))
    assert most[0] == 3


def test_when_too_many_calls_hang_others_fail_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MOST_HANGING", 1)
    monkeypatch.setattr(calls, "_hanging", set())
    free = threading.Event()
    policy = Policy(concurrency=1, retries=0, timeout=0.1)
    found = outcomes(lambda event: free.wait(60), [1, 2], policy)
    free.set()
    assert [o.reason for o in found] == [
        "timed out",
        "timed out: 1 earlier calls have not returned",
    ]


def test_pauses_grow_are_bounded_and_never_the_same() -> None:
    policy = Policy(retries=3, timeout=1.0, backoff=0.1)
    pauses = {policy.pause(3) for _ in range(50)}
    assert len(pauses) > 1
    assert all(0.2 <= pause <= 0.4 for pause in pauses)
    assert policy.pause(30) <= calls.LONGEST_BACKOFF
    assert policy.longest == pytest.approx(4 * 1.0 + 0.1 + 0.2 + 0.4)


def test_reasons_are_one_short_line() -> None:
    assert calls.reason_of(Failed("HTTP 500 Oops")) == "HTTP 500 Oops"
    assert calls.reason_of(KeyError()) == "KeyError"
    assert calls.reason_of(TimeoutError("read")) == "timed out"
    assert len(calls.reason_of(ValueError("x" * 2000))) == calls.MOST_SAID
