"""The tables of a lake: their columns, what is in them now, and adding to them."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from headwater.store import schema
from headwater.store.batch import BASE, CONTENT, ID, SEQ, TIME
from headwater.store.lake.place import library

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from headwater.store.lake.place import Place

CATALOG = ("meta", "flows", "sources", "sinks")
"""Small relations that are written anew when they change."""
GROWING = ("batches", "files", "arrivals")
"""Small relations that every batch may add to, written by the driver."""
LARGE = ("edges", "edges_by_record", "results_by_id", "spans", "vertices", "labels")
"""Relations whose rows only tasks write; those of results and records are like them."""
JOBS = ("jobs", "job_batches", "entities", "dependencies", "dependencies_by_input")
"""Relations of foreign jobs, in lakes that have some; each row has its batch (`seq`) as well."""
HAS_JOBS = "jobs"
"""The fact about a lake that says that it has them."""
GROUPED = 256
"""Files of a table from which on they are in groups."""
_NEAR = {
    "edges_by_record": "source_id",
    "results_by_id": "result_id",
    "entities": "id",
    "dependencies": "output",
    "dependencies_by_input": "input",
}
"""The column by which files are near to each other; of other relations, their batches."""
CHANGED = ("marks", "marked", "erased")
"""Small relations of marks and erasures, seen at the versions that `meta` names."""
SETS = "stored_sets"
"""Edges that an erasure stored of results whose sets a replay had found before; seen likewise."""
PINS = "changes"
"""The fact about a store that names the versions of the relations of marks."""
ERASING = "erasing"
"""The one that names the sources whose data files may hold what was erased."""
NUMBERS = "mark_numbers"
"""The last number that a mark got."""
_TIME = pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True)
class Added:
    """A data file that a task has written: part of a relation, but not of its table yet."""

    relation: str
    path: str
    """Within the table's folder."""
    size: int
    rows: int
    stats: Mapping[str, Any]
    keys: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """By source, the numbers of the files that its records are from."""


def columns_of(relation: str, own: pa.Schema | None = None) -> pa.Schema:
    """The columns of a relation; those of results and records have some of their own."""
    if relation.startswith(("result_", "record_")) and own is not None:
        last = BASE if relation.startswith("result_") else CONTENT
        fixed = [(ID, pa.int64()), (TIME, _TIME), (SEQ, pa.int64()), (last, pa.int64())]
        return pa.schema([*fixed, *own])
    return _fixed()[relation]


def in_memory() -> duckdb.DuckDBPyConnection:
    """The relations of a store in memory, for the small ones of a lake."""
    connection = duckdb.connect(config={"enable_external_access": "false"})
    connection.execute("SET TimeZone = 'UTC'")
    schema.create(connection)
    return connection


def _fixed() -> dict[str, pa.Schema]:
    if not _SCHEMAS:
        with in_memory() as connection:
            for relation in (*CATALOG, *GROWING, *LARGE, *CHANGED):
                rows = connection.sql(f"SELECT * FROM {relation} LIMIT 0").to_arrow_table()
                _SCHEMAS[relation] = rows.schema
            for relation in JOBS:
                rows = connection.sql(f"SELECT *, 0::BIGINT AS seq FROM {relation} LIMIT 0")
                _SCHEMAS[relation] = rows.to_arrow_table().schema
        _SCHEMAS[SETS] = _SCHEMAS["edges"]
    return _SCHEMAS


_SCHEMAS: dict[str, pa.Schema] = {}
_written: dict[str, int] = {}


def written_here(root: str) -> int:
    """How often this process has written to a lake: what was, its readers are to see at once."""
    return _written.get(root, 0)


