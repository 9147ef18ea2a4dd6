"""The embedded store's writer: one process owns the DuckDB file and commits batch after batch."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa

from headwater.errors import StoreError
from headwater.store import compaction, owners, retention, runs
from headwater.store.batch_writing import BatchWriting
from headwater.store.catalog import Catalog
from headwater.store.database import connect
from headwater.store.failures import explained, is_locked
from headwater.store.holding import Holding
from headwater.store.lake.place import refuse_lake, require_folder
from headwater.store.registration import register
from headwater.store.serving import Serving

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime, timedelta

    from headwater.store.batch import Batch, Committed, FlowRegistration
    from headwater.store.marks import Change
    from headwater.store.occurrences import Ids
    from headwater.store.retention import Forgotten

log = logging.getLogger("headwater")

BeforeCommit = Callable[[dict[str, pa.Int64Array]], None]
_ATTEMPTS = 60
"""How often a checkpoint is tried while the store is being read."""


class EmbeddedWriter(Holding):
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
        require_folder(path)
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

    def forget(self, *, older_than: timedelta | None = None, most: int | None = None) -> Forgotten:
        """Forget the oldest batches: those beyond an age, or beyond a size of the file."""
        with self._lock:
            if most is not None:
                self._checkpoint()  # what is in the log takes no room in the file yet
            sizes = self._connection.execute(
                "SELECT block_size * (total_blocks - free_blocks) FROM pragma_database_size() "
                "WHERE database_name = current_database()"
            ).fetchall()
            last, gone = retention.cut(self, older_than=older_than, most=most, used=sizes[0][0])
            if last:
                with self._transaction("forgetting old batches"):
                    records = retention.forget(self._connection, self._catalog, last)
                gone = replace(gone, records=records)
                self._tail = compaction.tail(self._connection)
                self._checkpoint()
        return gone

    def query(self, sql: str, params: Sequence[object] = ()) -> pa.Table:
        """The rows of one SELECT, as the next transaction will find them."""
        with self._lock:
            return self._connection.execute(sql, list(params)).to_arrow_table()

    def refresh(self) -> None:
        """See what was written to the store other than by batches."""
        with self._lock:
            self._catalog = Catalog.read(lambda sql: self._connection.sql(sql).to_arrow_table())
            self._seq = int(self._one("SELECT coalesce(max(seq), 0) FROM batches"))
            self._tail = compaction.tail(self._connection)

    @property
    def catalog(self) -> Catalog:
        """What is registered."""
        return self._catalog

    def holds(self, query_id: str, batch: int) -> bool:
        """Whether the store has this batch."""
        return self._seq_of(query_id, batch) is not None

    def commit(self, batch: Batch, before_commit: BeforeCommit | None = None) -> Committed:
        """Write one batch, all of it or nothing; a batch that is held is only answered.

        `before_commit` gets the final result ids by sink once everything else has succeeded; if it
        raises, nothing is written and its error is passed on as it is.
        """
        foreign: list[BaseException] = []
        with self._lock:
            if (held := self._seq_of(batch.query_id, batch.batch)) is not None:
                return self._writing(batch).answer(batch, held)
            seq = self._seq + 1
            with self._transaction(f"committing batch {batch.batch}", foreign):
                committed = self._writing(batch).write(batch, seq)
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

    def compact(self) -> int:
        """Sort the edges that came since the last compaction by record, and jobs' dependencies.

        Gives how many edges that were.
        """
        with self._transaction("compacting edges"):
            compaction.compact(self._connection, self._seq)
            runs.compact(self._connection)
        sorted_now, self._tail = self._tail, 0
        return sorted_now

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
        with self._giving_way():
            with self._transaction(change.doing):
                answer = change.write(self._connection)
            if change.erases:
                self._checkpoint()
            return answer

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

    def _writing(self, batch: Batch) -> BatchWriting:
        if (flow := self._catalog.flows.get(batch.query_id)) is None:
            raise StoreError(
                f"query {batch.query_id} is not registered in the store {self.path}; "
                "register its flow first"
            )
        return BatchWriting(self._connection, self._catalog, flow)

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


def _own(store: Path, wait: float) -> duckdb.DuckDBPyConnection:
    refuse_lake(store)
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
