"""The book of executions: every move of a step, each in one transaction."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater.runtimes.jobs.closing import close
from headwater.runtimes.jobs.events import Execution, encoded, restored
from headwater.runtimes.jobs.job import Job, Step
from headwater.runtimes.jobs.states import OVER, State, whole

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from headwater.runtimes.jobs.database import Database
    from headwater.runtimes.jobs.events import Event

INTERRUPTIONS = 10
"""How often a step may be cut off by the end of its runtime, before it is taken for the cause."""


@dataclass(frozen=True, slots=True)
class Task:
    """One try of one step."""

    number: int
    """Of the execution."""
    key: str
    generation: int
    job: Job
    step: Step
    attempt: int
    folder: str
    """Its own, under the queue's work folder."""
    boot: str
    started: float
    events: tuple[Event, ...]
    inputs: Mapping[str, Sequence[Mapping[str, Any]]]
    """What the steps before it made."""
    parameters: Mapping[str, Any]
    """Static values, and those of a rerun over them."""


class Ledger:
    """Moves steps from state to state."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._jobs: dict[str, Job] = {}  # by their text, which another process may change

    def job(self, version: str) -> Job:
        """The job in a version."""
        found = self._db.row("select text from jobs where version = ?", version)
        assert found is not None
        text = found["text"]
        if text not in self._jobs:
            self._jobs[text] = Job.parse(text)
        return self._jobs[text]

    # --- moves --------------------------------------------------------------------------------

    def add(self, job: Job, key: str, events: str, now: float) -> None:
        """A new execution: steps that nothing comes before are ready."""
        number = self._db.insert(
            "insert into executions (key, version, state, events, enqueued) values (?, ?, ?, ?, ?)",
            *(key, job.version, State.ready, events, now),
        )
        self._db.run_many(
            "insert into steps (execution, step, place, state) values (?, ?, ?, ?)",
            [
                (number, step.name, place, State.waiting if step.after else State.ready)
                for place, step in enumerate(job.steps)
            ],
        )

    def due(self, now: float) -> float | None:
        """Make ready what has waited long enough; when the next one has."""
        if self._db.row("select 1 from steps where state = 'retry' and due <= ? limit 1", now):
            with self._db.transaction():
                moved = self._db.rows(
                    "select execution, step from steps where state = 'retry' and due <= ?", now
                )
                for row in moved:
                    self._move(row["execution"], row["step"], State.ready)
                for number in dict.fromkeys(row["execution"] for row in moved):
                    self._settle(number, now)
        left = self._db.row("select min(due) as due from steps where state = 'retry'")
        return None if left is None else left["due"]

    def take(self, boot: str) -> Task | None:
        """The next ready step, now running; none if none is."""
        if self._db.row("select 1 from steps where state = 'ready' limit 1") is None:
            return None
        with self._db.transaction():
            row = self._db.row(
                "select execution, step, attempts from steps where state = 'ready' "
                "order by execution, place limit 1"
            )
            if row is None:
                return None
            number, step, attempt = row["execution"], row["step"], row["attempts"] + 1
            now = time.time()
            self._move(number, step, State.running)
            self._db.run(
                "update steps set attempts = ?, tries = tries + 1, started = ?, folder = ?, "
                "boot = ?, due = null where execution = ? and step = ?",
                *(attempt, now, f"{number}-{step}-{attempt}", boot, number, step),
            )
            self._settle(number, now)
            return self._task(number, step)

    def running(self) -> list[Task]:
        """Steps that are running, as far as is written."""
        rows = self._db.rows("select execution, step from steps where state = 'running'")
        return [self._task(row["execution"], row["step"]) for row in rows]

    def finish(
        self, task: Task, rows: Sequence[Mapping[str, Any]], compute: float, framework: float
    ) -> None:
        """A step is done: its output is kept, and the next become ready, all at once."""
        now = time.time()
        with self._db.transaction():
            self._move(task.number, task.step.name, State.finished)
            self._db.run(
                "update steps set output = ?, generation = ?, reason = null, stderr = null "
                "where execution = ? and step = ?",
                *(encoded(list(rows)), task.generation, task.number, task.step.name),
            )
            self._spent(compute, framework)
            self._wake(task.number, task.job)
            self._settle(task.number, now)

    def fail(
        self, task: Task, reason: str, stderr: str, compute: float = 0.0, framework: float = 0.0
    ) -> State:
        """A try has failed: another will follow, or it is given up."""
        now = time.time()
        with self._db.transaction():
            row = self._step(task.number, task.step.name)
            again = row["tries"] <= task.job.retries
            state = State.retry if again else State.failed
            self._move(task.number, task.step.name, state)
            self._db.run(
                "update steps set reason = ?, stderr = ?, due = ? where execution = ? and step = ?",
                reason,
                stderr,
                now + task.job.delay(row["tries"]) if again else None,
                task.number,
                task.step.name,
            )
            self._spent(compute, framework)
            self._settle(task.number, now)
        return state

    def interrupt(self, task: Task) -> State:
        """A try was cut off with its runtime: it does not count, unless that happens always."""
        now = time.time()
        with self._db.transaction():
            row = self._step(task.number, task.step.name)
            times = row["interrupted"] + 1
            state = State.retry if times <= INTERRUPTIONS else State.failed
            self._move(task.number, task.step.name, state)
            self._db.run(
                "update steps set interrupted = ?, tries = tries - 1, due = ?, reason = ? "
                "where execution = ? and step = ?",
                *(times, now, f"cut off {times} times with its runtime"),
                *(task.number, task.step.name),
            )
            self._settle(task.number, now)
        return state

    def reset(self, number: int, job: Job, names: Sequence[str], now: float) -> None:
        """Steps back to their beginning, for a rerun."""
        for name in names:
            if self._step(number, name)["state"] != State.waiting:
                self._move(number, name, State.waiting)
            self._db.run(
                "update steps set output = null, tries = 0, interrupted = 0, due = null, "
                "reason = null, stderr = null where execution = ? and step = ?",
                *(number, name),
            )
        self._wake(number, job)
        self._settle(number, now)

    # --- reading ------------------------------------------------------------------------------

    def execution(self, row: sqlite3.Row) -> Execution:
        """An execution as it is."""
        job = self.job(row["version"])
        steps = self._db.rows(
            "select state, attempts, reason, stderr from steps where execution = ? "
            "order by state <> 'failed', place",
            row["number"],
        )
        told = next((each for each in steps if each["reason"]), None)
        return Execution(
            key=row["key"],
            flow=job.flow,
            node=job.node,
            version=job.version,
            generation=row["generation"],
            state=State(row["state"]),
            events=restored(row["events"]),
            parameters=json.loads(row["parameters"]),
            attempts=sum(each["attempts"] for each in steps),
            reason=None if told is None else told["reason"],
            stderr=None if told is None else told["stderr"],
        )

    # --- parts --------------------------------------------------------------------------------

    def _task(self, number: int, name: str) -> Task:
        execution = self._execution(number)
        row = self._step(number, name)
        job = self.job(execution["version"])
        step = job.step(name)
        return Task(
            number=number,
            key=execution["key"],
            generation=execution["generation"],
            job=job,
            step=step,
            attempt=row["attempts"],
            folder=row["folder"],
            boot=row["boot"],
            started=row["started"],
            events=restored(execution["events"]),
            inputs={each: json.loads(self._step(number, each)["output"]) for each in step.after},
            parameters={**job.static, **json.loads(execution["parameters"])},
        )

    def _execution(self, number: int) -> sqlite3.Row:
        found = self._db.row("select * from executions where number = ?", number)
        assert found is not None
        return found

    def _step(self, number: int, name: str) -> sqlite3.Row:
        found = self._db.row("select * from steps where execution = ? and step = ?", number, name)
        assert found is not None
        return found

    def _move(self, number: int, name: str, state: State) -> None:
        self._db.run(
            "update steps set state = ? where execution = ? and step = ?", state, number, name
        )

    def _wake(self, number: int, job: Job) -> None:
        """What waits for nothing any more is ready."""
        rows = self._db.rows("select step, state from steps where execution = ?", number)
        states = {row["step"]: row["state"] for row in rows}
        for step in job.steps:
            done = all(states[before] == State.finished for before in step.after)
            if states[step.name] == State.waiting and done:
                self._move(number, step.name, State.ready)

    def _spent(self, compute: float, framework: float) -> None:
        self._db.run(
            "update totals set compute = compute + ?, framework = framework + ?", compute, framework
        )

    def _settle(self, number: int, now: float) -> None:
        """The state of the whole; when it is over, its output is written and to be told."""
        row = self._execution(number)
        steps = self._db.rows("select state from steps where execution = ?", number)
        state = whole([State(each["state"]) for each in steps])
        if state == row["state"]:
            return
        over = state in OVER
        self._db.run(
            "update executions set state = ?, ended = ? where number = ?",
            *(state, now if over else None, number),
        )
        if over:
            execution = self.execution(self._execution(number))
            close(self._db, self.job(execution.version), execution, number, now)
