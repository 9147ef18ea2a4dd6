"""Windows of events: gathered durably, closed into executions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from headwater.runtimes.jobs.events import key_of, restored, stored

if TYPE_CHECKING:
    import sqlite3

    from headwater.runtimes.jobs.database import Database
    from headwater.runtimes.jobs.job import Job
    from headwater.runtimes.jobs.ledger import Ledger


def close_counts(
    database: Database, ledger: Ledger, job: Job, now: float, *, whole: bool = True
) -> list[str]:
    """An execution for each so many events, in the order they came; the last few too, if asked."""
    assert job.count is not None
    rows = _open(database, job)
    end = len(rows) - len(rows) % job.count if whole else len(rows)
    return [
        _close(database, ledger, job, rows[at : min(at + job.count, end)], now)
        for at in range(0, end, job.count)
    ]


def close_times(
    database: Database, ledger: Ledger, job: Job, watermark: float, now: float
) -> list[str]:
    """An execution for each window that ends by the watermark; late events have another."""
    assert job.every is not None
    windows: dict[float, list[sqlite3.Row]] = {}
    for row in _open(database, job):
        windows.setdefault(math.floor(row["at"] / job.every), []).append(row)
    return [
        _close(database, ledger, job, rows, now)
        for number, rows in sorted(windows.items())
        if (number + 1) * job.every <= watermark
    ]


def _open(database: Database, job: Job) -> list[sqlite3.Row]:
    return database.rows(
        "select number, stored, at from events where version = ? and stored is not null "
        "order by number",
        job.version,
    )


def _close(
    database: Database, ledger: Ledger, job: Job, rows: list[sqlite3.Row], now: float
) -> str:
    events = [event for row in rows for event in restored(row["stored"])]
    key = key_of(job.node, job.version, [event.id for event in events])
    ledger.add(job, key, stored(events), now)
    database.run_many(
        "update events set stored = null where number = ?", [(row["number"],) for row in rows]
    )
    return key
