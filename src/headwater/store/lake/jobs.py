"""Foreign jobs into a lake: what their reducer has settled, batch by batch.

A job's global reducer works on few rows that change all the time, which is no work for a lake. So
it has a store of its own beside its checkpoint, in a file, as any job has. What it settles goes on
to the lake: the dependencies, the names of their entities, and how far the job has come. Each time
is one batch of the lake, under the job's query and a number that is counted up, and leaves the
file once the lake has it. So a run that is killed in between sends it again, and the lake has it
once.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.errors import StoreError
from headwater.store import runs
from headwater.store.embedded import EmbeddedWriter
from headwater.store.ingest import visible
from headwater.store.jobs import JobWriter
from headwater.store.jobs.register import FINISHED
from headwater.store.lake.tables import columns_of
from headwater.store.lake.tasks import written
from headwater.store.lake.writer import LakeWriter

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    import duckdb

    from headwater.store.jobs import Committed, Finished, JobSettings
    from headwater.store.lake.tables import Added

HELD = "held"
"""In a job's settings: whether its edges are in the store, too. In a lake they are not."""
_SENT = "sent"
"""The fact about a reducer's own store that says what the lake has of it."""
_DEPENDENCIES = (
    "(SELECT output, input, functions FROM dependencies "
    "UNION ALL SELECT output, input, functions FROM fresh_dependencies)"
)
_ENTITIES = "(SELECT id, name FROM entities UNION ALL SELECT id, name FROM fresh_entities)"
_LEAVING = (
    *("dependencies", "dependencies_by_input", "fresh_dependencies"),
    *("entities", "fresh_entities"),
)


class LakeJobs:
    """A lake, and the store in a file in which a job's reducer works."""

    def __init__(self, lake: LakeWriter, working: EmbeddedWriter) -> None:
        self.lake, self.working = lake, working

    @classmethod
    def open(cls, store: str | os.PathLike[str], working: str | os.PathLike[str]) -> LakeJobs:
        """Own both, making them if there are none."""
        lake = LakeWriter.open(store)
        try:
            return cls(lake, EmbeddedWriter.open(working))
        except BaseException:
            lake.close()
            raise

    @property
    def store_id(self) -> str:
        """What tells the lake from every other store."""
        return self.lake.store_id

    def close(self) -> None:
        """Give both up."""
        try:
            self.working.close()
        finally:
            self.lake.close()


class LakeJobWriter(JobWriter):
    """Writes a job's provenance to the store of its reducer, and what is settled to a lake."""

    def __init__(self, stores: LakeJobs, job: JobSettings, query_id: str) -> None:
        """Begin the job or go on with it; refuses what `JobWriter` does."""
        stores.lake.make_jobs()
        self._outbox = Outbox(stores, job, query_id)
        self._outbox.require_own()
        # What a run has left that was killed: of one that was finished, it is all that is missing.
        self._outbox.send()
        super().__init__(stores.working, job, query_id)
        self._outbox.send()

    def commit(self, *given: Any, **more: Any) -> Committed:
        """Write one micro-batch, and hand on to the lake what it settled."""
        committed = super().commit(*given, **more)
        self._outbox.send()
        return committed

    def finish(self) -> Finished:
        """Complete the job, here and in the lake."""
        finished = super().finish()
        self._outbox.send()
        inputs, outputs = self._outbox.ends()
        return replace(finished, inputs=inputs, outputs=outputs)


@dataclass(frozen=True, slots=True)
class _Sent:
    """How far the lake is."""

    number: int = -1
    """Of the last time something was sent."""
    batch: int = -1
    """The job's last batch by then."""
    state: str = ""


