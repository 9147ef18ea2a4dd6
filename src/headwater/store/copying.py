"""Copying a store into another: from a file to a lake, or back.

Everything keeps its number and the store its identity, so that a flow's checkpoint goes on with the
copy. The copy is a store only once all is in it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.errors import StoreError
from headwater.store.batch import SEQ
from headwater.store.catalog import Catalog
from headwater.store.copying_jobs import job_rows, require_settled
from headwater.store.embedded import EmbeddedWriter
from headwater.store.ingest import visible
from headwater.store.lake.place import Place, is_lake
from headwater.store.lake.tables import (
    CATALOG,
    CHANGED,
    ERASING,
    HAS_JOBS,
    JOBS,
    NUMBERS,
    PINS,
    Table,
    columns_of,
)
from headwater.store.marks import numbers_used
from headwater.store.reader import StoreReader
from headwater.store.registration import tables_of
from headwater.store.runs import SORTED
from headwater.store.schema import quoted

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping

    import duckdb

    from headwater.store.reader import OpenReader

    Progress = Callable[[str, int, int], None]

AT_ONCE = 500_000
"""Rows that are held in memory at a time, about."""
_WHOLE = ("files", "arrivals")
_BY_BATCH = ("edges", "spans", "vertices", "labels")


def copy(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    progress: Progress = lambda doing, done, total: None,
) -> int:
    """Copy a store; how many edges it has."""
    from headwater.store import open_reader

    reader = open_reader(source)
    try:
        _require_ended(reader)
        require_settled(reader)
        if is_lake(target):
            return _to_lake(reader, Place.of(target), progress)
        return _to_file(reader, target, progress)
    finally:
        reader.close()


def _require_ended(reader: OpenReader) -> None:
    """Refuse a live graph that goes on: what waits in it is beside the store, not in it."""
    for row in reader.query("SELECT flow, definition, finished FROM flows").to_pylist():
        if not row["finished"] and json.loads(row["definition"]).get("live"):
            raise StoreError(
                f"flow {row['flow']!r} keeps a live graph, which a copy can't go on with; end it "
                "with run.finish() and copy then"
            )


def _to_lake(reader: OpenReader, place: Place, progress: Progress) -> int:
    from headwater.store.lake.owning import holding, make_tables
    from headwater.store.lake.tasks import written

    if Table(place, "meta", columns_of("meta")).exists:
        raise StoreError(f"there is a store at {place} already; give a place without one")
    catalog, edges = Catalog.read(reader.query), 0
    with holding(place):
        make_tables(place)
        _require_empty(place)
        for relation, columns, rows in _pieces(reader, catalog, progress):
            table = Table(place, relation, columns)
            table.make()
            table.look()
            table.put([written(place, relation, rows.select(columns.names).cast(columns))])
            edges += rows.num_rows if relation == "edges" else 0
        has_jobs = _jobs_to_lake(reader, place)
        pins = {}
        for relation in (*CATALOG[1:], "batches", *CHANGED):
            table = Table(place, relation, columns_of(relation))
            table.replace(reader.query(f"SELECT * FROM {relation}"))
            if relation in CHANGED:
                pins[relation] = table.look()
        facts = {PINS: json.dumps(pins), NUMBERS: str(numbers_used(reader.query))}
        facts |= {HAS_JOBS: "1"} if has_jobs else {}
        meta = _uncompacted(reader.query("SELECT * FROM meta"), facts)
        Table(place, "meta", columns_of("meta")).replace(meta)
    return edges


def _jobs_to_lake(reader: OpenReader, place: Place) -> bool:
    """Copy foreign jobs, as of no batch; whether there are any."""
    from headwater.store.lake.tasks import written

    if not reader.query("SELECT 1 AS one FROM jobs LIMIT 1").num_rows:
        return False
    tables = {name: Table(place, name, columns_of(name)) for name in JOBS}
    for table in tables.values():
        table.make()
        table.look()
    for relation, rows in job_rows(reader, AT_ONCE, to_lake=True):
        columns = columns_of(relation)
        placed = rows.append_column("seq", pa.array([0] * rows.num_rows, pa.int64()))
        if rows.num_rows:
            placed = placed.select(columns.names).cast(columns)
            tables[relation].put([written(place, relation, placed)])
    return True


def _require_empty(place: Place) -> None:
    """Refuse what a copy left that did not come to its end: it would be there twice."""
    for relation in ("edges", "spans", "files", "arrivals", "batches", *JOBS):
        table = Table(place, relation, columns_of(relation))
        if relation in JOBS and not table.exists:
            continue
        table.look()
        if table.files():
            raise StoreError(
                f"{place} has what an earlier copy left half way; delete it, and copy again"
            )


def _to_file(reader: OpenReader, target: str | os.PathLike[str], progress: Progress) -> int:
    try:
        StoreReader(target).close()
    except StoreError:
        pass
    else:
        raise StoreError(f"there is a store at {target} already; give a place without one")
    catalog, edges, numbers = Catalog.read(reader.query), 0, numbers_used(reader.query)
    with EmbeddedWriter.open(target) as writer:
        with writer.transaction("copying a store") as connection:
            for relation in (*CATALOG, "batches", *CHANGED):
                of_flows = "query_id NOT IN (SELECT query_id FROM jobs)"
                rows = reader.query(
                    f"SELECT * FROM {relation} WHERE {of_flows if relation == 'batches' else True}"
                )
                if relation == "meta":
                    rows = _uncompacted(rows, {NUMBERS: str(numbers)})
                connection.execute(f"DELETE FROM {relation}")
                _insert(connection, relation, rows)
            connection.execute(f"CREATE OR REPLACE SEQUENCE mark_numbers START {numbers + 1}")
            tables_of(connection, catalog)
            for relation, _, rows in _pieces(reader, catalog, progress):
                _insert(connection, relation, rows)
                edges += rows.num_rows if relation == "edges" else 0
            for relation, rows in job_rows(reader, AT_ONCE, to_lake=False):
                _insert(connection, relation, rows)
        writer.refresh()
        writer.compact()
    return edges


def _insert(connection: duckdb.DuckDBPyConnection, relation: str, rows: pa.Table) -> None:
    with visible(connection, hw_rows=rows):
        names = ", ".join(quoted(name) for name in rows.column_names)
        connection.execute(f"INSERT INTO {relation} ({names}) SELECT {names} FROM hw_rows")


def _uncompacted(meta: pa.Table, facts: Mapping[str, str] = {}) -> pa.Table:
    """What is known of the store, but for how its relations lie there."""
    own = ("compacted", "runs", PINS, ERASING, NUMBERS, HAS_JOBS)
    rows = [
        row
        for row in meta.to_pylist()
        if row["key"] not in own and not row["key"].startswith(SORTED)
    ]
    told = {"compacted": "0", **facts}
    rows += [{"key": key, "value": value} for key, value in told.items()]
    return pa.Table.from_pylist(rows, schema=meta.schema)


def _pieces(
    reader: OpenReader, catalog: Catalog, progress: Progress
) -> Iterator[tuple[str, pa.Schema, pa.Table]]:
    """The rows of the growing relations, some batches at a time."""
    for relation in _WHOLE:
        rows = reader.query(f"SELECT * FROM {relation}")
        if rows.num_rows:
            yield relation, columns_of(relation), rows
    spans = list(_spans(reader))
    own = {f"result_{sink.no}": sink.schema for sink in catalog.sinks}
    own |= {f"record_{source.no}": source.schema for source in catalog.sources if source.kept}
    for done, (low, high) in enumerate(spans):
        progress("copying batches", done, len(spans))
        for relation in (*_BY_BATCH, *own):
            seq = SEQ if relation in own else "seq"
            rows = reader.query(
                f"SELECT * FROM {relation} WHERE {seq} BETWEEN ? AND ?", [low, high]
            )
            if rows.num_rows:
                yield relation, columns_of(relation, own.get(relation)), rows


def _spans(reader: OpenReader) -> Iterator[tuple[int, int]]:
    """Consecutive batches that have about as many rows as are held at a time."""
    rows = reader.query(
        "SELECT seq, greatest(edges, results, records) AS n FROM batches ORDER BY seq"
    ).to_pylist()
    start, held = None, 0
    for row in rows:
        start = row["seq"] if start is None else start
        held += row["n"]
        if held >= AT_ONCE:
            yield start, row["seq"]
            start, held = None, 0
    if start is not None:
        yield start, rows[-1]["seq"]
