"""The end of an execution: its output and what is to be told, written with its last state."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from headwater.runtimes.jobs.events import encoded, output_id
from headwater.runtimes.jobs.provenance import groups
from headwater.runtimes.jobs.states import State

if TYPE_CHECKING:
    from headwater.runtimes.jobs.database import Database
    from headwater.runtimes.jobs.events import Execution
    from headwater.runtimes.jobs.job import Job


def close(database: Database, job: Job, execution: Execution, number: int, now: float) -> None:
    """Write all of it; within the transaction that ends the last step."""
    rows: list[Any] = []
    lines = None
    if execution.state == State.finished:
        steps = database.rows(
            "select step, generation, output from steps where execution = ?", number
        )
        made = {row["step"]: (row["generation"], json.loads(row["output"])) for row in steps}
        rows = made[job.steps[-1].name][1]
        named = (job.flow, job.node, job.version, execution.name)
        database.run_many(
            "insert into outputs values (?, ?, ?, ?, ?)",
            [
                (number, execution.generation, n, output_id(*named, n), encoded(value))
                for n, value in enumerate(rows)
            ],
        )
        sizes = {name: (generation, len(each)) for name, (generation, each) in made.items()}
        lines = encoded(groups(job, execution, sizes, now))
    database.run(
        "update totals set done = done + ?, made = made + ?", len(execution.events), len(rows)
    )
    snapshot = {
        "state": execution.state,
        "parameters": execution.parameters,
        "attempts": execution.attempts,
        "reason": execution.reason,
        "stderr": execution.stderr,
        "events": [[each.id, each.value, each.entity, each.at] for each in execution.events],
    }
    database.run(
        "insert into tellings (execution, generation, snapshot, provenance, at) "
        "values (?, ?, ?, ?, ?)",
        *(number, execution.generation, encoded(snapshot), lines, now),
    )
