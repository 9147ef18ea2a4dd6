"""The writer of one job: a transaction for each micro-batch, then one that completes the job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.reduce.blocks import Block, Ints, Residue
from headwater.reduce.contraction import contract
from headwater.store import runs
from headwater.store.ingest import visible
from headwater.store.jobs import completion, loops, passing, register
from headwater.store.jobs.given import Committed, Counts, Finished, JobSettings
from headwater.store.jobs.tables import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from headwater.store.embedded import EmbeddedWriter
    from headwater.store.jobs.settling import Settled

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COMPACT = 1_000_000
_SPANS = 100_000
"""Executions that are kept for the diagnosis where the stream has no end."""


class JobWriter:
    """Writes a job's provenance to a store; the one global reducer of the job."""

    def __init__(self, writer: EmbeddedWriter, job: JobSettings, query_id: str) -> None:
        """Begin the job or go on with it.

        Refuses, in one line, a job of that name with another input, other settings or another
        checkpoint (query id), and one that is finished.
        """
        self.settings = job
        self._writer = writer
        self._query_id = query_id
        with writer.transaction(f"beginning job {job.job!r}") as connection:
            self._job = register.begin(connection, job, query_id)
        self._tables = self._job.tables

    @property
    def ended(self) -> bool:
        """Whether the job's end came: all that is missing may be to finish it."""
        return self._job.state != register.OPEN

    @property
    def counts(self) -> dict[str, Any]:
        """What was counted so far: elements, bytes, rejected, filtered, hot, residue, …"""
        with self._writer.working("reading") as connection:
            return register.counts(connection, self._job.no)

    def holds(self, batch: int) -> bool:
        """Whether the store has this batch of the query."""
        with self._writer.working("reading") as connection:
            return bool(
                connection.execute(
                    "SELECT 1 FROM job_batches WHERE query_id = ? AND batch = ?",
                    [self._query_id, batch],
                ).fetchall()
            )

    def commit(
        self,
        batch: int,
        watermark: datetime | None,
        hot: Sequence[Block],
        residue: Sequence[Residue],
        spans: pa.Table | None,
        counts: Counts,
        ended: bool = False,
    ) -> Committed:
        """Write one micro-batch, all of it or nothing; a batch that is held is only answered.

        `residue` has one part for each contraction, never several joined: a vertex that two blocks
        eliminated apart must be seen to have been. With `keep="full"` hot and residue together
        must name all vertices; otherwise the residue's names may be left out. `ended` says that
        the job's end marker came.
        """
        doing = f"committing batch {batch} of job {self.settings.job!r}"
        with self._writer.working(doing) as connection:
            if self.holds(batch):
                return Committed(held=True, state=self._state(connection))
            given = _Given.of(self._job.functions, hot, residue)
            job = replace(self._job, functions=given.functions)
            if ended and job.state == register.OPEN:
                job = replace(job, state=register.ENDED)
            settled = self._advance(connection, given, watermark)
            try:
                with self._writer.transaction(doing):
                    self._write_names(connection, given)
                    contracted, written = False, 0
                    if self.settings.strategy == "watermark":
                        if settled is not None:
                            written = completion.write_settled(connection, self._tables)
                        passing.write(connection, self._tables)
                    else:
                        contracted = self._write_edges(connection, given)
                    self._write_spans(connection, spans)
                    register.count(
                        connection,
                        job,
                        counts,
                        hot=len(given.hot),
                        residue=len(given.vertex),
                        dependencies=written,
                    )
                    connection.execute(
                        "INSERT INTO job_batches VALUES (?, ?, ?, ?, ?, ?, ?, ?, now())",
                        [
                            job.no,
                            self._query_id,
                            batch,
                            watermark,
                            counts.elements,
                            len(given.hot),
                            len(given.vertex),
                            written,
                        ],
                    )
                cycles = self._cycles(connection, settled)
            finally:
                if self.settings.strategy == "watermark":
                    completion.drop(connection, (*passing.TEMPORARY, *completion.TEMPORARY))
            self._job = job
            self._compact_later(connection)
            return Committed(
                held=False,
                hot=len(given.hot),
                residue=len(given.vertex),
                contracted=contracted,
                dependencies=written,
                state=self._state(connection),
                cycles=cycles,
            )

    def finish(self) -> Finished:
        """Complete the job: idempotent, one transaction."""
        doing = f"finishing job {self.settings.job!r}"
        with self._writer.working(doing) as connection:
            held = self._job.state == register.FINISHED
            cycles: list[tuple[str, ...]] = []
            if not held:
                try:
                    cycles = completion.complete(connection, self._tables)
                    with self._writer.transaction(doing):
                        completion.write(
                            connection, self._tables, self.settings, self._job.functions
                        )
                finally:
                    completion.drop(connection, completion.TEMPORARY)
                self._job = replace(self._job, state=register.FINISHED)
                self._compact_later(connection)
            counts = register.counts(connection, self._job.no)
            return Finished(
                held,
                counts["dependencies"],
                counts["inputs"],
                counts["outputs"],
                tuple(cycles),
                counts,
            )

    def _advance(
        self, connection: duckdb.DuckDBPyConnection, given: _Given, watermark: datetime | None
    ) -> Settled | None:
        if self.settings.strategy != "watermark":
            return None
        # Reducers need keep nothing aside here; what they do is as good as told.
        new = pa.concat_tables([given.hot.table(), given.aside.table()])
        kept = pa.table({"id": given.hot.kept})
        moment = None if watermark is None else (watermark - _EPOCH) // timedelta(microseconds=1)
        lifetime = self.settings.lifetime
        return passing.advance(connection, self._tables, new, kept, moment, lifetime)

    def _write_names(self, connection: duckdb.DuckDBPyConnection, given: _Given) -> None:
        tables = self._tables
        parts = [given.hot, given.aside] if self.settings.keep == "full" else [given.hot]
        named = Block.joined([part for part in parts if len(part.ids)] or parts[:1])
        with visible(connection, hw_names=pa.table({"id": named.ids, "name": named.names})):
            runs.compare(connection, "hw_names", tables.name)
            connection.execute(
                f"INSERT INTO {tables.name} SELECT id, name FROM hw_compared WHERE known IS NULL"
            )
        with visible(connection, hw_marked=pa.table({"id": given.hot.kept})):
            connection.execute(
                f"INSERT INTO {tables.kept} SELECT id FROM hw_marked "
                f"WHERE id NOT IN (SELECT id FROM {tables.kept})"
            )

    def _write_edges(self, connection: duckdb.DuckDBPyConnection, given: _Given) -> bool:
        """Write edges and residue; contracts what is pending if it is enough. Whether it did."""
        tables = self._tables
        [(event,)] = connection.execute(
            f"SELECT coalesce(max(event), 0) + 1 FROM {tables.residue}"
        ).fetchall()
        self._write_residue(connection, given.aside, given.vertex, given.event + event)
        pending = connection.execute(f"SELECT count(*) FROM {tables.pending}").fetchall()[0][0]
        enough = pending + len(given.hot) >= self.settings.global_batch
        if enough:
            reduced = contract(self._pending(connection, given))
            connection.execute(f"DELETE FROM {tables.pending}")
            _insert(connection, tables.hot, reduced.hot)
            events = np.full(len(reduced.residue), event + len(given.event))
            self._write_residue(connection, reduced.residue.edges, reduced.residue.vertex, events)
        else:
            _insert(connection, tables.pending, given.hot)
        if self.settings.strategy == "window":
            # The last elements only: that is what the window means.
            connection.execute(
                f"DELETE FROM {tables.residue} WHERE rowid <= "
                f"(SELECT max(rowid) FROM {tables.residue}) - {self.settings.window}"
            )
        return bool(enough)

    def _pending(self, connection: duckdb.DuckDBPyConnection, given: _Given) -> Block:
        """The edges that wait for a contraction, without their vertices' names."""
        tables = self._tables
        rows = connection.execute(f"SELECT {COLUMNS} FROM {tables.pending}").fetchnumpy()
        kept = connection.execute(f"SELECT id FROM {tables.kept} ORDER BY id").fetchnumpy()["id"]
        none = Block.empty()
        before = replace(
            none,
            source=np.asarray(rows["source"], np.int64),
            destination=np.asarray(rows["destination"], np.int64),
            time=np.asarray(rows["time"], np.int64),
            functions=np.asarray(rows["functions"], np.int64),
            derived=np.asarray(rows["derived"], bool),
            function_names=given.functions,
            kept=np.asarray(kept, np.int64),
        )
        return Block.merged([before, given.hot.named(none.ids)])

    def _write_residue(
        self, connection: duckdb.DuckDBPyConnection, edges: Block, vertex: Ints, event: Ints
    ) -> None:
        rows = edges.table().append_column("vertex", pa.array(vertex))
        with visible(connection, hw_rows=rows.append_column("event", pa.array(event))):
            connection.execute(
                f"INSERT INTO {self._tables.residue} SELECT event, vertex, {COLUMNS} FROM hw_rows"
            )

    def _write_spans(self, connection: duckdb.DuckDBPyConnection, spans: pa.Table | None) -> None:
        table = self._tables.execution
        if spans is not None and spans.num_rows:
            with visible(connection, hw_spans=spans):
                connection.execute(
                    f"INSERT INTO {table} SELECT execution, function, node, first, last "
                    "FROM hw_spans"
                )
        if self.settings.strategy == "watermark":
            connection.execute(
                f"DELETE FROM {table} WHERE rowid <= (SELECT max(rowid) FROM {table}) - {_SPANS}"
            )

    def _cycles(
        self, connection: duckdb.DuckDBPyConnection, settled: Settled | None
    ) -> tuple[tuple[str, ...], ...]:
        if settled is None or not settled.cyclic:
            return ()
        return tuple(loops.cycles(connection, "hw_edges", self._tables.name))

    def _state(self, connection: duckdb.DuckDBPyConnection) -> int:
        rows = connection.execute(
            f"SELECT (SELECT count(*) FROM {self._tables.hot}) + "
            f"(SELECT count(*) FROM {self._tables.pending})"
        ).fetchall()
        return int(rows[0][0])

    def _compact_later(self, connection: duckdb.DuckDBPyConnection) -> None:
        if runs.fresh(connection) >= _COMPACT:
            self._writer.compact()


