"""Marks on records, and erasures of their contents: what the transaction of each writes.

A change is made ready by whoever asks for it: the user's predicate runs there, in a read-only
transaction, and what reaches the owner are ids. So no SQL of a user's is run where it could write.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.errors import StoreError
from headwater.store.batch import ID
from headwater.store.catalog import unknown_name
from headwater.store.compaction import compacted
from headwater.store.ingest import visible
from headwater.store.schema import quoted

if TYPE_CHECKING:
    import duckdb

    from headwater.store.catalog import Source

Ids = npt.NDArray[np.int64]
Query = Callable[..., pa.Table]

LATE = pa.schema([("mark_no", pa.int32()), ("id", pa.int64())])
EDGES = pa.schema(
    [
        ("seq", pa.int64()),
        ("sink_no", pa.int16()),
        ("result_id", pa.int64()),
        ("source_no", pa.int16()),
        ("source_id", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Mark:
    """Marks records of a source; with a predicate also those that come after the batch `seq`."""

    doing: ClassVar[str] = "marking records"
    erases: ClassVar[bool] = False

    source_no: int
    ids: Ids
    reason: str
    predicate: str | None
    seq: int

    def write(self, connection: duckdb.DuckDBPyConnection) -> int:
        """Write the mark; its number."""
        _source_name(connection, self.source_no)
        rows = connection.execute(
            "INSERT INTO marks SELECT nextval('mark_numbers'), ?, ?, ?, ?, now() RETURNING mark_no",
            [self.source_no, self.reason, self.predicate, self.seq],
        ).fetchall()
        number = int(rows[0][0])
        with visible(connection, hw_ids=pa.table({"id": np.unique(self.ids)})):
            connection.execute(f"INSERT INTO marked SELECT {number}, id FROM hw_ids")
        return number


@dataclass(frozen=True, slots=True)
class Unmark:
    """Takes a mark away."""

    doing: ClassVar[str] = "removing a mark"
    erases: ClassVar[bool] = False

    number: int

    def write(self, connection: duckdb.DuckDBPyConnection) -> int:
        """Delete the mark; how many stored ids it had."""
        known = connection.execute("SELECT mark_no FROM marks").fetchall()
        if (self.number,) not in known:
            raise unknown_name("mark", self.number, [str(no) for (no,) in known])
        rows = connection.execute("DELETE FROM marked WHERE mark_no = ?", [self.number]).fetchall()
        connection.execute("DELETE FROM marks WHERE mark_no = ?", [self.number])
        return int(rows[0][0])


@dataclass(frozen=True, slots=True)
class Erase:
    """Erases the contents of records of a source, and keeps what the graph knows of them.

    `marks` are the source's marks when this was made ready, `late` the ids that they hold by their
    predicates alone; `edges` are those of results whose sets could not be found again afterwards.
    Results up to the batch `seq` were looked at.
    """

    doing: ClassVar[str] = "erasing records"
    erases: ClassVar[bool] = True

    source_no: int
    ids: Ids
    reason: str
    seq: int
    marks: tuple[int, ...] = ()
    late: pa.Table = field(default_factory=LATE.empty_table)
    edges: pa.Table = field(default_factory=EDGES.empty_table)

    def write(self, connection: duckdb.DuckDBPyConnection) -> int:
        """Write the erasure; how many copies of records it removed."""
        name = _source_name(connection, self.source_no)
        rows = connection.execute(
            "SELECT mark_no FROM marks WHERE source_no = ? ORDER BY 1", [self.source_no]
        ).fetchall()
        if tuple(no for (no,) in rows) != self.marks:
            raise StoreError(
                f"the marks of source {name!r} changed meanwhile; nothing was erased: ask again"
            )
        with visible(connection, hw_late=self.late):
            connection.execute(
                "INSERT INTO marked SELECT l.mark_no, l.id FROM hw_late l WHERE NOT EXISTS "
                "(SELECT 1 FROM marked m WHERE m.mark_no = l.mark_no AND m.id = l.id)"
            )
        self._write_edges(connection)
        with visible(connection, hw_ids=pa.table({"id": np.unique(self.ids)})):
            connection.execute(
                "INSERT INTO erased SELECT ?, id, ?, now(), ? FROM hw_ids ON CONFLICT DO NOTHING",
                [self.source_no, self.reason, self.seq],
            )
            return _remove_copies(connection, f"record_{self.source_no}")

    def _write_edges(self, connection: duckdb.DuckDBPyConnection) -> None:
        if not self.edges.num_rows:
            return
        upto = compacted(connection)
        with visible(connection, hw_given=self.edges):
            connection.execute(
                "CREATE OR REPLACE TEMP TABLE hw_found AS SELECT g.* FROM hw_given g "
                "WHERE NOT EXISTS (SELECT 1 FROM edges e "
                "WHERE e.seq = g.seq AND e.sink_no = g.sink_no AND e.result_id = g.result_id)"
            )
        connection.execute("INSERT INTO edges SELECT * FROM hw_found ORDER BY ALL")
        connection.execute(
            "INSERT INTO edges_by_record SELECT source_no, source_id, sink_no, result_id, seq "
            f"FROM hw_found WHERE seq <= {upto} ORDER BY source_no, source_id"
        )
        connection.execute(
            "UPDATE batches SET edges = edges + (SELECT count(*) FROM hw_found f "
            "WHERE f.seq = batches.seq) WHERE seq IN (SELECT seq FROM hw_found)"
        )
        connection.execute("DROP TABLE hw_found")


Change: TypeAlias = Mark | Unmark | Erase


def erased_among(query: Query, source: Source, ids: Ids) -> Ids:
    """Those of some ids whose contents were erased."""
    rows = query(
        f"SELECT id FROM erased WHERE source_no = {source.no} "
        "AND id IN (SELECT unnest(?::BIGINT[]))",
        [ids.tolist()],
    )
    found: Ids = rows["id"].to_numpy()
    return found


def numbers_used(query: Query) -> int:
    """The last number that a mark got; it is not used again, also when the mark is gone."""
    rows = query(
        "SELECT greatest((SELECT max(mark_no) FROM marks), (SELECT max(last_value) FROM "
        "duckdb_sequences() WHERE sequence_name = 'mark_numbers'), (SELECT max(value::BIGINT) "
        "FROM meta WHERE key = 'mark_numbers'), 0) AS n"
    )
    return int(rows["n"][0].as_py())


def packed(change: Change) -> bytes:
    """A change as bytes, to be sent to the owner of a store."""
    facts: dict[str, object] = {"change": type(change).__name__}
    lists = {}
    for part in fields(change):
        value = getattr(change, part.name)
        if isinstance(value, np.ndarray):
            lists[part.name] = _in_one(pa.array(value, pa.int64()))
        elif isinstance(value, pa.Table):
            columns = [column.combine_chunks() for column in value.columns]
            lists[part.name] = _in_one(pa.StructArray.from_arrays(columns, fields=value.schema))
        else:
            facts[part.name] = value
    row = pa.table(lists).replace_schema_metadata({"facts": json.dumps(facts)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, row.schema) as stream:
        stream.write_table(row)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def unpacked(data: bytes) -> Change:
    """The change that was packed."""
    row = pa.ipc.open_stream(data).read_all()
    facts: dict[str, Any] = json.loads(row.schema.metadata[b"facts"])
    kind = {"Mark": Mark, "Unmark": Unmark, "Erase": Erase}[facts.pop("change")]
    if "marks" in facts:
        facts["marks"] = tuple(facts["marks"])
    for name in row.column_names:
        values = row[name].combine_chunks().flatten()
        is_table = pa.types.is_struct(values.type)
        facts[name] = pa.Table.from_struct_array(values) if is_table else values.to_numpy()
    change: Change = kind(**facts)
    return change


def _in_one(values: pa.Array) -> pa.ListArray:
    """Values as one list, so that lists of any lengths stand in one row."""
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


def _source_name(connection: duckdb.DuckDBPyConnection, source_no: int) -> str:
    rows = connection.execute(
        "SELECT name FROM sources WHERE source_no = ?", [source_no]
    ).fetchall()
    if not rows:
        raise StoreError(f"the store has no source number {source_no}; nothing was written")
    return str(rows[0][0])


def _remove_copies(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    """Delete the rows of the ids in `hw_ids` from a table of records, if there is one; how many."""
    columns = connection.execute(
        "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ?", [table]
    ).fetchall()
    if not columns:
        return 0
    copies = f"FROM {table} WHERE {ID} IN (SELECT id FROM hw_ids)"
    count = int(connection.execute(f"SELECT count(*) {copies}").fetchall()[0][0])
    # A deletion alone would leave the values where they are, marked as deleted, for as long as
    # other rows of their group live. What is updated is written anew at the next checkpoint; but
    # an update of a list is a deletion, too, and an insertion.
    if not count:
        return 0
    if any("[" in kind or "MAP(" in kind for _, kind in columns):
        connection.execute(
            f"CREATE TABLE hw_rest AS FROM {table} WHERE {ID} NOT IN (SELECT id FROM hw_ids)"
        )
        connection.execute(f"DROP TABLE {table}")
        connection.execute(f"ALTER TABLE hw_rest RENAME TO {table}")
    else:
        nulls = ", ".join(f"{quoted(name)} = NULL" for name, _ in columns)
        connection.execute(f"UPDATE {table} SET {nulls} WHERE {ID} IN (SELECT id FROM hw_ids)")
        connection.execute(f"DELETE FROM {table} WHERE {ID} IS NULL")
    return count
