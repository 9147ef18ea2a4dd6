"""Reading a store: through its owner while there is one, else straight from the file."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import duckdb

from headwater.errors import StoreError
from headwater.store import owners
from headwater.store.database import connect, database_path
from headwater.store.failures import explained, is_locked
from headwater.store.lake.place import refuse_lake, require_folder
from headwater.store.schema import SERVING
from headwater.store.select import Closed, select
from headwater.store.serving import FlightReader, Gone

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

_IDLE = 2.0
_PATIENCE = 30.0


class Reader(Protocol):
    """Where answers come from."""

    def query(self, sql: str, params: Sequence[object] = ()) -> pa.Table:
        """The rows of one SELECT."""


class Located(Reader, Protocol):
    """Answers about a store whose place is known."""

    @property
    def path(self) -> Path:
        """Where the store is."""


class OpenReader(Located, Protocol):
    """Answers about a store that is held open for them."""

    def close(self) -> None:
        """Let go of everything."""


class _Locked(Exception):
    """Another process has opened the file for writing."""


class LocalReader:
    """Reads the file itself, and lets go of it when idle or when a writer wants it."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._timer: threading.Timer | None = None
        self._used = 0.0
        self._using = 0
        """Queries that are being answered."""
        self._free = threading.Condition(owners.door(store))

    def query(self, sql: str, params: Sequence[object] = ()) -> pa.Table:
        """The rows of one SELECT."""
        with self._free:
            cursor = self._open().cursor()
            self._using += 1
        try:
            return select(cursor, sql, params, writable=False)
        finally:
            with self._free:
                self._using -= 1
                self._free.notify_all()
                self._used = time.monotonic()
                if self._timer is None and self._connection is not None:
                    self._watch()

    def let_go(self) -> None:
        """Close the file; it is opened again when needed."""
        with self._free:
            while self._using:
                self._free.wait()
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    close = let_go

    def _open(self) -> duckdb.DuckDBPyConnection:
        if owners.find(self._store) is not None:
            raise _Locked
        if self._connection is None:
            try:
                self._connection = connect(self._store, read_only=True)
            except (duckdb.Error, OSError) as error:
                if is_locked(error):
                    raise _Locked from error
                raise explained(error, self._store, "reading") from error
            owners.hold(self._store, self)
        return self._connection

    def _watch(self) -> None:
        self._timer = threading.Timer(_IDLE, self._idle)
        self._timer.name = owners.IDLE
        self._timer.daemon = True
        self._timer.start()

    def _idle(self) -> None:
        with self._free:
            if self._timer is not threading.current_thread():
                return
            if time.monotonic() - self._used >= _IDLE / 2:
                self.let_go()
            else:
                self._watch()


class StoreReader:
    """Reads a store whoever owns it, and follows when the owner comes or goes."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        require_folder(path)
        self.path = Path(os.path.realpath(path))
        if not database_path(self.path).is_file():
            refuse_lake(self.path)
            raise StoreError(f"no store at {path}; give the directory of a store")
        self._local = LocalReader(self.path)
        self._remote: tuple[int, FlightReader] | None = None
        self._stale = 0

    def query(self, sql: str, params: Sequence[object] = ()) -> pa.Table:
        """The rows of one SELECT."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            if (owner := owners.find(self.path)) is not None:
                with contextlib.suppress(Closed, duckdb.ConnectionException):
                    return select(owner.cursor(), sql, params)
            written = self._note()
            if written != self._stale:
                try:
                    return self._through_owner(written).query(sql, params)
                except Gone:
                    self._remote = None
                    self._stale = written
            late = time.monotonic() >= deadline
            if late or not owners.is_wanted(self.path):
                try:
                    return self._local.query(sql, params)
                except _Locked as error:
                    self._stale = 0
                    if late:
                        cause = error.__cause__ or error
                        raise explained(cause, self.path, "reading") from error
            else:
                self._local.let_go()
            time.sleep(0.02)

    def close(self) -> None:
        """Let go of the file and of the connection to the owner."""
        self._local.let_go()
        remote, self._remote = self._remote, None
        if remote is not None:
            remote[1].close()

    def _note(self) -> int:
        # A new owner writes a new note, so its time tells whether the connection is still good.
        try:
            return os.stat(f"{self.path}/{SERVING}").st_mtime_ns
        except OSError:
            return self._stale

    def _through_owner(self, written: int) -> FlightReader:
        remote = self._remote
        if remote is None or remote[0] != written:
            self._local.let_go()
            remote = self._remote = (written, FlightReader(self.path))
        return remote[1]