@dataclass(frozen=True, slots=True)
class _Given:
    """What local reducers handed on, in the job's own numbering of functions."""

    functions: tuple[str, ...]
    hot: Block
    aside: Block
    """Edges of eliminated vertices."""
    vertex: Ints
    """The vertices that they were kept for."""
    event: Ints
    """Which contraction it was, counted from 0."""

    @classmethod
    def of(
        cls, functions: tuple[str, ...], hot: Sequence[Block], residue: Sequence[Residue]
    ) -> _Given:
        """The same in a few long columns. The first block's functions keep their bits."""
        none = np.empty(0, np.int64)
        first = replace(Block.empty(), function_names=functions)
        edges = Block.joined([first, *hot])
        second = replace(Block.empty(), function_names=edges.function_names)
        aside = Block.joined([second, *(part.edges for part in residue)])
        return cls(
            aside.function_names,
            replace(edges, function_names=aside.function_names),
            aside,
            np.concatenate([none, *(part.vertex for part in residue)]),
            np.repeat(np.arange(len(residue)), [len(part) for part in residue]),
        )


def _insert(connection: duckdb.DuckDBPyConnection, table: str, block: Block) -> None:
    with visible(connection, hw_rows=block.table()):
        connection.execute(f"INSERT INTO {table} SELECT {COLUMNS} FROM hw_rows")
