"""Writing a lake: the driver's part of a batch, which is small whatever the batch holds."""

from __future__ import annotations

import atexit
import contextlib
import threading
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from headwater.store.batch import Committed, FlowRegistration
from headwater.store.catalog import Catalog
from headwater.store.holding import Holding
from headwater.store.ingest import visible
from headwater.store.lake import changing
from headwater.store.lake.owning import hold, make
from headwater.store.lake.place import OWN, Place
from headwater.store.lake.prepared import Notes, Prepared
from headwater.store.lake.reader import LakeReader
from headwater.store.lake.tables import (
    CATALOG,
    GROWING,
    HAS_JOBS,
    JOBS,
    LARGE,
    Added,
    Table,
    columns_of,
    in_memory,
)
from headwater.store.registration import register
from headwater.store.select import Closed
from headwater.store.serving import Serving

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from headwater.store.marks import Change

_open: dict[str, LakeWriter] = {}
_door = threading.RLock()


class LakeWriter(Holding):
    """Writes a lake; one process does at a time, for all its flows."""

    def __init__(self, place: Place, held: IO[bytes] | None) -> None:
        self.place = place
        self._held = held
        self._users = 1
        self._lock = threading.RLock()
        self._notes = Notes(place)
        make(place)
        self._reader = LakeReader(place)
        self._catalog = Catalog.read(self._reader.query)
        self._tables: dict[str, Table] = {}
        self._behind = True
        """Whether a batch may have been left half way."""
        self.unswept = True
        """Whether an erasure may have been."""
        self._serving: Serving | None = None
        self._closing = False
        self._catch_up()
        self._seq = int(self._one("SELECT coalesce(max(seq), 0) FROM batches"))

    @classmethod
    def open(cls, store: str | os.PathLike[str]) -> LakeWriter:
        """Own the lake at `store`, making it if there is none, and end what was begun there."""
        place = Place.of(store)
        with _door:
            if (known := _open.get(place.root)) is not None:
                known._users += 1
                return known
            held = hold(place)
            try:
                writer = cls(place, held)
                if held is not None:
                    # Anybody reads a lake by himself: only changes are taken from others.
                    writer._serving = Serving.start(place.path / OWN, _read_it, writer.apply)
            except BaseException:
                if held is not None:
                    held.close()
                raise
            _open[place.root] = writer
            return writer

    @staticmethod
    def is_open(place: Place) -> bool:
        """Whether this process writes a lake."""
        return place.root in _open

    @property
    def path(self) -> Path:
        """Where the lake is."""
        return self.place.path

    @property
    def catalog(self) -> Catalog:
        """What is registered."""
        return self._catalog

    def register(self, flow: FlowRegistration) -> None:
        """Bind a flow to the store: number its sources and sinks and make their tables."""
        with self._lock, in_memory() as memory:
            for name in CATALOG:
                memory.execute(f"DELETE FROM {name}")
                with visible(memory, hw_rows=self._reader.query(f"SELECT * FROM {name}")):
                    memory.execute(f"INSERT INTO {name} SELECT * FROM hw_rows")
            register(memory, self._catalog, flow)
            self._catalog = Catalog.read(lambda sql: memory.sql(sql).to_arrow_table())
            for sink in self._catalog.sinks:
                self._table(f"result_{sink.no}", sink.schema).make()
            for source in self._catalog.sources:
                if source.kept:
                    self._table(f"record_{source.no}", source.schema).make()
            # Last the flow: without it, what it is made of means nothing. And `meta`, by which
            # readers see that something changed.
            for name in ("sources", "sinks", "flows", "meta"):
                rows = memory.sql(f"SELECT * FROM {name}").to_arrow_table()
                self._table(name).replace(rows)

    def holds(self, query_id: str, batch: int) -> bool:
        """Whether the store has this batch."""
        self._catch_up()
        sql = "SELECT count(*) FROM batches WHERE query_id = ? AND batch = ?"
        return bool(self._one(sql, query_id, batch))

    def last_seq(self, query_id: str) -> int | None:
        """The place in the store of the latest batch of a query."""
        last: int | None = self._one("SELECT max(seq) FROM batches WHERE query_id = ?", query_id)
        return last

    def files(self, relation: str) -> list[str]:
        """The data files of a relation, for Spark to read."""
        return self._reader.files(relation)

    def query(self, sql: str, params: Sequence[object] = ()) -> pa.Table:
        """The rows of one SELECT."""
        return self._reader.query(sql, params)

    def own_relations(self) -> list[str]:
        """The relations of results and of kept records."""
        catalog = self._catalog
        kept = [f"record_{source.no}" for source in catalog.sources if source.kept]
        return [f"result_{sink.no}" for sink in catalog.sinks] + kept

    def table(self, relation: str) -> Table:
        """The table of a relation."""
        return self._of(relation)

    def tables(self) -> list[Table]:
        """All tables."""
        names = (*CATALOG, *GROWING, *LARGE, *self.job_relations(), *self.own_relations())
        return [self._of(name) for name in names]

    def job_relations(self) -> tuple[str, ...]:
        """The relations of foreign jobs, if the lake has some."""
        known = self._one("SELECT count(*) FROM meta WHERE key = ?", HAS_JOBS)
        return JOBS if known else ()

    def make_jobs(self) -> None:
        """Make the tables of foreign jobs, if there are none."""
        with self._lock:
            if not self.job_relations():
                for name in JOBS:
                    self._table(name).make()
                self.note(HAS_JOBS, "1")

    def size(self) -> tuple[int, int, int]:
        """Files, bytes and rows of all tables."""
        sizes = []
        for table in self.tables():
            table.look()
            sizes.append(table.size())
        files, size, rows = (sum(part) for part in zip(*sizes, strict=True))
        return files, size, rows

    def note(self, key: str, value: str) -> None:
        """Write down a fact about the store."""
        self.note_all({key: value})

    def note_all(self, facts: Mapping[str, str | None]) -> None:
        """Write down facts about the store, or that they hold no more, in one commit."""
        rows = self._reader.query("SELECT * FROM meta").to_pylist()
        rows = [row for row in rows if row["key"] not in facts]
        rows += [{"key": key, "value": value} for key, value in facts.items() if value is not None]
        self._table("meta").replace(pa.Table.from_pylist(rows, schema=columns_of("meta")))

    def apply(self, change: Change) -> int:
        """Mark, unmark or erase records, all of it or nothing; what the change answers."""
        with self._giving_way():
            self._catch_up()
            return changing.apply(self, change)

    @contextlib.contextmanager
    def batch(self) -> Iterator[int]:
        """The number of the next batch, while nobody else has one."""
        with self._lock:
            # One that failed half way comes first: later ones must not hide that it did.
            self._catch_up()
            yield self._seq + 1

    def commit(
        self,
        query_id: str,
        batch: int,
        added: Sequence[Added],
        *,
        watermark: datetime | None,
        last: bool,
        rows: Mapping[str, list[dict[str, Any]]],
        before_commit: Callable[[], None] | None = None,
    ) -> Committed:
        """Make files that tasks wrote a batch of the store, all of them or none."""
        seq = self._seq + 1
        counts = {
            "results": _rows(added, "result_"),
            "edges": _rows(added, "edges"),
            "records": _rows(added, "record_"),
        }
        if before_commit is not None:
            before_commit()
        prepared = Prepared(
            seq,
            query_id,
            batch,
            None if watermark is None else watermark.astimezone(UTC).isoformat(),
            last,
            counts,
            tuple(added),
            rows,
        )
        self._notes.write(prepared)
        self._seq, self._behind = seq, True
        self._finish(prepared)
        self._behind = False
        graph = {name: _rows(added, name) for name in ("vertices", "labels")}
        return Committed(seq, False, {}, **counts, **graph)

    def prune(self, source: str, before: datetime) -> int:
        """Records are dropped from a lake by its retention alone."""
        return 0

    def close(self) -> None:
        """Give the lake up; the last of its users in this process lets others write."""
        with _door:
            self._users -= 1
            if self._users == 0:
                self._closing = True
                _open.pop(self.place.root, None)
                self.serve_no_more()
                self._reader.close()
                if self._held is not None:
                    self._held.close()

    def serve_no_more(self) -> None:
        """Take no more changes from other processes."""
        if self._serving is not None:
            self._serving.stop()
            self._serving = None

    def __enter__(self) -> LakeWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"LakeWriter({str(self.place)!r}: {self._seq} batches)"

    def _catch_up(self) -> None:
        """Bring what was left half way to its end."""
        if self._behind or self.unswept:
            with self._lock:
                for prepared in self._notes.all():
                    self._finish(prepared)
                self._behind = False
                changing.finish(self)
                self.unswept = False

    def _finish(self, prepared: Prepared) -> None:
        """Bring a batch to its end, from wherever it was left."""
        by_relation: dict[str, list[Added]] = {}
        for file in prepared.added:
            by_relation.setdefault(file.relation, []).append(file)
        app = prepared.query_id
        for relation, files in by_relation.items():
            self._of(relation).add(files, app, prepared.batch)
        for relation, rows in prepared.rows.items():
            if rows:
                table = pa.Table.from_pylist(rows, schema=columns_of(relation))
                self._table(relation).append(table, app, prepared.batch)
        if prepared.last:
            self._end(prepared.query_id)
        watermark = prepared.watermark
        row = {
            "seq": prepared.seq,
            "query_id": prepared.query_id,
            "batch": prepared.batch,
            "watermark": None if watermark is None else datetime.fromisoformat(watermark),
            **prepared.counts,
            "committed_at": datetime.now(UTC),
        }
        row = pa.Table.from_pylist([row], schema=columns_of("batches"))
        self._table("batches").append(row, app, prepared.batch)
        self._notes.remove(prepared)

    def _end(self, query_id: str) -> None:
        """Write down that a flow is finished."""
        rows = self._reader.query("SELECT * FROM flows").to_pylist()
        for row in rows:
            row["finished"] = row["finished"] or row["query_id"] == query_id
        self._table("flows").replace(pa.Table.from_pylist(rows, schema=columns_of("flows")))

    def _of(self, relation: str) -> Table:
        kind, _, number = relation.partition("_")
        if kind == "result":
            own = next(sink for sink in self._catalog.sinks if sink.no == int(number))
            return self._table(relation, own.schema)
        if kind == "record":
            source = next(one for one in self._catalog.sources if one.no == int(number))
            return self._table(relation, source.schema)
        return self._table(relation)

    def _table(self, relation: str, own: pa.Schema | None = None) -> Table:
        if relation not in self._tables:
            self._tables[relation] = Table(self.place, relation, columns_of(relation, own))
        return self._tables[relation]

    def _one(self, sql: str, *params: object) -> Any:
        rows = self._reader.query(sql, list(params))
        return rows[0][0].as_py()


@atexit.register
def _leave() -> None:
    # A server that still runs when the interpreter ends would keep it from doing so.
    for writer in list(_open.values()):
        writer.serve_no_more()


def _read_it() -> NoReturn:
    raise Closed


def _rows(added: Sequence[Added], relation: str) -> int:
    return sum(file.rows for file in added if file.relation.startswith(relation))
