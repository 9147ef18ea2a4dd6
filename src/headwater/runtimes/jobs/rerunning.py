"""Reruns: an execution done again, wholly or from a step on, with what was kept before it."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from headwater.errors import RunError
from headwater.runtimes.jobs.events import encoded, restored, stored
from headwater.runtimes.jobs.states import OVER, State

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from headwater.runtimes.jobs.database import Database
    from headwater.runtimes.jobs.events import Event
    from headwater.runtimes.jobs.ledger import Ledger


def rerun(
    database: Database,
    ledger: Ledger,
    row: sqlite3.Row,
    step: str | None,
    events: Sequence[Event] | None,
    parameters: Mapping[str, Any] | None,
) -> str:
    """Put steps back to their beginning, in a new generation; within a transaction."""
    number, key = row["number"], row["key"]
    job = ledger.job(row["version"])
    names = [each.name for each in job.steps] if step is None else job.from_on(step)
    found = database.rows("select step, state from steps where execution = ?", number)
    states = {each["step"]: State(each["state"]) for each in found}
    if State.running in states.values():
        running = ", ".join(name for name, state in states.items() if state == State.running)
        raise RunError(
            f"step {running} of execution {key!r} is running; pause and wait for its end first"
        )
    kept = [each.name for each in job.steps if each.name not in names]
    missing = [name for name in kept if states[name] != State.finished]
    if missing:
        raise RunError(
            f"execution {key!r} can't be rerun from step {step!r}: {', '.join(missing)} has not "
            "finished, so nothing is kept of it; rerun from there"
        )
    if events is not None and kept:
        raise RunError(
            f"execution {key!r} can't be rerun from step {step!r} with other events: what is kept "
            f"of {', '.join(kept)} was made of the old ones; leave out step"
        )
    if events is not None and not events:
        raise RunError(f"execution {key!r} can't be rerun without an event; leave out events")
    before = len(restored(row["events"]))
    text = row["events"] if events is None else stored(events)
    over = row["state"] in OVER
    # An execution that is not over publishes nothing of its old self: it stays the same one.
    generation = row["generation"] + 1 if over else row["generation"]
    database.run(
        "update executions set generation = ?, events = ?, parameters = ? where number = ?",
        generation,
        text,
        encoded({**json.loads(row["parameters"]), **(parameters or {})}),
        number,
    )
    now = len(restored(text))
    database.run("update totals set taken = taken + ?", now if over else now - before)
    ledger.reset(number, job, names, time.time())
    return str(key) if not generation else f"{key}.r{generation}"
