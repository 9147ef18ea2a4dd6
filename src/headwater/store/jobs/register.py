"""The row of a job: begun once, refused when it does not fit, counted up with each batch."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from headwater.errors import StoreError
from headwater.store.jobs.given import Counts, JobSettings
from headwater.store.jobs.tables import Tables

if TYPE_CHECKING:
    import duckdb

OPEN, ENDED, FINISHED = "open", "ended", "finished"
_FREE = ("job", "input", "global_batch", "checkpoint")
"""Settings that are told apart from the others, or may change."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the store has it."""

    no: int
    state: str
    functions: tuple[str, ...]

    @property
    def tables(self) -> Tables:
        """Its own tables."""
        return Tables(self.no)


def begin(connection: duckdb.DuckDBPyConnection, settings: JobSettings, query_id: str) -> Job:
    """Write the job down, or find it; refuses one that does not fit, and one that is finished."""
    if settings.strategy != "grouping" and settings.keep == "full":
        raise StoreError(
            f"job {settings.job!r}: the strategy {settings.strategy!r} forgets edges on the way, "
            "so keep='full' is not to be had with it; use the strategy 'grouping'"
        )
    rows = connection.execute(
        "SELECT job_no, input, settings, query_id, state, functions, checkpoint FROM (SELECT *, "
        "settings->>'checkpoint' AS checkpoint FROM jobs) WHERE job = ?",
        [settings.job],
    ).fetchall()
    if not rows:
        return _new(connection, settings, query_id)
    [(no, given, told, bound, state, functions, checkpoint)] = rows
    if state == FINISHED:
        raise StoreError(
            f"job {settings.job!r} is finished: it takes no more elements; "
            "give another run another job name"
        )
    if given != settings.input:
        raise StoreError(
            f"job {settings.job!r} reads {given}, not {settings.input}; "
            "give each input its own job name"
        )
    before, now = _compared(json.loads(told)), _compared(asdict(settings))
    for name, value in now.items():
        if before.get(name) != value:
            raise StoreError(
                f"job {settings.job!r} was begun with {name}={before.get(name)!r}, "
                f"not {value!r}; go on as it was begun, or give it another name"
            )
    if bound != query_id:
        if _has_batches(connection, no):
            at = f" ({checkpoint})" if checkpoint else ""
            raise StoreError(
                f"job {settings.job!r} was begun with another checkpoint{at}; "
                "go on with that one, or give it another name"
            )
        connection.execute("UPDATE jobs SET query_id = ? WHERE job_no = ?", [query_id, no])
    return Job(no, state, tuple(json.loads(functions)))


def _new(connection: duckdb.DuckDBPyConnection, settings: JobSettings, query_id: str) -> Job:
    rows = connection.execute("SELECT coalesce(max(job_no), 0) + 1 FROM jobs").fetchall()
    no = int(rows[0][0])
    connection.execute(
        "INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, '[]', 0, 0, '{}', '{}', 0, 0, 0, "
        "NULL, NULL, NULL, now(), NULL)",
        [no, settings.job, settings.input, json.dumps(asdict(settings)), query_id, OPEN],
    )
    job = Job(no, OPEN, ())
    job.tables.create(connection)
    return job


def count(
    connection: duckdb.DuckDBPyConnection,
    job: Job,
    given: Counts,
    *,
    hot: int,
    residue: int,
    dependencies: int,
) -> None:
    """Add what a batch brought; write down the state and the functions of `job`."""
    [(rejected, filtered)] = connection.execute(
        "SELECT rejected, filtered FROM jobs WHERE job_no = ?", [job.no]
    ).fetchall()
    total = Counts(0, 0, json.loads(rejected), json.loads(filtered)) + given
    connection.execute(
        "UPDATE jobs SET state = ?, functions = ?, elements = elements + ?, bytes = bytes + ?, "
        "rejected = ?, filtered = ?, hot = hot + ?, residue = residue + ?, "
        "dependencies = dependencies + ? WHERE job_no = ?",
        [
            job.state,
            json.dumps(job.functions),
            given.elements,
            given.bytes,
            json.dumps(total.rejected),
            json.dumps(total.filtered),
            hot,
            residue,
            dependencies,
            job.no,
        ],
    )


def counts(connection: duckdb.DuckDBPyConnection, no: int) -> dict[str, Any]:
    """What was counted of a job."""
    table = connection.sql(
        "SELECT elements, bytes, rejected, filtered, hot, residue, dependencies, inputs, outputs "
        f"FROM jobs WHERE job_no = {no}"
    ).to_arrow_table()
    [row] = table.to_pylist()
    return {
        **row,
        "rejected": json.loads(row["rejected"]),
        "filtered": json.loads(row["filtered"]),
    }


def _compared(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in _FREE}


def _has_batches(connection: duckdb.DuckDBPyConnection, no: int) -> bool:
    sql = "SELECT 1 FROM job_batches WHERE job_no = ? LIMIT 1"
    return bool(connection.execute(sql, [no]).fetchall())
