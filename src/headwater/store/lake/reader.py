"""Reading a lake: DuckDB over the data files of its tables, whole batches only.

Small relations are read into memory. A large one is a view of its table's files, of which Arrow
opens those that can have what is asked; rows of a batch that has no row in `batches` are not seen.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from headwater.errors import StoreError
from headwater.store import schema
from headwater.store.batch import ID, SEQ
from headwater.store.compaction import COMPACTED
from headwater.store.ingest import visible
from headwater.store.lake.place import Place
from headwater.store.lake.tables import (
    CATALOG,
    ERASING,
    GROWING,
    HAS_JOBS,
    JOBS,
    LARGE,
    PINS,
    SETS,
    Table,
    columns_of,
    in_memory,
    written_here,
)
from headwater.store.select import QueryFailed, asked

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from pathlib import Path

_REST = 1.0
"""Seconds for which what a lake elsewhere holds is not looked at again."""


class LakeReader:
    """Answers about a lake, as of the batches that are committed when it is asked."""

    def __init__(self, store: str | os.PathLike[str] | Place) -> None:
        self.place = store if isinstance(store, Place) else Place.of(store)
        self._tables = {
            name: Table(self.place, name, columns_of(name))
            for name in (*CATALOG, *GROWING, *LARGE, *JOBS)
        }
        if not self._tables["meta"].exists:
            raise StoreError(f"no store at {self.place}; give the place of a lake")
        self._versions: dict[str, int] = {}
        self._shown: dict[str, tuple[int, bool, bool]] = {}
        self._pins: dict[str, int] = {}
        self._hidden = frozenset[str]()
        """The relations of records in whose files may be what was erased."""
        self._looked, self._heard = -_REST, 0
        self._lock = threading.RLock()
        self._connection = in_memory()
        for name in LARGE:
            self._connection.execute(f"DROP TABLE {name}")
        self._check()

    @property
    def path(self) -> Path:
        """Where the lake is."""
        return self.place.path

    def query(self, sql: str, params: Sequence[object] = ()) -> pa.Table:
        """The rows of one SELECT."""
        with self._lock:
            while True:
                self.look()
                try:
                    return asked(self._connection, sql, params)
                except QueryFailed:
                    # A file that an erasure has replaced meanwhile is gone at once.
                    before = dict(self._shown)
                    self._show_all()
                    if self._shown == before and not self._has_moved():
                        raise

    def look(self) -> None:
        """See what was committed meanwhile."""
        heard = written_here(self.place.root)
        rested = time.monotonic() - self._looked >= _REST
        if not (self.place.is_local or rested or heard != self._heard):
            return
        while True:
            try:
                self._look()
            except FileNotFoundError:
                moved = self._has_moved()
                self._versions.clear()
                if not moved:
                    raise
            else:
                # What an erasure takes away is taken from files after it is said in `meta`.
                if not self._has_moved():
                    break
        self._looked, self._heard = time.monotonic(), heard

    def files(self, relation: str) -> list[str]:
        """The data files of a relation."""
        with self._lock:
            self._table(relation).look()
            return self._table(relation).files()

    def sizes(self) -> list[tuple[str, int, int]]:
        """By relation: its rows and their bytes in files."""
        with self._lock:
            self.look()
            names = (*CATALOG, *GROWING, *LARGE, *self._jobs(), *self._own())
            found = []
            for name in names:
                self._tables[name].look()
                _, size, rows = self._tables[name].size()
                found.append((name, rows, size))
            return found

    def close(self) -> None:
        """Let go of everything."""
        with self._lock, contextlib.suppress(duckdb.Error):
            self._connection.close()

    def _check(self) -> None:
        """Refuse a lake of another version."""
        [version] = self.query("SELECT value FROM meta WHERE key = 'format'")["value"].to_pylist()
        if version != str(schema.FORMAT):
            self.close()
            raise StoreError(
                f"the lake {self.place} has format {version}, this Headwater reads format "
                f"{schema.FORMAT}; use the version of Headwater that wrote it, or another store"
            )

    def _look(self) -> None:
        # In this order: what a batch wrote is there before the batch is, and edges are in their
        # sorted runs before it is said that they are.
        if changed := self._reload("meta"):
            self._pin()
        came = self._reload("batches")
        if came or changed:
            for name in (*CATALOG[1:], *GROWING[1:]):
                self._reload(name)
            self._show_all()
        if came and SETS in self._pins:
            self._connection.execute(
                f"UPDATE batches SET edges = edges + (SELECT count(*) FROM {SETS} s "
                f"WHERE s.seq = batches.seq) WHERE seq IN (SELECT seq FROM {SETS})"
            )

    def _has_moved(self) -> bool:
        return self._tables["meta"].look() != self._versions.get("meta")

    def _pin(self) -> None:
        """See marks and erasures as of the versions that `meta` names."""
        facts = dict(self._connection.execute("SELECT key, value FROM meta").fetchall())
        pins: dict[str, int] = json.loads(facts.get(PINS, "{}"))
        self._hidden = frozenset(f"record_{no}" for no in json.loads(facts.get(ERASING, "[]")))
        if pins == self._pins:
            return
        for name, version in pins.items():
            table = Table(self.place, name, columns_of(name))
            table.at(version)
            if name == SETS:
                self._connection.register(f"hw_{SETS}", table.dataset())
                self._connection.execute(
                    f"CREATE OR REPLACE TEMP VIEW {SETS} AS SELECT * FROM hw_{SETS} WHERE seq > "
                    "(SELECT coalesce(max(value::BIGINT), 0) FROM meta WHERE key = 'forgotten')"
                )
            else:
                self._fill(name, table)
        self._pins = pins
        # Their edges are counted with those of their batches.
        self._versions.pop("batches", None)

    def _reload(self, name: str) -> bool:
        """Read a small relation, if it has changed."""
        table = self._tables[name]
        if (version := table.look()) == self._versions.get(name):
            return False
        self._fill(name, table)
        self._versions[name] = version
        return True

    def _fill(self, name: str, table: Table) -> None:
        rows = table.rows()
        # One after the other: within a transaction, keys that were deleted are still taken.
        self._connection.execute(f"DELETE FROM {name}")
        with visible(self._connection, hw_rows=rows):
            self._connection.execute(f"INSERT INTO {name} SELECT * FROM hw_rows")

    def _own(self) -> list[str]:
        """The relations of results and records."""
        found = []
        for kind, named in (("sink", "result"), ("source", "record")):
            rows = self._connection.sql(f"SELECT {kind}_no AS no, arrow FROM {kind}s")
            for row in rows.to_arrow_table().to_pylist():
                name = f"{named}_{row['no']}"
                if name not in self._tables:
                    own = pa.ipc.read_schema(pa.py_buffer(row["arrow"]))
                    self._tables[name] = Table(self.place, name, columns_of(name, own))
                if self._tables[name].exists:
                    found.append(name)
        return found

    def _jobs(self) -> tuple[str, ...]:
        """The relations of foreign jobs, if the lake has some."""
        known = self._connection.execute("SELECT 1 FROM meta WHERE key = ?", [HAS_JOBS])
        return JOBS if known.fetchall() else ()

    def _table(self, relation: str) -> Table:
        if relation not in self._tables:
            self.look()
        return self._tables[relation]

    def _show_all(self) -> None:
        for name in (*LARGE, *self._own()):
            self._show(name)
        for name in self._jobs():
            self._show_job(name)

    def _show(self, name: str) -> None:
        table = self._tables[name]
        sets = name.startswith("edges") and SETS in self._pins
        shown = (table.look(), name in self._hidden, sets)
        if shown == self._shown.get(name):
            return
        seq = SEQ if name.startswith(("result_", "record_")) else "seq"
        self._connection.register(f"hw_{name}", table.dataset())
        rows = f"SELECT * FROM hw_{name} WHERE {seq} IN (SELECT seq FROM batches)"
        if name in self._hidden:
            no = name.removeprefix("record_")
            rows += f" AND {ID} NOT IN (SELECT id FROM erased WHERE source_no = {no})"
        if sets:
            columns = ", ".join(self._tables[name].columns.names)
            rows += f" UNION ALL SELECT {columns} FROM {SETS}"
            if name == "edges_by_record":
                rows += f" WHERE seq <= ({COMPACTED})"
        self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {rows}")
        self._shown[name] = shown

    def _show_job(self, name: str) -> None:
        table = self._tables[name]
        shown = (table.look(), False, False)
        if shown == self._shown.get(name):
            return
        if name not in self._shown:
            self._connection.execute(f"DROP TABLE {name}")
        self._connection.register(f"hw_{name}", table.dataset())
        rows = (
            f"SELECT * EXCLUDE (seq) FROM hw_{name} "
            "WHERE seq = 0 OR seq IN (SELECT seq FROM batches)"
        )
        if name == "jobs":
            # A row for each time that something came of a job: the last is how it stands.
            rows += " QUALIFY row_number() OVER (PARTITION BY job_no ORDER BY seq DESC) = 1"
        self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {rows}")
        self._shown[name] = shown
