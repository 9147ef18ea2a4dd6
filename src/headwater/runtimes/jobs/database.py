"""The SQLite file of a queue: transactions that are whole and safe when they return."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headwater.errors import RunError
from headwater.runtimes.jobs.schema import VERSION, script

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_PATIENCE = 30.0
"""Seconds to wait while another process writes."""


class Database:
    """One connection, which threads share one at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._depth = 0
        try:
            self._connection = sqlite3.connect(
                path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
            )
            self._connection.row_factory = sqlite3.Row
            self._to_wal()
            # Full, not normal: what was enqueued is still there after a power cut.
            self._connection.execute("pragma synchronous = full")
            self._make()
        except sqlite3.DatabaseError as error:
            raise RunError(f"{path} is no queue of jobs: {error}; give another folder") from error

    def _to_wal(self) -> None:
        """Readers and a writer at the same time; set once, for which SQLite does not wait."""
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                self._connection.execute("pragma journal_mode = wal")
                return
            except sqlite3.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)

    def _make(self) -> None:
        found = self._version()
        if not found:
            try:
                self._connection.executescript(script())
            except sqlite3.OperationalError:
                if self._connection.in_transaction:
                    self._connection.execute("rollback")
                if not self._version():  # else another process has made it at the same moment
                    raise
            found = self._version()
        if found != VERSION:
            raise RunError(
                f"{self.path} was made by another Headwater (version {found}, this has {VERSION}); "
                "give another folder"
            )

    def _version(self) -> int:
        return int(self._connection.execute("pragma user_version").fetchone()[0])

    @contextmanager
    def transaction(self) -> Iterator[Database]:
        """All that is done within is done together, or nothing; one in another is part of it."""
        with self._lock:
            if self._depth:
                yield self
                return
            self._connection.execute("begin immediate")
            self._depth = 1
            try:
                yield self
                self._connection.execute("commit")
            finally:
                self._depth = 0
                if self._connection.in_transaction:
                    self._connection.execute("rollback")

    def run(self, sql: str, *values: Any) -> int:
        """Do something; how many rows it changed."""
        with self._lock:
            return self._connection.execute(sql, values).rowcount

    def run_many(self, sql: str, values: Sequence[Sequence[Any]]) -> None:
        """Do something for many rows."""
        with self._lock:
            self._connection.executemany(sql, values)

    def insert(self, sql: str, *values: Any) -> int:
        """Add a row; its number."""
        with self._lock:
            return int(self._connection.execute(sql, values).lastrowid or 0)

    def rows(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        """What a query answers."""
        with self._lock:
            return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, *values: Any) -> sqlite3.Row | None:
        """The first row of it."""
        with self._lock:
            found = self._connection.execute(sql, values).fetchone()
            return found if isinstance(found, sqlite3.Row) else None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()