class Outbox:
    """What the lake has still to get of a job."""

    def __init__(self, stores: LakeJobs, job: JobSettings, query_id: str) -> None:
        self._lake, self._working = stores.lake, stores.working
        self._job, self._query_id = job, query_id
        self._doing = f"handing job {job.job!r} on to the lake"

    def require_own(self) -> None:
        """Refuse a job that the lake has from another checkpoint."""
        sql = "SELECT query_id, state, settings FROM jobs WHERE job = ?"
        for row in self._lake.query(sql, [self._job.job]).to_pylist():
            if row["query_id"] == self._query_id:
                continue
            if row["state"] == FINISHED:
                raise StoreError(
                    f"job {self._job.job!r} is finished: it takes no more elements; "
                    "give another run another job name"
                )
            raise StoreError(
                f"job {self._job.job!r} was begun with another checkpoint "
                f"({json.loads(row['settings'])['checkpoint']}); go on with that one, or give it "
                "another name"
            )

    def send(self) -> None:
        """Have the lake get what it lacks, all of it or nothing."""
        with self._working.working(self._doing) as connection, self._lake.batch() as seq:
            sent = _sent(connection)
            now = self._now(connection, sent)
            if now is None or (now.batch, now.state) == (sent.batch, sent.state):
                return
            if not self._lake.holds(self._query_id, now.number):
                parts = self._parts(connection, sent)
                files = [self._file(name, rows, seq) for name, rows in parts if rows.num_rows]
                self._lake.commit(
                    self._query_id,
                    now.number,
                    files,
                    watermark=None,
                    last=False,
                    rows={},
                )
            with self._working.transaction(self._doing):
                for relation in _LEAVING:
                    connection.execute(f"DELETE FROM {relation}")
                facts = [_SENT, json.dumps(asdict(now))]
                connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", facts)

    def ends(self) -> tuple[int, int]:
        """How many inputs and outputs the job has, once it is finished."""
        sql = "SELECT inputs, outputs FROM jobs WHERE job = ?"
        [row] = self._lake.query(sql, [self._job.job]).to_pylist()
        return row["inputs"], row["outputs"]

    def _now(self, connection: duckdb.DuckDBPyConnection, sent: _Sent) -> _Sent | None:
        """How far the job is here; None if it has not begun."""
        rows = connection.execute(
            "SELECT state, (SELECT coalesce(max(batch), -1) FROM job_batches) FROM jobs"
        ).fetchall()
        return _Sent(sent.number + 1, rows[0][1], rows[0][0]) if rows else None

    def _parts(
        self, connection: duckdb.DuckDBPyConnection, sent: _Sent
    ) -> Iterator[tuple[str, pa.Table]]:
        """What is to be sent: relations and their rows, in the order in which they are found."""
        no = self._number()
        own = connection.sql("SELECT * FROM jobs").to_arrow_table().to_pylist()[0]
        own |= {"job_no": no, "settings": json.dumps({**json.loads(own["settings"]), HELD: False})}
        if own["state"] == FINISHED and self._job.strategy == "watermark":
            own["inputs"], own["outputs"] = self._counted(connection, no)
        yield "jobs", pa.Table.from_pylist([own], schema=_without_seq("jobs"))
        yield (
            "job_batches",
            connection.sql(
                f"SELECT * REPLACE ({no}::INTEGER AS job_no) FROM job_batches "
                f"WHERE batch > {sent.batch} ORDER BY batch"
            ).to_arrow_table(),
        )
        yield "entities", self._unknown(connection)
        for relation, order in (
            ("dependencies", "output, input"),
            ("dependencies_by_input", "input, output"),
        ):
            rows = f"SELECT {no}::INTEGER AS job_no, * FROM {_DEPENDENCIES} ORDER BY {order}"
            yield relation, connection.sql(rows).to_arrow_table()

    def _number(self) -> int:
        """The job's number in the lake: its own, or the next."""
        sql = "SELECT job_no FROM jobs WHERE job = ?"
        if known := self._lake.query(sql, [self._job.job])["job_no"].to_pylist():
            return int(known[0])
        return int(self._lake.query("SELECT coalesce(max(job_no), 0) + 1 FROM jobs")[0][0].as_py())

    def _unknown(self, connection: duckdb.DuckDBPyConnection) -> pa.Table:
        """The entities that the lake does not know; refuses two names with one hash."""
        new = connection.sql(f"SELECT id, any_value(name) AS name FROM {_ENTITIES} GROUP BY id")
        given = new.to_arrow_table()
        known = self._lake.query(
            "SELECT id, name FROM entities WHERE id IN (SELECT unnest(?::BIGINT[]))",
            [given["id"].to_pylist()],
        )
        with visible(connection, hw_given=given, hw_there=known):
            runs.compare(connection, "hw_given", "hw_there")
        lacking = "SELECT id, name FROM hw_compared WHERE known IS NULL ORDER BY id"
        return connection.sql(lacking).to_arrow_table()

    def _counted(self, connection: duckdb.DuckDBPyConnection, no: int) -> tuple[int, int]:
        """Inputs and outputs, of what was sent before as well."""
        before = self._lake.query("SELECT output, input FROM dependencies WHERE job_no = ?", [no])
        with visible(connection, hw_before=before):
            [counts] = connection.execute(
                "SELECT count(DISTINCT input), count(DISTINCT output) FROM (SELECT output, input "
                f"FROM hw_before UNION ALL SELECT output, input FROM {_DEPENDENCIES})"
            ).fetchall()
        return counts

    def _file(self, relation: str, rows: pa.Table, seq: int) -> Added:
        columns = columns_of(relation)
        placed = rows.append_column("seq", pa.array([seq] * rows.num_rows, pa.int64()))
        return written(self._lake.place, relation, placed.select(columns.names).cast(columns))


def _sent(connection: duckdb.DuckDBPyConnection) -> _Sent:
    rows = connection.execute("SELECT value FROM meta WHERE key = ?", [_SENT]).fetchall()
    return _Sent(**json.loads(rows[0][0])) if rows else _Sent()


def _without_seq(relation: str) -> pa.Schema:
    columns = columns_of(relation)
    return columns.remove(columns.get_field_index("seq"))