class Table:
    """One Delta table: what it holds as it was looked at last, and how to add to it."""

    def __init__(self, place: Place, relation: str, columns: pa.Schema) -> None:
        self._delta = library()
        self.relation, self.columns = relation, columns
        self._root, self._options = place.root, place.options()
        self._uri = place.table(relation)
        self._filesystem, root = place.filesystem()
        self._folder = f"{root}/{relation}"
        self._table: Any = None
        self._files: dict[str, pads.Fragment] = {}

    @property
    def exists(self) -> bool:
        """Whether it has been made."""
        return bool(self._delta.DeltaTable.is_deltatable(self._uri, self._options))

    def make(self) -> None:
        """Make it, if there is none."""
        if not self.exists:
            self._delta.DeltaTable.create(
                self._uri,
                schema=self._delta.Schema.from_arrow(self.columns),
                mode="ignore",
                storage_options=self._options,
            )

    def look(self) -> int:
        """Look what it holds now; the version of that."""
        if self._table is None:
            self._table = self._opened()
        else:
            self._table.update_incremental()
        return int(self._table.version())

    def transaction(self, app: str) -> int | None:
        """The last version that an application wrote."""
        found: int | None = self._table.transaction_version(app)
        return found

    def add(self, files: Sequence[Added], app: str, version: int) -> None:
        """Add files as one transaction; one that is known adds nothing."""
        if files and self._is_new(app, version):
            self.put(files, commit_properties=self._properties(app, version))

    def put(self, files: Sequence[Added], **more: Any) -> None:
        """Add files, whatever was added before."""
        self._change([self._action(file, data_change=True) for file in files], **more)

    def append(self, rows: pa.Table, app: str, version: int) -> None:
        """Add rows as one transaction; one that is known adds nothing."""
        if self._is_new(app, version):
            self._delta.write_deltalake(
                self._table,
                rows.cast(self.columns),
                mode="append",
                commit_properties=self._properties(app, version),
            )
            self._tell()

    def replace(self, rows: pa.Table) -> None:
        """Write all rows anew."""
        self._delta.write_deltalake(
            self._uri, rows.cast(self.columns), mode="overwrite", storage_options=self._options
        )
        self._tell()

    def rows(self) -> pa.Table:
        """All rows."""
        return self.dataset().to_table()

    def files(self, below: int | None = None) -> list[str]:
        """The addresses of its data files; of those smaller than so many bytes, if told."""
        return [
            f"{self._uri}/{row['path']}"
            for row in self._actions().select(["path", "size_bytes"]).to_pylist()
            if below is None or row["size_bytes"] < below
        ]

    def files_from(self, column: str, upto: int) -> list[str]:
        """The addresses of the data files that may have a value up to some one."""
        return [
            f"{self._uri}/{row['path']}"
            for row in self._actions().to_pylist()
            if row.get(f"min.{column}") is None or row[f"min.{column}"] <= upto
        ]

    def files_among(self, column: str, values: npt.NDArray[np.int64]) -> list[str]:
        """The addresses of the data files that may have one of some values."""
        values = np.sort(values)
        found = []
        for row in self._actions().to_pylist():
            low, high = row.get(f"min.{column}"), row.get(f"max.{column}")
            known = low is not None and high is not None
            if not known or np.searchsorted(values, low) < np.searchsorted(values, high, "right"):
                found.append(f"{self._uri}/{row['path']}")
        return found

    def at(self, version: int | None) -> list[str]:
        """Have it be as it was at a version, or as it is now; its data files."""
        self._table = self._opened(version)
        return self.files()

    def sweep(self) -> None:
        """Delete every data file that it does not have now; nobody may be writing any."""
        from pyarrow import fs

        self.look()
        held = {address.rsplit("/", 1)[1] for address in self.files()}
        for info in self._filesystem.get_file_info(fs.FileSelector(self._folder)):
            if info.base_name.endswith(".parquet") and info.base_name not in held:
                self._filesystem.delete_file(info.path)

    def size(self) -> tuple[int, int, int]:
        """Its files, their bytes and their rows."""
        actions = self._actions()
        totals = [pc.sum(actions[name]).as_py() or 0 for name in ("size_bytes", "num_records")]
        return actions.num_rows, *totals

    def overlap(self, column: str) -> int:
        """The most files that may have one value of a column."""
        rows = self._actions().to_pylist()
        ends = [(row.get(f"min.{column}"), row.get(f"max.{column}")) for row in rows]
        known = [(low, high) for low, high in ends if low is not None and high is not None]
        if not known:
            return 0
        # At the beginning of each file: those that have begun, less those that have ended before.
        lows, highs = (np.sort(np.array(side)) for side in zip(*known, strict=True))
        return int((np.arange(1, len(lows) + 1) - np.searchsorted(highs, lows)).max())

    def replace_files(
        self, new: Sequence[Added], old: Sequence[str], *, data_change: bool = False
    ) -> None:
        """Have new files stand for old ones, in one commit."""
        self.look()
        moment = int(time.time() * 1000)
        gone = [path.removeprefix(f"{self._uri}/") for path in old]
        self._change(
            [
                *(self._action(file, data_change=data_change) for file in new),
                *(self._delta.transaction.RemoveAction(path, data_change, moment) for path in gone),
            ]
        )

    def gather(self) -> int:
        """Put the files of a small table together; how many."""
        self.look()
        found: int = self._table.optimize.compact()["numFilesRemoved"]
        return found

    def vacuum(self, hours: int) -> int:
        """Delete the files that it has not had for so many hours; how many."""
        self.look()
        gone = self._table.vacuum(hours, dry_run=False, enforce_retention_duration=False)
        return len(gone)

    def _opened(self, version: int | None = None) -> Any:
        return self._delta.DeltaTable(self._uri, version=version, storage_options=self._options)

    def _is_new(self, app: str, version: int) -> bool:
        """Whether a transaction has not been made yet, as the table stands now."""
        self.look()
        known = self.transaction(app)
        return known is None or known < version

    def _change(self, actions: list[Any], **more: Any) -> None:
        self._table.create_write_transaction(
            actions, "append", self._delta.Schema.from_arrow(self.columns), **more
        )
        self._tell()

    def _tell(self) -> None:
        _written[self._root] = written_here(self._root) + 1

    def _action(self, file: Added, *, data_change: bool) -> Any:
        moment = int(time.time() * 1000)
        stats = json.dumps(file.stats)
        action = self._delta.transaction.AddAction
        return action(file.path, file.size, {}, moment, data_change, stats)

    def dataset(self) -> pads.Dataset:
        """Its data files as Arrow reads them; one that can't have what is asked is not opened.

        Arrow looks at the bounds of each file whenever something is asked. Of many files, those
        that are near to each other are in groups with bounds of their own, so that it looks at
        few of them.
        """
        rows = self._actions().to_pylist()
        # What a file holds never changes, and to say its bounds takes the longest.
        self._files = {row["path"]: self._files.get(row["path"]) or self._file(row) for row in rows}
        if len(rows) <= GROUPED:
            return self._group(rows, pads.scalar(True))
        key = f"min.{_NEAR.get(self.relation) or ('seq' if 'seq' in self.columns.names else SEQ)}"
        rows.sort(key=lambda row: -(2**63) if row.get(key) is None else row[key])
        many = math.isqrt(len(rows))
        groups = [rows[at : at + many] for at in range(0, len(rows), many)]
        parts = [self._group(group, _bounds(_around(group), self.columns)) for group in groups]
        return pads.UnionDataset(self.columns, parts)

    def _group(self, rows: Sequence[Mapping[str, Any]], bounds: pads.Expression) -> pads.Dataset:
        files = [self._files[row["path"]] for row in rows]
        form = pads.ParquetFileFormat()
        return pads.FileSystemDataset(files, self.columns, form, self._filesystem, bounds)

    def _file(self, row: Mapping[str, Any]) -> pads.Fragment:
        return pads.ParquetFileFormat().make_fragment(
            f"{self._folder}/{row['path']}",
            filesystem=self._filesystem,
            partition_expression=_bounds(row, self.columns),
        )

    def _actions(self) -> pa.Table:
        return pa.table(self._table.get_add_actions(flatten=True))

    def _properties(self, app: str, version: int) -> Any:
        return self._delta.CommitProperties(
            app_transactions=[self._delta.Transaction(app, version)]
        )


