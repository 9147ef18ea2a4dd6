"""Writing the parts of one batch inside its transaction: results, edges, records, files."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa

from headwater.errors import IdCollision, StoreError
from headwater.store.batch import BASE, CONTENT, ID, SEQ, TIME, ResultSet, Vertices
from headwater.store.occurrences import Ids, has_repeats, numbered
from headwater.store.schema import quoted
from headwater.store.sets import pairs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from headwater.store.catalog import Sink, Source

Connection = duckdb.DuckDBPyConnection


@contextmanager
def visible(connection: Connection, **tables: pa.Table) -> Iterator[None]:
    """Arrow tables as views of the connection, under the given names."""
    for name, table in tables.items():
        connection.register(name, table)
    try:
        yield
    finally:
        for name in tables:
            connection.unregister(name)


def result_ids(
    connection: Connection, sink: Sink, part: ResultSet, before: int
) -> tuple[Ids, Ids | None]:
    """The final ids of a sink's rows and their occurrence numbers, given results before a seq."""
    ids = _ids(part.rows, f"a result of sink {sink.name!r}")
    if part.unique:
        return ids, None
    table = f"(SELECT {ID}, {BASE} FROM result_{sink.no} WHERE {SEQ} < {before})"

    def stored(asked: Ids) -> tuple[Ids, Ids]:
        with visible(connection, hw_asked=pa.table({"id": asked})):
            known = connection.sql(
                f"SELECT {ID} AS id FROM {table} WHERE {ID} IN (SELECT id FROM hw_asked)"
            ).to_arrow_table()
        if not known.num_rows:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        with visible(connection, hw_known=known):
            counts = connection.sql(
                f"SELECT k.id, count(r.{ID}) AS n FROM hw_known k "
                f"LEFT JOIN {table} r ON coalesce(r.{BASE}, r.{ID}) = k.id GROUP BY k.id"
            ).to_arrow_table()
        ids, n = counts["id"].to_numpy(), counts["n"].to_numpy()
        if not n.all():
            # The id is taken by a renumbered result of another id.
            raise _taken(sink)
        return ids, n

    final, n = numbered(ids, stored)
    again = n > 1
    if again.any() and (has_repeats(final) or len(stored(final[again])[0])):
        raise _taken(sink)
    return final, n


def insert_results(connection: Connection, sink: Sink, part: ResultSet, seq: int) -> Ids:
    """Write a sink's results; their final ids."""
    columns = part.rows.column_names
    _check_columns(f"sink {sink.name!r}", columns, (ID, TIME), sink.schema.names)
    given = part.rows[ID]
    final, n = result_ids(connection, sink, part, seq)
    base = None if n is None else pa.array(given.to_numpy(), mask=n == 1)
    rows = part.rows.set_column(columns.index(ID), ID, pa.array(final))
    rows = rows.append_column(BASE, pa.nulls(len(final), pa.int64()) if base is None else base)
    with visible(connection, hw_rows=rows):
        names = ", ".join(quoted(name) for name in rows.column_names)
        connection.execute(
            f"INSERT INTO result_{sink.no} ({names}, {SEQ}) SELECT {names}, {seq} FROM hw_rows"
        )
    return final


def insert_edges(
    connection: Connection, sink: Sink, source: Source, ids: Ids, origins: pa.ChunkedArray, seq: int
) -> Ids:
    """Write the edges from a sink's results to the records of one source; the record of each."""
    if len(origins) != len(ids):
        raise StoreError(
            f"sink {sink.name!r} has {len(ids)} results but {len(origins)} provenance sets of "
            f"source {source.name!r}; nothing of this batch was written"
        )
    results, records = pairs(ids, origins)
    insert_pairs(connection, sink, source, results, records, seq)
    return records


def insert_pairs(
    connection: Connection, sink: Sink, source: Source, results: Ids, records: Ids, seq: int
) -> None:
    """Write edges, each from a result to a record of one source."""
    if not len(results):
        return
    with visible(connection, hw_edges=pa.table({"result_id": results, "source_id": records})):
        connection.execute(
            f"INSERT INTO edges SELECT {seq}, {sink.no}, result_id, {source.no}, source_id "
            "FROM hw_edges"
        )


def insert_vertices(connection: Connection, source: Source, new: Vertices, seq: int) -> None:
    """Write the records that are new in the graph."""
    times = pa.array(new.times, mask=new.times == np.iinfo(np.int64).min)
    rows = pa.table({"id": new.ids, "event_time": times.cast(pa.timestamp("us", "UTC"))})
    with visible(connection, hw_vertices=rows):
        connection.execute(
            f"INSERT INTO vertices SELECT {seq}, {source.no}, id, event_time FROM hw_vertices"
        )


def insert_labels(connection: Connection, source: Source, ids: Ids, seq: int) -> None:
    """Write which records can reach no more."""
    with visible(connection, hw_labels=pa.table({"id": ids})):
        connection.execute(f"INSERT INTO labels SELECT {seq}, {source.no}, id FROM hw_labels")


def known_vertices(connection: Connection, source: Source, ids: Ids) -> Ids:
    """Of some ids, those of records that are in the graph."""
    with visible(connection, hw_asked=pa.table({"id": ids})):
        rows = connection.execute(
            f"SELECT id FROM vertices WHERE source_no = {source.no} "
            "AND id IN (SELECT id FROM hw_asked)"
        ).fetchnumpy()
    return np.asarray(rows["id"], np.int64)


