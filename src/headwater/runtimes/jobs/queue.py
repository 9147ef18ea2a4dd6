"""`JobQueue`: the durable queue of a node's executions, one SQLite file in a folder."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.errors import RunError, UnknownId
from headwater.runtimes.jobs.database import Database
from headwater.runtimes.jobs.events import Event, Output, entity, key_of, stored
from headwater.runtimes.jobs.ledger import Ledger
from headwater.runtimes.jobs.rerunning import rerun
from headwater.runtimes.jobs.states import State
from headwater.runtimes.jobs.windows import close_counts, close_times
from headwater.sustain import Queue, Totals

if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence

    from headwater.runtimes.jobs.events import Execution
    from headwater.runtimes.jobs.job import Job

_TUNING = {"slots": 1, "retries": 0, "backoff": 1.0, "timeout": None}
"""What may be changed without a new version."""


class JobQueue:
    """Executions to be done, being done and done; any process may enqueue, ask and pause.

    What `enqueue` has taken is safe when it returns. Use it in a `with`, or close it.
    """

    def __init__(self, folder: str | os.PathLike[str], job: Job | None = None) -> None:
        """Open or make the queue of a folder; `job` declares a version, as `declare` does."""
        self.folder = Path(folder).absolute()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.database = Database(self.folder / "queue.db")
        self.ledger = Ledger(self.database)
        if job is not None:
            self.declare(job)

    # --- versions of the job ------------------------------------------------------------------

    def declare(self, job: Job) -> None:
        """Add a version of the job, to which events go from now on; others go on as they are."""
        with self.database.transaction():
            known = [self.ledger.job(row["version"]) for row in self._versions()]
            for other in known:
                if (other.flow, other.node) != (job.flow, job.node):
                    raise RunError(
                        f"{self.folder} is the queue of node {other.node!r} of flow "
                        f"{other.flow!r}; give {job.node!r} of {job.flow!r} a folder of its own"
                    )
                if other.version == job.version and _alike(other) != _alike(job):
                    raise RunError(
                        f"version {job.version!r} of job {job.node!r} is there with other steps or "
                        "values; give what is new another version"
                    )
            text = job.text()
            self.database.run("delete from jobs where version = ?", job.version)
            self.database.run("insert into jobs (version, text) values (?, ?)", job.version, text)

    @property
    def job(self) -> Job:
        """The version that was declared last."""
        versions = self._versions()
        if not versions:
            raise RunError(f"no job is declared in {self.folder}; use JobQueue(folder, job)")
        return self.ledger.job(versions[-1]["version"])

    def _versions(self) -> list[sqlite3.Row]:
        return self.database.rows("select version from jobs order by number")

    # --- in -----------------------------------------------------------------------------------

    def enqueue(self, events: Iterable[Event]) -> list[str]:
        """Take events for the version declared last; the keys of executions that are new.

        An event that was enqueued before in this version, by its id, is passed over.
        """
        job, now, made = self.job, time.time(), []
        with self.database.transaction() as database:
            taken = 0
            for event in events:
                if job.every is not None and event.at is None:
                    raise RunError(
                        f"event {event.id!r} has no time, and job {job.node!r} takes windows of it"
                    )
                text = stored([event])
                added = database.run(
                    "insert or ignore into events (version, id, stored, at) values (?, ?, ?, ?)",
                    *(job.version, json.dumps(event.id), text if job.windowed else None, event.at),
                )
                taken += added
                if added and not job.windowed:
                    made.append(key_of(job.node, job.version, [event.id]))
                    self.ledger.add(job, made[-1], text, now)
            if job.count is not None:
                made += close_counts(database, self.ledger, job, now)
            database.run("update totals set taken = taken + ?", taken)
        return made

    def advance(self, watermark: float) -> list[str]:
        """No event before this time will come: close the windows of time that end by then."""
        with self.database.transaction() as database:
            jobs = [self.ledger.job(row["version"]) for row in self._versions()]
            timed = [job for job in jobs if job.every is not None]
            now = time.time()
            return [
                k for job in timed for k in close_times(database, self.ledger, job, watermark, now)
            ]

    def flush(self) -> list[str]:
        """No event will come at all: close the windows that are open, full or not."""
        made = self.advance(float("inf"))
        with self.database.transaction() as database:
            for row in self._versions():
                job = self.ledger.job(row["version"])
                if job.count is not None:
                    made += close_counts(database, self.ledger, job, time.time(), whole=False)
        return made

    # --- asked --------------------------------------------------------------------------------

    def counts(self) -> dict[State, int]:
        """How many executions are in each state."""
        rows = self.database.rows("select state, number from counts")
        found = {State(row["state"]): int(row["number"]) for row in rows}
        return {state: found[state] for state in State}

    @property
    def open_events(self) -> int:
        """Events in windows that are not closed."""
        row = self.database.row("select count(*) as n from events where stored is not null")
        return 0 if row is None else int(row["n"])

    def execution(self, key: str) -> Execution:
        """An execution by its key."""
        return self.ledger.execution(self._row(key))

    def executions(self, state: State | None = None, limit: int = 1_000) -> list[Execution]:
        """Executions in the order they came, of one state or all."""
        where = "" if state is None else "where state = ?"
        rows = self.database.rows(
            f"select * from executions {where} order by number limit ?",
            *(() if state is None else (state,)),
            limit,
        )
        return [self.ledger.execution(row) for row in rows]

    def steps(self, key: str) -> dict[str, State]:
        """The state of each step of an execution."""
        rows = self.database.rows(
            "select step, state from steps where execution = ? order by place",
            self._row(key)["number"],
        )
        return {row["step"]: State(row["state"]) for row in rows}

    def outputs(self, key: str, generation: int | None = None) -> list[Output]:
        """What an execution made, lately or in another generation."""
        row = self._row(key)
        job = self.ledger.job(row["version"])
        rows = self.database.rows(
            "select id, value from outputs where execution = ? and generation = ? order by ordinal",
            *(row["number"], row["generation"] if generation is None else generation),
        )
        return [
            Output(each["id"], json.loads(each["value"]), entity(job.flow, job.node, each["id"]))
            for each in rows
        ]

    def _row(self, key: str) -> sqlite3.Row:
        found = self.database.row("select * from executions where key = ?", key)
        if found is None:
            raise UnknownId(f"no execution {key!r} in {self.folder}")
        return found

    # --- steered ------------------------------------------------------------------------------

    @property
    def paused(self) -> bool:
        """Whether no step starts."""
        return self.database.row("select 1 from settings where name = 'paused'") is not None

    def pause(self) -> None:
        """Start nothing more, here or after a restart; what runs goes on to its end."""
        self.database.run("insert or ignore into settings values ('paused', '1')")

    def resume(self) -> None:
        """Go on."""
        self.database.run("delete from settings where name = 'paused'")

    def rerun(
        self,
        key: str,
        *,
        step: str | None = None,
        events: Sequence[Event] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> str:
        """Do an execution again; the name under which it will publish.

        With `step` (a smart rerun) only that step and those after it, on the outputs that are kept
        of those before. `events` take the place of its own, `parameters` go over its static values.
        """
        with self.database.transaction():
            return rerun(self.database, self.ledger, self._row(key), step, events, parameters)

    def rerun_all(
        self,
        *,
        step: str | None = None,
        states: Sequence[State] = (State.finished, State.failed),
        parameters: Mapping[str, Any] | None = None,
    ) -> list[str]:
        """Do all executions that are over again, or from a step on."""
        with self.database.transaction():
            marks = ", ".join("?" * len(states))
            rows = self.database.rows(
                f"select * from executions where state in ({marks}) order by number", *states
            )
            return [rerun(self.database, self.ledger, row, step, None, parameters) for row in rows]

    def forget(self, seconds: float) -> int:
        """Remove executions that have been over and told for so long; how many.

        Their events are still known: enqueued again, they are passed over.
        """
        with self.database.transaction() as database:
            old = database.rows(
                "select number from executions e where ended < ? and not exists "
                "(select 1 from tellings where execution = e.number and told = 0)",
                time.time() - seconds,
            )
            for table in ("outputs", "tellings", "steps", "executions"):
                column = "number" if table == "executions" else "execution"
                sql = f"delete from {table} where {column} = ?"
                database.run_many(sql, [(row["number"],) for row in old])
        return len(old)

    # --- measured -----------------------------------------------------------------------------

    def totals(self) -> Totals:
        """What has happened since the beginning; a rerun counts as taken again."""
        row = self.database.row("select * from totals")
        assert row is not None
        return _totals(row)

    def sample(self, keep: int = 2_000) -> None:
        """Write down the totals of this moment, for the history."""
        with self.database.transaction() as database:
            row = database.row("select * from samples order by at desc limit 1")
            now = self.totals()
            if row is None or _totals(row) != now:
                told = (now.taken, now.done, now.made, now.compute, now.framework)
                database.run(
                    "insert or replace into samples values (?, ?, ?, ?, ?, ?)", time.time(), *told
                )
                database.run(
                    "delete from samples where at < (select min(at) from "
                    "(select at from samples order by at desc limit ?))",
                    keep,
                )

    def monitor(self, **settings: Any) -> Queue:
        """The history that was written down, as `headwater.sustain` judges it, up to now."""
        rows = self.database.rows("select * from samples order by at")
        start = _totals(rows[0]) if rows else self.totals()
        queue = Queue(self.job.node, **{"slots": self.job.slots, "start": start, **settings})
        for row in rows:
            queue.observe(_totals(row), at=row["at"])
        queue.observe(self.totals())
        return queue

    def close(self) -> None:
        """Close the file."""
        self.database.close()

    def __enter__(self) -> JobQueue:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _alike(job: Job) -> Job:
    return replace(job, **_TUNING)  # type: ignore[arg-type]


def _totals(row: sqlite3.Row) -> Totals:
    return Totals(row["taken"], row["done"], row["made"], row["compute"], row["framework"])
