"""The queue: what is enqueued once, windows, versions, states, measures."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headwater.compose import Composition
from headwater.errors import FlowError, RunError, UnknownId
from headwater.runtimes.jobs import Event, Job, JobQueue, State, Step, job_of
from headwater.runtimes.jobs.states import TRANSITIONS, whole
from tests.runtimes.lab import STEPS as MODEL
from tests.runtimes.lab import done, events, job


def test_an_event_is_enqueued_once_for_a_version(tmp_path: Path) -> None:
    with JobQueue(tmp_path, job("true")) as queue:
        assert queue.enqueue(events(1, 2, 2)) == ["forecast@1/e1", "forecast@1/e2"]
        assert queue.enqueue(events(2, 3)) == ["forecast@1/e3"]
        assert queue.enqueue([Event(3, {}), Event("3", {})]) == ["forecast@1/#3", "forecast@1/3"]
        assert queue.totals().taken == 5
    with JobQueue(tmp_path, job("true", version="2")) as queue:
        assert queue.enqueue(events(1)) == ["forecast@2/e1"]
        assert queue.counts()[State.ready] == 6


def test_executions_go_on_in_the_version_that_they_came_for(tmp_path: Path) -> None:
    with JobQueue(tmp_path, job("echo '{\"v\": 1}'")) as queue:
        queue.enqueue(events(1))
    _, told = done(tmp_path, job("echo '{\"v\": 2}'", version="2", slots=2), events(2))
    assert told.values == {"forecast@1/e1": [{"v": 1}], "forecast@2/e2": [{"v": 2}]}


def test_a_version_is_one_thing_but_may_be_tuned(tmp_path: Path) -> None:
    with JobQueue(tmp_path, job("true")) as queue:
        queue.declare(job("true", slots=7, timeout=5.0))
        assert (queue.job.slots, queue.job.timeout) == (7, 5.0)
        with pytest.raises(RunError, match="give what is new another version"):
            queue.declare(job("false"))
        with pytest.raises(RunError, match="the queue of node 'forecast' of flow 'weather'"):
            queue.declare(Job("weather", "other", run="true"))
        with pytest.raises(UnknownId, match="no execution 'x'"):
            queue.execution("x")


def test_a_file_that_is_no_queue(tmp_path: Path) -> None:
    (tmp_path / "queue.db").write_text("something else entirely, and long enough to be looked at")
    with pytest.raises(RunError, match="is no queue of jobs"):
        JobQueue(tmp_path)
    with pytest.raises(RunError, match="no job is declared"):
        JobQueue(tmp_path / "new").enqueue(events(1))


def test_windows_of_so_many_events_survive_a_restart(tmp_path: Path) -> None:
    made = job(call="tests.runtimes.functions:total", count=3, folder=str(Path.cwd()))
    with JobQueue(tmp_path, made) as queue:
        assert queue.enqueue(events(1, 2)) == []
    with JobQueue(tmp_path) as queue:
        assert queue.open_events == 2
        (key,) = queue.enqueue(events(1, 2, 3, 4))
        assert [event.id for event in queue.execution(key).events] == ["e1", "e2", "e3"]
        assert queue.enqueue(events(1, 2, 3, 4)) == []
        assert len(queue.flush()) == 1
        assert queue.flush() == []
    _, told = done(tmp_path, made, [])
    assert sorted(rows[0]["sum"] for rows in told.values.values()) == [4, 6]


def test_windows_of_time_close_by_the_watermark(tmp_path: Path) -> None:
    with JobQueue(tmp_path, job("true", every=10.0)) as queue:
        queue.enqueue(events(3, 12, 7, 25))
        keys = queue.advance(20.0)
        assert [[e.value["n"] for e in queue.execution(key).events] for key in keys] == [
            [3, 7],
            [12],
        ]
        queue.enqueue(events(8))  # late: it is not lost
        (late,) = queue.advance(20.0)
        assert queue.execution(late).events == tuple(events(8))
        with pytest.raises(RunError, match="event 'x' has no time"):
            queue.enqueue([Event("x", {})])


def test_counts_follow_the_states_and_forgetting(tmp_path: Path) -> None:
    queue, _ = done(
        tmp_path, job("test $HEADWATER_EXECUTION = forecast@1/e1", retries=0), events(1, 2)
    )
    counts = queue.counts()
    assert (counts[State.finished], counts[State.failed], sum(counts.values())) == (1, 1, 2)
    assert queue.forget(60.0) == 0
    assert queue.forget(0.0) == 2
    assert sum(queue.counts().values()) == 0
    assert queue.enqueue(events(1, 2)) == []


def test_the_history_is_read_by_sustain(tmp_path: Path) -> None:
    queue, _ = done(tmp_path, job("sleep 0.1; echo '{}'; echo '{}'", slots=2), events(*range(4)))
    now = queue.monitor().measured()
    assert (now.taken, now.done, now.made, now.length) == (4, 4, 8, 0)
    assert now.cardinality == 2
    assert now.service == pytest.approx(0.1, abs=0.08)
    assert now.efficiency is not None
    assert 0.3 < now.efficiency <= 1
    assert now.verdict.state == "unknown"


def test_a_node_of_a_flow_file() -> None:
    flow = Composition.parse(
        "flow: weather\nnodes:\n"
        "  strong: {source: {stream: strong}}\n"
        "  forecast: {job: {from: strong, run: python forecast.py, slots: 2, timeout: 1 hour, "
        "backoff: 0.5, per: {count: 3}, schema: n bigint, static: {model: wrf}}}\n"
    )
    made = job_of(flow, "forecast", version="4", folder="/flows")
    assert (made.steps[0].run, made.slots, made.timeout) == ("python forecast.py", 2, 3600.0)
    assert (made.backoff, made.count, made.version) == (0.5, 3, "4")
    assert Job.parse(made.text()) == made


def test_the_steps_of_a_flow_files_job() -> None:
    flow = Composition.parse(
        "flow: weather\nnodes:\n"
        "  strong: {source: {stream: strong}}\n"
        "  forecast:\n"
        "    job:\n"
        "      from: strong\n"
        "      steps:\n"
        "        prepare: {call: 'tests.runtimes.functions:prepare'}\n"
        "        simulate: {call: 'tests.runtimes.functions:simulate', after: prepare}\n"
        "        report: {call: 'tests.runtimes.functions:report', after: [simulate]}\n"
    )
    assert job_of(flow, "forecast").steps == MODEL
    assert job_of(Composition.parse(flow.to_json()), "forecast").steps == MODEL


STEP_NAMES = st.sampled_from(["a", "b", "c"])
GIVEN = st.dictionaries(
    STEP_NAMES,
    st.fixed_dictionaries(
        {},
        optional={
            "run": st.just("true"),
            "call": st.sampled_from(["m:f", "f"]),
            "after": st.lists(STEP_NAMES | st.just("d"), max_size=2, unique=True),
        },
    ),
    min_size=1,
)


@settings(max_examples=300, deadline=None)
@given(GIVEN)
def test_a_flow_file_refuses_the_steps_that_a_job_refuses(steps: dict[str, Any]) -> None:
    def refused(make: Callable[[], object]) -> bool:
        try:
            make()
        except FlowError:
            return True
        return False

    def in_a_file() -> Job:
        flow = Composition("x").source("s", stream="s").job("j", "s", steps=steps)
        return job_of(flow, "j")

    def by_itself() -> Job:
        keys = {
            name: {**step, "after": tuple(step.get("after", ()))} for name, step in steps.items()
        }
        return Job("x", "j", steps=tuple(Step(name, **step) for name, step in keys.items()))

    assert refused(in_a_file) == refused(by_itself)
    if not refused(in_a_file):
        assert in_a_file() == by_itself()


# --- states -----------------------------------------------------------------------------------


def test_the_file_itself_refuses_other_moves(tmp_path: Path) -> None:
    with JobQueue(tmp_path, job("true")) as queue:
        queue.enqueue(events(1))
        set_state = "update steps set state = ? where execution = 1"
        for before in State:
            for after in State:
                queue.database.run("drop trigger step_moves")
                queue.database.run(set_state, before)
                queue.database.run(_trigger())
                allowed = before == after or (before, after) in TRANSITIONS
                if allowed:
                    queue.database.run(set_state, after)
                else:
                    with pytest.raises(sqlite3.IntegrityError, match="not a way"):
                        queue.database.run(set_state, after)


def _trigger() -> str:
    from headwater.runtimes.jobs import schema

    return schema._TRIGGERS.split("end;")[0] + "end;"


STEPS = (
    Step("a", run="true"),
    Step("b", run="true"),
    Step("c", run="true", after=("a",)),
    Step("d", run="true", after=("b", "c")),
)


class Moves(RuleBasedStateMachine):
    """Whatever happens, steps wait for those before them, and what is over is told once."""

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.queue = JobQueue(self.folder.name, job(steps=STEPS, retries=1, backoff=0.0))
        self.running: list[object] = []
        self.enqueued: set[int] = set()
        self.over: dict[str, int] = {}

    @rule(number=st.integers(0, 3))
    def enqueue(self, number: int) -> None:
        new = self.queue.enqueue(events(number))
        assert bool(new) == (number not in self.enqueued)
        self.enqueued.add(number)

    @rule()
    def take(self) -> None:
        self.queue.ledger.due(time.time() + 1)
        task = self.queue.ledger.take("boot")
        if task is not None:
            states = self.queue.steps(task.key)
            assert all(states[before] == State.finished for before in task.step.after)
            assert set(task.inputs) == set(task.step.after)
            self.running.append(task)

    @precondition(lambda self: self.running)
    @rule(
        how=st.sampled_from(["finish", "finish", "finish", "fail", "interrupt"]),
        n=st.integers(0, 9),
    )
    def end(self, how: str, n: int) -> None:
        task = self.running.pop(n % len(self.running))
        ledger = self.queue.ledger
        if how == "finish":
            ledger.finish(task, [{"made": n}], 0.1, 0.1)  # type: ignore[arg-type]
        elif how == "fail":
            ledger.fail(task, "it failed", "")  # type: ignore[arg-type]
        else:
            ledger.interrupt(task)  # type: ignore[arg-type]

    @precondition(lambda self: self.enqueued)
    @rule(n=st.integers(0, 9), step=st.sampled_from([None, "a", "b", "c", "d"]))
    def rerun(self, n: int, step: str | None) -> None:
        chosen = self.queue.executions()
        before = chosen[n % len(chosen)]
        states = self.queue.steps(before.key)
        try:
            name = self.queue.rerun(before.key, step=step)
        except RunError:
            busy = State.running in states.values()
            kept = set(states) - set(self.queue.job.from_on(step or "a"))
            assert busy or any(states[each] != State.finished for each in kept)
            return
        over = before.state in (State.finished, State.failed)
        assert (name != before.name) == over

    @rule()
    def restart(self) -> None:
        self.queue.close()
        self.queue = JobQueue(self.folder.name)
        assert len(self.queue.ledger.running()) == len(self.running)

    @invariant()
    def consistent(self) -> None:
        executions = self.queue.executions()
        counts = self.queue.counts()
        for execution in executions:
            assert execution.state == whole(list(self.queue.steps(execution.key).values()))
        assert {s: n for s, n in counts.items() if n} == {
            s: sum(e.state == s for e in executions) for s in {e.state for e in executions}
        }
        told = self.queue.database.rows("select execution, generation from tellings")
        assert len(told) == sum(
            e.generation + (e.state in (State.finished, State.failed)) for e in executions
        )
        totals = self.queue.totals()
        alive = sum(e.state not in (State.finished, State.failed) for e in executions)
        assert totals.length == alive

    def teardown(self) -> None:
        self.queue.close()
        self.folder.cleanup()


TestMoves = Moves.TestCase
TestMoves.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)