def insert_spans(
    connection: Connection,
    sink: Sink,
    source: Source,
    ids: Ids,
    ends: tuple[pa.ChunkedArray, pa.ChunkedArray],
    seq: int,
) -> None:
    """Write the intervals of a sink's results in one source; a result with no record has none."""
    spans = pa.table({"result_id": ids, "low": ends[0], "high": ends[1]})
    with visible(connection, hw_spans=spans):
        connection.execute(
            f"INSERT INTO spans SELECT {seq}, {sink.no}, result_id, {source.no}, low, high "
            "FROM hw_spans WHERE low IS NOT NULL ORDER BY result_id"
        )


def insert_arrivals(
    connection: Connection, source: Source, files: Sequence[tuple[str, int]], seq: int
) -> None:
    """Write which files a batch read."""
    connection.executemany(
        f"INSERT INTO arrivals VALUES ({source.no}, {seq}, ?, ?)", [list(file) for file in files]
    )


def insert_records(connection: Connection, source: Source, rows: pa.Table, seq: int) -> int:
    """Write the records that are not stored yet, and were not erased; how many."""
    _check_columns(
        f"source {source.name!r}", rows.column_names, (ID, TIME, CONTENT), source.schema.names
    )
    rows = _not_erased(connection, source, _distinct(source, rows))
    asked = rows.select([ID, CONTENT]).append_column("at", pa.array(np.arange(rows.num_rows)))
    with visible(connection, hw_asked=asked):
        held = connection.sql(
            f"SELECT a.{ID} AS id, a.at AS at, a.{CONTENT} IS DISTINCT FROM r.{CONTENT} AS other "
            f"FROM hw_asked a JOIN record_{source.no} r USING ({ID})"
        ).to_arrow_table()
    if held.num_rows:
        other = held["other"].to_numpy()
        if other.any():
            raise collision(source, held["id"].to_numpy()[other][0])
        new = np.ones(rows.num_rows, bool)
        new[held["at"].to_numpy()] = False
        rows = rows.filter(pa.array(new))
    if rows.num_rows:
        with visible(connection, hw_rows=rows):
            names = ", ".join(quoted(name) for name in rows.column_names)
            connection.execute(
                f"INSERT INTO record_{source.no} ({names}, {SEQ}) SELECT {names}, {seq} "
                "FROM hw_rows"
            )
    return int(rows.num_rows)


def insert_files(connection: Connection, source: Source, files: Mapping[int, str]) -> None:
    """Write the numbers of files that are new."""
    table = pa.table({"file_key": pa.array(files, pa.int64()), "path": list(files.values())})
    with visible(connection, hw_files=table):
        connection.execute(
            f"INSERT INTO files SELECT {source.no}, file_key, path FROM hw_files "
            "ON CONFLICT DO NOTHING"
        )
        other = connection.execute(
            "SELECT f.file_key, f.path FROM files f JOIN hw_files n USING (file_key) "
            f"WHERE f.source_no = {source.no} AND f.path <> n.path"
        ).fetchall()
    for key, path in other:
        raise IdCollision(
            f"file number {key} of source {source.name!r} is already that of {path}; "
            "nothing of this batch was written"
        )


def collision(source: Source, id: int) -> IdCollision:
    """Two different records under one id: what to do about it."""
    columns = ", ".join(source.id.get("columns") or ()) or "its content"
    return IdCollision(
        f"two different records of source {source.name!r} have the id {id} (made from {columns}); "
        "give id= the columns that identify a record"
    )


def _taken(sink: Sink) -> IdCollision:
    return IdCollision(
        f"two different results of sink {sink.name!r} have the same id after renumbering "
        "repeated ids; nothing of this batch was written"
    )


def _distinct(source: Source, rows: pa.Table) -> pa.Table:
    ids = _ids(rows, f"a record of source {source.name!r}")
    if not has_repeats(ids):
        return rows
    order = np.argsort(ids, kind="stable")
    content = rows[CONTENT].to_numpy()
    same = ids[order[1:]] == ids[order[:-1]]
    other = same & (content[order[1:]] != content[order[:-1]])
    if other.any():
        raise collision(source, int(ids[order[1:]][other][0]))
    keep = np.ones(len(ids), bool)
    keep[order[1:][same]] = False
    return rows.filter(pa.array(keep))


def _not_erased(connection: Connection, source: Source, rows: pa.Table) -> pa.Table:
    """Only the rows whose contents may be stored."""
    with visible(connection, hw_asked=rows.select([ID])):
        erased = connection.execute(
            f"SELECT id FROM erased WHERE source_no = {source.no} "
            f"AND id IN (SELECT {ID} FROM hw_asked)"
        ).fetchnumpy()["id"]
    if not len(erased):
        return rows
    return rows.filter(pa.array(~np.isin(rows[ID].to_numpy(), erased)))


def _ids(rows: pa.Table, what: str) -> Ids:
    column = rows[ID]
    if column.null_count:
        raise StoreError(f"{what} has no id (null); give id= columns that are never null")
    ids: Ids = column.cast(pa.int64()).to_numpy()
    return ids


def _check_columns(
    what: str, given: Sequence[str], fixed: Sequence[str], own: Sequence[str]
) -> None:
    expected = {*fixed, *own}
    if set(given) != expected or len(given) != len(expected):
        raise StoreError(
            f"the rows of {what} have the columns {', '.join(given)}; "
            f"registered are {', '.join((*fixed, *own))}"
        )