def _around(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The statistics of some files together: of a column that one of them lacks, none.

    >>> _around([{"min.a": 3, "max.a": 5, "min.b": 1}, {"min.a": 1, "max.a": 4, "min.b": None}])
    {'min.a': 1, 'max.a': 5}
    """
    found: dict[str, Any] = {}
    for name in rows[0]:
        ends = [end for row in rows if isinstance(end := row.get(name), int)]
        if len(ends) == len(rows) and name.startswith(("min.", "max.")):
            found[name] = min(ends) if name.startswith("min.") else max(ends)
    return found


def _bounds(row: Mapping[str, Any], columns: pa.Schema) -> pads.Expression:
    """What holds for every row of a file, by its statistics."""
    found = pads.scalar(True)
    for column in columns:
        low, high = row.get(f"min.{column.name}"), row.get(f"max.{column.name}")
        if isinstance(low, int) and isinstance(high, int) and pa.types.is_integer(column.type):
            here = pads.field(column.name)
            if low == high:
                found &= here == pa.scalar(low, column.type)
                continue
            found &= (here >= pa.scalar(low, column.type)) & (here <= pa.scalar(high, column.type))
    return found


def statistics(rows: pa.Table) -> dict[str, Any]:
    """What Delta notes of a file: how many rows, the least and largest of whole numbers."""
    low: dict[str, int] = {}
    high: dict[str, int] = {}
    nulls: dict[str, int] = {}
    for column in rows.schema:
        values = rows[column.name]
        if not pa.types.is_integer(column.type):
            continue
        nulls[column.name] = values.null_count
        if values.null_count == 0 and len(values):
            ends = pc.min_max(values).as_py()
            low[column.name], high[column.name] = ends["min"], ends["max"]
    return {
        "numRecords": rows.num_rows,
        "minValues": low,
        "maxValues": high,
        "nullCount": nulls,
    }
