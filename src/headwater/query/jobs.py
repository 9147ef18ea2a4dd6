"""Questions about foreign jobs: which there are, what depends on what, what looks wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.errors import HeadwaterError
from headwater.query import job_edges, paths, workflow
from headwater.query.opened import Opened
from headwater.store.catalog import unknown_name
from headwater.store.jobs.diagnosing import FINDINGS, diagnosed

if TYPE_CHECKING:
    from headwater.query.job_edges import Job
    from headwater.store.reader import Reader

_COUNTS = pa.map_(pa.string(), pa.int64())


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What looks wrong in a job.

    `slow_nodes`: nodes whose median execution of a function takes more than twice that of the
    others. `never_generated`: entities that a function used and nobody generated, though most that
    it uses are. `never_used`: entities that a function generated and nobody used, though most that
    it generates are.
    """

    job: str
    finished: bool
    slow_nodes: pa.Table
    never_generated: pa.Table
    never_used: pa.Table


class JobQueries(Opened):
    """The part of a store's queries that is about jobs."""

    def jobs(self) -> pa.Table:
        """The jobs: `job`, `state`, `strategy`, `input`, what was counted, when they ran."""
        return jobs(self._reader)

    def depends(self, effect: str, cause: str) -> bool:
        """Whether one entity depends on another, across jobs and flows."""
        return workflow.depends(self._edges, effect, cause)

    def paths(
        self,
        job: str,
        *,
        through: str | None = None,
        output: str | None = None,
        input: str | None = None,
        limit: int = paths.LIMIT,
    ) -> pa.Table:
        """The paths from a job's outputs to its inputs: `path`, `step`, `name`, `kind`, `function`.

        `through` is a function that they must pass; `output` and `input` are the entities to go
        from and to. It takes an open job, or one that was reduced with `keep="full"`. If there are
        more than `limit`, the schema's metadata has a `note`.
        """
        known = named(self._reader, job)
        return paths.paths(self._reader, known, through, output, input, limit)

    def diagnosis(self, job: str) -> Diagnosis:
        """What looks wrong in a job so far: slow nodes, entities that somebody forgot."""
        return diagnosis(self._reader, named(self._reader, job))


def named(reader: Reader, name: str) -> Job:
    """The job of a name."""
    known = job_edges.jobs(reader).values()
    for job in known:
        if job.name == name:
            return job
    raise unknown_name("job", name, [job.name for job in known])


def jobs(reader: Reader) -> pa.Table:
    """All jobs with what was counted; `rejected` is by reason, `filtered` by type."""
    table = reader.query(
        "SELECT job, state, settings->>'strategy' AS strategy, input, elements, bytes, rejected, "
        "filtered, hot, residue, dependencies, inputs, outputs, b.watermark, b.batches, "
        "begun_at, finished_at FROM jobs LEFT JOIN (SELECT job_no, max(watermark) AS watermark, "
        "count(*) AS batches FROM job_batches GROUP BY job_no) b USING (job_no) ORDER BY job_no"
    )
    for name in ("rejected", "filtered"):
        counted: list[dict[str, int]] = [json.loads(text) for text in table[name].to_pylist()]
        pairs = pa.array([sorted(counts.items()) for counts in counted], _COUNTS)
        table = table.set_column(table.column_names.index(name), name, pairs)
    return table


def diagnosis(reader: Reader, job: Job) -> Diagnosis:
    """What looks wrong in a job: as it stands, or as it stood when it was finished."""
    found: dict[str, Any]
    if job.finished:
        rows = reader.query("SELECT diagnosis FROM jobs WHERE job_no = ?", [job.no])
        found = json.loads(rows["diagnosis"][0].as_py())
    elif job.in_lake:
        raise HeadwaterError(
            f"job {job.name!r} is open, and a lake has the diagnosis of complete jobs only; "
            "complete it with --finish"
        )
    else:
        found = diagnosed(reader.query, job.held.tables, job.functions)
    tables = {name: pa.Table.from_pylist(found[name], schema) for name, schema in FINDINGS.items()}
    return Diagnosis(job.name, job.finished, **tables)
