"""The embedded store's writer: one process owns the DuckDB file and commits batch after batch."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa

from headwater.errors import StoreError
from headwater.store import compaction, ingest, owners, runs
from headwater.store.batch import Batch, Committed, FlowRegistration
from headwater.store.catalog import Catalog, Source
from headwater.store.database import connect
from headwater.store.failures import explained, is_locked
from headwater.store.registration import register
from headwater.store.select import Closed
from headwater.store.serving import Serving

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from headwater.store.marks import Change
    from headwater.store.occurrences import Ids

log = logging.getLogger("headwater")

BeforeCommit = Callable[[dict[str, pa.Int64Array]], None]
_ATTEMPTS = 60
"""How often a checkpoint is tried while the store is being read."""


class EmbeddedWriter:
    """Writes a store; the one owner of its file, shared by all flows of this process."""

    def __init__(self, path: Path, connection: duckdb.DuckDBPyConnection, compact_edges: int):
        self.path = path
        self._connection = connection
        # Readers get their cursors from here, so that none waits for a commit or a compaction.
        self._readers = connection.cursor()
        self._lock = threading.RLock()
        self._users = 1
        self._compact_edges = compact_edges
        self._catalog = Catalog.read(lambda sql: connection.sql(sql).to_arrow_table())
        self._seq = int(self._one("SELECT coalesce(max(seq), 0) FROM batches"))
        self._tail = compaction.tail(connection)
        self._pruned: dict[int, tuple[datetime, int]] = {}
        self._serving: Serving | None = None
        self._closing = False

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, wait: float = 30.0, compact_edges: int = 1_000_000
    ) -> EmbeddedWriter:
        """Own the store at `path`, making it if there is none, and serve reads of it."""
        store = Path(os.path.realpath(path))
        with owners.door(store):
            if (owner := owners.find(store)) is not None:
                owner._users += 1
                return owner
            owners.let_go(store)
            writer = cls(store, _own(store, wait), compact_edges)
            try:
                writer._serving = Serving.start(store, writer.cursor, writer.apply)
            except BaseException as error:
                writer._connection.close()
                if isinstance(error, Exception):
                    raise explained(error, store, "serving reads") from error
                raise
            owners.add(store, writer)
            return writer

    def register(self, flow: FlowRegistration) -> None:
        """Bind a flow to the store: number its sources and sinks and make their tables."""
        with self._lock:
            with self._transaction("registering a flow"):
                register(self._connection, self._catalog, flow)
            self._catalog = Catalog.read(lambda sql: self._connection.sql(sql).to_arrow_table())

    @property
    def catalog(self) -> Catalog:
        """What is registered."""
        return self._catalog

    def flows(self) -> list[dict[str, Any]]:
        """The registered flows, one per streaming query, as they were given."""
        with self._lock:
            rows = self._connection.sql("SELECT * FROM flows").to_arrow_table().to_pylist()
        return [{**row, "definition": json.loads(row["definition"])} for row in rows]

    def holds(self, query_id: str, batch: int) -> bool:
        """Whether the store has this batch."""
        return self._seq_of(query_id, batch) is not None

    def last_batch(self, query_id: str) -> int | None:
        """The latest batch of a query that the store has."""
        last: int | None = self._one("SELECT max(batch) FROM batches WHERE query_id = ?", query_id)
        return last

    def arrivals(self, flow: str) -> dict[str, list[str]]:
        """The files that the batches of a flow have read, by source."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT s.name, a.path FROM arrivals a JOIN sources s USING (source_no) "
                "WHERE s.flow = ?",
                [flow],
            ).fetchall()
        found: dict[str, list[str]] = {}
        for name, path in rows:
            found.setdefault(name, []).append(path)
        return found

    @property
    def store_id(self) -> str:
        """What tells this store from every other, also after it was moved."""
        return str(self._one("SELECT value FROM meta WHERE key = 'store_id'"))

    def commit(self, batch: Batch, before_commit: BeforeCommit | None = None) -> Committed:
        """Write one batch, all of it or nothing; a batch that is held is only answered.

        `before_commit` gets the final result ids by sink once everything else has succeeded; if it
        raises, nothing is written and its error is passed on as it is.
        """
        foreign: list[BaseException] = []
        with self._lock:
            if (held := self._seq_of(batch.query_id, batch.batch)) is not None:
                return self._answer(batch, held)
            seq = self._seq + 1
            with self._transaction(f"committing batch {batch.batch}", foreign):
                committed = self._write(batch, seq)
                if before_commit is not None:
                    try:
                        before_commit(committed.result_ids)
                    except BaseException as error:
                        foreign.append(error)
                        raise
            self._seq = seq
            self._tail += committed.edges
            if self._tail >= self._compact_edges:
                self._compact_later()
            return committed

    def compact(self) -> None:
        """Sort the edges that came since the last compaction by record, and jobs' dependencies."""
        with self._transaction("compacting edges"):
            compaction.compact(self._connection, self._seq)
            runs.compact(self._connection)
        self._tail = 0

    @contextlib.contextmanager
    def working(self, doing: str) -> Iterator[duckdb.DuckDBPyConnection]:
        """The writer's connection, for work on temporary tables while nobody else writes."""
        with self._lock:
            try:
                yield self._connection
            except (duckdb.Error, pa.ArrowException, OSError) as error:
                raise explained(error, self.path, doing) from error

    @contextlib.contextmanager
    def transaction(self, doing: str) -> Iterator[duckdb.DuckDBPyConnection]:
        """The writer's connection in a transaction: all that is done meanwhile, or nothing."""
        with self._transaction(doing):
            yield self._connection

    def prune(self, source: str, before: datetime) -> int:
        """Delete the kept records of `source` older than `before` that reached no result."""
        known = self._catalog.source(source)
        if not known.kept:
            return 0
        with self._lock:
            since = self._pruned.get(known.no)
            with self._transaction(f"pruning source {source!r}"):
                deleted = compaction.prune(self._connection, known, before, since)
            self._pruned[known.no] = (before, self._seq)
        return deleted

    def apply(self, change: Change) -> int:
        """Mark, unmark or erase records, all of it or nothing; what `change.write` answers."""
        # Whoever closes waits for calls that are served, with the lock in hand: give way.
        while not self._lock.acquire(timeout=0.1):
            if self._closing:
                raise Closed
        try:
            if self._closing:
                raise Closed
            with self._transaction(change.doing):
                answer = change.write(self._connection)
            if change.erases:
                self._checkpoint()
            return answer
        finally:
            self._lock.release()

    def _checkpoint(self) -> None:
        """Move what the log holds into the file; a reader in the way is waited for."""
        for _ in range(_ATTEMPTS):
            try:
                self._connection.execute("CHECKPOINT")
                return
            except duckdb.TransactionException:
                time.sleep(0.05)
            except duckdb.Error as error:
                log.warning("not checkpointed for now: %s", explained(error, self.path, "writing"))
                return
        log.warning(
            "not checkpointed for now, as the store is being read: what was erased is in the "
            "file of %s until the next checkpoint, at the latest until the store is closed",
            self.path,
        )

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """Another connection to the database, for a reader in this process."""
        return self._readers.cursor()

    def close(self) -> None:
        """Give the store up; the last of its users in this process ends the serving."""
        with owners.door(self.path), self._lock:
            self._users -= 1
            if self._users == 0:
                self.abandon()

    def abandon(self) -> None:
        """Give the store up whoever still uses it: this process ends."""
        with owners.door(self.path), self._lock:
            self._closing = True
            owners.remove(self.path)
            if self._serving is not None:
                self._serving.stop()
                self._serving = None
            for connection in (self._readers, self._connection):
                with contextlib.suppress(duckdb.Error):
                    connection.close()

    def __enter__(self) -> EmbeddedWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"EmbeddedWriter({str(self.path)!r}: {self._seq} batches)"

    def _write(self, batch: Batch, seq: int) -> Committed:
        connection, flow = self._connection, self._flow(batch)
        ids: dict[str, pa.Int64Array] = {}
        reached: dict[str, list[Ids]] = {}
        results = records = 0
        for name, files in batch.files.items():
            ingest.insert_files(connection, self._source(flow, name), files)
        for name, arrived in batch.arrivals.items():
            if arrived:
                ingest.insert_arrivals(connection, self._source(flow, name), arrived, seq)
        for name, rows in batch.records.items():
            records += ingest.insert_records(connection, self._source(flow, name), rows, seq)
        for name, part in batch.results.items():
            sink = self._catalog.sink(f"{flow}/{name}")
            final = ingest.insert_results(connection, sink, part, seq)
            ids[name] = pa.array(final)
            results += len(final)
            for origin, sets in part.origins.items():
                source = self._source(flow, origin)
                found = ingest.insert_edges(connection, sink, source, final, sets, seq)
                reached.setdefault(origin, []).append(found)
            for origin, ends in part.intervals.items():
                source = self._source(flow, origin)
                ingest.insert_spans(connection, sink, source, final, ends, seq)
        edges = _count(reached)
        connection.execute(
            "INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?, now())",
            [seq, batch.query_id, batch.batch, batch.watermark, results, edges, records],
        )
        if batch.resolve is not None:
            # A replay reads the batch as the store has it.
            self._resolve(batch, flow, ids, reached, seq)
            edges = _count(reached)
            connection.execute("UPDATE batches SET edges = ? WHERE seq = ?", [edges, seq])
        if batch.last:
            connection.execute(
                "UPDATE flows SET finished = true WHERE query_id = ?", [batch.query_id]
            )
        vertices, labels = self._write_graph(batch, flow, reached, seq)
        return Committed(seq, False, ids, results, edges, records, vertices, labels)

    def _resolve(
        self,
        batch: Batch,
        flow: str,
        ids: dict[str, pa.Int64Array],
        reached: dict[str, list[Ids]],
        seq: int,
    ) -> None:
        """Write the edges of results that came without their sets."""
        assert batch.resolve is not None
        for name, final in ids.items():
            sink = self._catalog.sink(f"{flow}/{name}")
            if not sink.resolved or not len(final):
                continue
            pairs = batch.resolve(self._connection, name, final.to_numpy())
            for origin, found in pairs.items():
                source = self._source(flow, origin)
                records = found["source_id"].to_numpy()
                results = found["result_id"].to_numpy()
                ingest.insert_pairs(self._connection, sink, source, results, records, seq)
                reached.setdefault(origin, []).append(records)

    def _write_graph(
        self, batch: Batch, flow: str, reached: dict[str, list[Ids]], seq: int
    ) -> tuple[int, int]:
        """Write what the batch adds to the live graph; how many vertices and labels."""
        if batch.graph is None:
            return 0, 0
        changes = batch.graph.changes(
            {source: np.concatenate(parts) for source, parts in reached.items()},
            lambda name, ids: ingest.known_vertices(
                self._connection, self._source(flow, name), ids
            ),
            last=batch.last,
        )
        for name, new in changes.vertices.items():
            ingest.insert_vertices(self._connection, self._source(flow, name), new, seq)
        for name, past in changes.labels.items():
            ingest.insert_labels(self._connection, self._source(flow, name), past, seq)
        return (
            sum(len(new.ids) for new in changes.vertices.values()),
            sum(len(past) for past in changes.labels.values()),
        )

    def alive(self, flow: str) -> dict[str, tuple[Ids, Ids]]:
        """The records of a flow's graph without a label, by source: ids, and times in µs."""
        found = {}
        with self._lock:
            for source in self._catalog.sources:
                if source.flow == flow:
                    rows = self._connection.execute(
                        "SELECT id, coalesce(epoch_us(event_time), ?) AS t FROM vertices v "
                        "WHERE source_no = ? AND NOT EXISTS (SELECT 1 FROM labels l "
                        "WHERE l.source_no = v.source_no AND l.id = v.id)",
                        [np.iinfo(np.int64).min, source.no],
                    ).fetchnumpy()
                    found[source.name] = (
                        np.asarray(rows["id"], np.int64),
                        np.asarray(rows["t"], np.int64),
                    )
        return found

    def watermark(self, query_id: str) -> datetime | None:
        """The watermark of the latest batch of a query that has one."""
        found: datetime | None = self._one(
            "SELECT max(watermark) FROM batches WHERE query_id = ?", query_id
        )
        return found

    def _answer(self, batch: Batch, seq: int) -> Committed:
        flow = self._flow(batch)
        ids = {
            name: pa.array(
                ingest.result_ids(
                    self._connection, self._catalog.sink(f"{flow}/{name}"), part, seq
                )[0]
            )
            for name, part in batch.results.items()
        }
        rows = self._connection.execute(
            "SELECT results, edges, records FROM batches WHERE seq = ?", [seq]
        ).fetchall()
        return Committed(seq, True, ids, *rows[0])

    def _flow(self, batch: Batch) -> str:
        if (flow := self._catalog.flows.get(batch.query_id)) is None:
            raise StoreError(
                f"query {batch.query_id} is not registered in the store {self.path}; "
                "register its flow first"
            )
        return flow

    def _source(self, flow: str, name: str) -> Source:
        return self._catalog.source(f"{flow}/{name}")

    def _seq_of(self, query_id: str, batch: int) -> int | None:
        seq: int | None = self._one(
            "SELECT seq FROM batches WHERE query_id = ? AND batch = ?", query_id, batch
        )
        return seq

    def _one(self, sql: str, *params: object) -> Any:
        with self._lock:
            try:
                rows = self._connection.execute(sql, list(params)).fetchall()
            except duckdb.Error as error:
                raise explained(error, self.path, "reading") from error
        return rows[0][0] if rows else None

    def _compact_later(self) -> None:
        # The batch is committed: a compaction that fails (a full disk) must not fail it, and is
        # tried again once the tail has grown by as much again.
        try:
            self.compact()
        except StoreError as error:
            log.warning("edges stay uncompacted for now: %s", error)
            self._tail = 0

    @contextlib.contextmanager
    def _transaction(self, doing: str, foreign: Sequence[BaseException] = ()) -> Iterator[None]:
        with self._lock:
            try:
                self._connection.execute("BEGIN")
                yield
                self._connection.execute("COMMIT")
            except BaseException as error:
                with contextlib.suppress(duckdb.Error):
                    self._connection.execute("ROLLBACK")
                ours = not any(error is one for one in foreign)
                if ours and isinstance(error, duckdb.Error | pa.ArrowException | OSError):
                    raise explained(error, self.path, doing) from error
                raise


def _count(reached: Mapping[str, list[Ids]]) -> int:
    return sum(len(found) for parts in reached.values() for found in parts)


def _own(store: Path, wait: float) -> duckdb.DuckDBPyConnection:
    try:
        store.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise explained(error, store, "making the store") from error
    deadline = time.monotonic() + wait
    with owners.wanted(store) as ask:
        while True:
            try:
                return connect(store, read_only=False)
            except (duckdb.Error, OSError) as error:
                if not is_locked(error) or time.monotonic() >= deadline:
                    raise explained(error, store, "opening the store") from error
            ask()
            time.sleep(0.05)
