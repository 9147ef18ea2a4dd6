"""A service called for a batch of events: over HTTP, and shared between tasks; no Spark."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark.sql.types import DoubleType, StructField, StructType

from headwater.service import sharing
from headwater.service.calls import Outcome, Policy
from headwater.service.sharing import Shared
from headwater.service.step import Called, answered, key_of, service_function, unpacked
from headwater.service.tokens import folder, one_query, token
from tests.service.endpoint import ok, serving

SCORE = StructType([StructField("score", DoubleType())])
QUICK = Policy(concurrency=4, retries=2, timeout=5.0, backoff=0.001)


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def called(target: Any, policy: Policy = QUICK, **static: Any) -> Called:
    return Called(target, SCORE, policy, "service-1", uuid4().hex, "UTC", static)


def told(
    service: Called, events: list[dict[str, Any]], batch: int = 0
) -> list[tuple[float | None, str | None, int]]:
    """Answer, reason and attempts of each event."""
    keys = [key_of(number, event) for number, event in enumerate(events)]
    found = answered(service, dict(zip(keys, events, strict=True)), batch)

    def score(outcome: Outcome) -> Any:
        packed = outcome.answer
        return None if packed is None else unpacked(packed, service.type)["score"]

    return [(score(found[key]), found[key].reason, found[key].attempts) for key in keys]


# --- functions --------------------------------------------------------------------------------


def test_a_function_is_called_with_the_event_and_what_is_static() -> None:
    seen = []

    def score(event: dict[str, Any], *, factor: float) -> dict[str, float]:
        seen.append(event)
        return {"score": event["v"] * factor}

    assert told(called(score, factor=10.0), [{"v": 1}, {"v": 2}]) == [(10, None, 1), (20, None, 1)]
    assert sorted(e["v"] for e in seen) == [1, 2]


def test_garbage_fails_its_event_alone_and_is_not_asked_for_again() -> None:
    service = called(lambda event: event["v"] if event["v"] > 1 else (event["v"],))
    assert told(service, [{"v": 1}, {"v": 2}]) == [
        (1.0, None, 1),
        (None, "the answer is 2, not an object", 1),
    ]


def test_the_step_over_arrays() -> None:
    step = service_function(called(lambda event: (event["v"],)))
    requests = pa.array([{"v": 1}, {"v": None}, {"v": 1}])
    found = step(requests, pa.array([1, 2, 1])).to_pylist()
    assert found == [
        {"answer": {"score": 1.0}, "reason": None, "attempts": 1},
        {"answer": {"score": None}, "reason": None, "attempts": 1},
        {"answer": {"score": 1.0}, "reason": None, "attempts": 1},
    ]
    assert step(requests.slice(0, 0), pa.array([], pa.int64())).to_pylist() == []


# --- HTTP -------------------------------------------------------------------------------------


def test_an_event_is_posted_as_json_with_what_is_static() -> None:
    at = datetime(2024, 5, 1, tzinfo=UTC)
    event = {"v": 2, "at": at, "price": Decimal("1.50"), "raw": b"hi", "none": None, "xs": [1]}
    with serving(lambda event, _: ok({"score": event["v"] * event["factor"]})) as endpoint:
        assert told(called(endpoint.url, factor=3), [event]) == [(6.0, None, 1)]
    assert endpoint.headers["Content-Type"] == "application/json"
    assert endpoint.seen == [
        {
            "v": 2,
            "at": "2024-05-01T00:00:00+00:00",
            "price": "1.50",
            "raw": "aGk=",
            "none": None,
            "xs": [1],
            "factor": 3,
        }
    ]


@pytest.mark.parametrize(
    ("reply", "outcome", "requests"),
    [
        (lambda _, n: (500, b"") if n == 0 else ok({"score": 1}), (1.0, None, 2), 2),
        (lambda _, n: (429, b"") if n < 2 else ok({"score": 1}), (1.0, None, 3), 3),
        (lambda _, n: (503, b""), (None, "HTTP 503 Service Unavailable", 3), 3),
        (lambda _, n: (404, b""), (None, "HTTP 404 Not Found", 1), 1),
        (lambda _, n: (302, b""), (None, "HTTP 302 Found", 1), 1),
        (lambda _, n: (200, b"<html>"), (None, "the answer is not JSON: b'<html>'", 1), 1),
        (lambda _, n: ok([1, 2]), (None, "the answer has 2 values, not 1", 1), 1),
        (lambda _, n: ok("high"), (None, "the answer is 'high', not an object", 1), 1),
        (
            lambda _, n: ok({"score": "high"}),
            (None, "the answer's 'score' is 'high', not double", 1),
            1,
        ),
        (lambda _, n: ok({}), (None, None, 1), 1),
    ],
    ids=["500", "429", "503", "404", "302", "html", "list", "text", "type", "missing"],
)
def test_what_the_service_says_decides(
    reply: Callable[[Any, int], Any], outcome: tuple[Any, ...], requests: int
) -> None:
    with serving(reply) as endpoint:
        assert told(called(endpoint.url), [{"v": 1}]) == [outcome]
    assert len(endpoint.seen) == requests


def test_a_slow_answer_is_given_up() -> None:
    def slow(event: Any, _: int) -> Any:
        time.sleep(0.5 if event["v"] == 1 else 0)
        return ok({"score": 1})

    policy = replace(QUICK, timeout=0.15, retries=0)
    with serving(slow) as endpoint:
        start = time.monotonic()
        found = told(called(endpoint.url, policy), [{"v": 1}, {"v": 2}])
        assert time.monotonic() - start < 0.45
    assert found == [(None, "timed out", 1), (1.0, None, 1)]


def test_nobody_listening_is_a_reason() -> None:
    with serving(lambda *_: ok({})) as endpoint:
        url = endpoint.url
    ((answer, reason, attempts),) = told(called(url), [{"v": 1}])
    assert (answer, attempts) == (None, 3)
    assert reason is not None
    assert "refused" in reason


def test_a_request_that_is_no_json_is_not_sent() -> None:
    with serving(lambda *_: ok({})) as endpoint:
        ((_, reason, attempts),) = told(called(endpoint.url), [{"v": float("nan")}])
        assert endpoint.seen == []
    assert reason is not None
    assert reason.startswith("the request can't be written as JSON")
    assert attempts == 1


# --- sharing ----------------------------------------------------------------------------------


def test_two_tasks_call_once_for_each_event_and_hear_the_same() -> None:
    lock, seen = threading.Lock(), []

    def random_score(event: dict[str, Any]) -> tuple[float]:
        with lock:
            seen.append(event["v"])
        time.sleep(0.005)
        if event["v"] % 5 == 0:
            raise ValueError("never fives")
        return (time.perf_counter_ns() * 1.0,)

    service = called(random_score, replace(QUICK, retries=0))
    events = [{"v": v} for v in range(60)]
    found: list[Any] = [None, None]

    def task(number: int) -> None:
        found[number] = told(service, events)

    tasks = [threading.Thread(target=task, args=(number,)) for number in range(2)]
    for each in tasks:
        each.start()
    for each in tasks:
        each.join()
    assert sorted(seen) == list(range(60))
    assert found[0] == found[1]
    assert [reason for _, reason, _ in found[0]].count("ValueError: never fives") == 12


def test_another_batch_another_step_and_another_key_are_called_for_anew() -> None:
    seen = []

    def score(event: dict[str, Any]) -> tuple[float]:
        seen.append(event["v"])
        return (1.0,)

    service = called(score)
    for batch in (0, 0, 1):
        told(service, [{"v": 1}, {"v": 1}, {"v": 2}], batch)
    told(replace(service, step="service-2"), [{"v": 1}], 1)
    told(replace(service, token=uuid4().hex), [{"v": 1}], 1)
    # Two rows that are equal but for their keys are two events.
    assert seen.count(1) == 2 * 2 + 2
    assert seen.count(2) == 2


def test_a_claim_holds_until_its_owner_is_late_or_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    name = uuid4().hex
    events = [b"a", b"b"]
    with Shared(name, 0, "s", 60) as first, Shared(name, 0, "s", 60) as second:
        assert first.claim(events) == events
        assert second.look(events) == ({}, [])
        assert second.claim(events) == []
        outcome = Outcome(b"1", None, 1)
        assert first.tell(b"a", outcome) == outcome
        assert second.look(events) == ({b"a": outcome}, [])
        monkeypatch.setattr(sharing, "_is_alive", lambda pid: pid != os.getpid())
        assert second.claim(events) == [b"b"]
        # What is told first counts, for both.
        assert second.tell(b"b", Outcome(None, "no", 2)) == Outcome(None, "no", 2)
        assert first.tell(b"b", outcome) == Outcome(None, "no", 2)
    with Shared(name, 0, "late", -1) as late:
        assert late.claim([b"a"]) == [b"a"]
        assert late.claim([b"a"]) == [b"a"]


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "MOST", 3)
    name = uuid4().hex
    with Shared(name, 0, "s", 60) as shared:
        for number in range(5):
            shared.claim([bytes([number])])
            shared.tell(bytes([number]), Outcome(None, "no", number))
        known, _ = shared.look([bytes([number]) for number in range(5)])
        assert sorted(o.attempts for o in known.values()) == [2, 3, 4]
    with Shared(name, 1, "s", 60), Shared(name, 0, "s", 60) as before:
        assert before.look([bytes([4])]) == ({}, [bytes([4])])


def test_what_queries_left_behind_is_removed() -> None:
    old, new = uuid4().hex, uuid4().hex
    for name in (old, new):
        with Shared(name, 0, "s", 60):
            pass
    assert oct(folder(new).stat().st_mode & 0o777) == "0o700"
    os.utime(folder(old), (0, 0))
    with Shared(uuid4().hex, 0, "s", 60):
        assert not folder(old).exists()
        assert folder(new).exists()


def test_a_database_that_can_not_be_used_names_the_step(tmp_path: Path) -> None:
    name = uuid4().hex
    folder(name).write_text("in the way")
    with pytest.raises(RuntimeError, match="service 's': can't share answers in .*"):
        Shared(name, 0, "s", 60)


def test_all_that_is_lowered_for_a_query_has_one_token() -> None:
    with one_query():
        first = token()
        assert token() == first
    with one_query():
        assert token() != first
    assert token() != token()
