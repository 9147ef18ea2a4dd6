"""Housekeeping between batches: edges sorted by record, results by id; idle records dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.store.batch import ID, SEQ, TIME

if TYPE_CHECKING:
    from datetime import datetime

    import duckdb

    from headwater.store.catalog import Source

LOOSE = 4
"""Runs of results that wait to be merged, at least."""
COMPACTED = "SELECT value::BIGINT FROM meta WHERE key = 'compacted'"


def compacted(connection: duckdb.DuckDBPyConnection) -> int:
    """The last batch (`seq`) whose edges are in the sorted runs."""
    rows = connection.execute(COMPACTED).fetchall()
    return int(rows[0][0])


def tail(connection: duckdb.DuckDBPyConnection) -> int:
    """How many edges are not in the sorted runs yet."""
    rows = connection.execute(
        f"SELECT coalesce(sum(edges), 0) FROM batches WHERE seq > ({COMPACTED})"
    ).fetchall()
    return int(rows[0][0])


def compact(connection: duckdb.DuckDBPyConnection, upto: int) -> None:
    """Add the edges of the batches up to `upto` that are not there yet as one sorted run."""
    after = compacted(connection)
    connection.execute(
        "INSERT INTO edges_by_record "
        "SELECT source_no, source_id, sink_no, result_id, seq FROM edges "
        f"WHERE seq > {after} AND seq <= {upto} ORDER BY source_no, source_id"
    )
    connection.execute(
        "INSERT INTO results_by_id SELECT DISTINCT sink_no, result_id, seq FROM edges "
        f"WHERE seq > {after} AND seq <= {upto} ORDER BY sink_no, result_id"
    )
    _merge(connection)
    connection.execute("UPDATE meta SET value = ? WHERE key = 'compacted'", [str(upto)])


def _merge(connection: duckdb.DuckDBPyConnection) -> None:
    """Make one run of the runs of results, once there are many: each costs every look-up a piece.

    The more runs there are in all, the more wait for the next time, so that the work stays in
    proportion to what came.
    """
    rows = connection.execute("SELECT value FROM meta WHERE key = 'runs'").fetchall()
    merged, loose = (int(part) for part in rows[0][0].split("+")) if rows else (0, 0)
    loose += 1
    if loose >= max(LOOSE, merged // LOOSE):
        connection.execute(
            "CREATE OR REPLACE TABLE results_by_id AS "
            "SELECT * FROM results_by_id ORDER BY sink_no, result_id"
        )
        merged, loose = merged + loose, 0
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('runs', ?)", [f"{merged}+{loose}"])


def prune(
    connection: duckdb.DuckDBPyConnection,
    source: Source,
    before: datetime,
    since: tuple[datetime, int] | None,
) -> int:
    """Delete records older than `before` without an edge; how many.

    `since` is the `before` and the last batch of the previous pruning: what it left has an edge, so
    only records that became old, or came, after it are looked at.
    """
    after = compacted(connection)
    params: list[object] = [before]
    fresh = ""
    if since is not None:
        fresh = f"AND (r.{TIME} >= ? OR r.{SEQ} > ?)"
        params += since
    rows = connection.execute(
        f"""
        DELETE FROM record_{source.no} WHERE {ID} IN (
            SELECT r.{ID} FROM record_{source.no} r
            WHERE r.{TIME} < ? {fresh}
            AND NOT EXISTS (SELECT 1 FROM edges_by_record e
                WHERE e.source_no = {source.no} AND e.source_id = r.{ID} AND e.seq <= {after})
            AND NOT EXISTS (SELECT 1 FROM edges e
                WHERE e.source_no = {source.no} AND e.source_id = r.{ID} AND e.seq > {after}))
        """,
        params,
    ).fetchall()
    return int(rows[0][0])
