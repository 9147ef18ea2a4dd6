"""The strategy `watermark`: what a batch makes past is settled at once, so that little is held."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.store.ingest import visible
from headwater.store.jobs import settling
from headwater.times import NO_TIME

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from headwater.store.jobs.settling import Settled
    from headwater.store.jobs.tables import Tables

TEMPORARY = (*settling.TEMPORARY, "hw_last", "hw_alive")


def advance(
    connection: duckdb.DuckDBPyConnection,
    tables: Tables,
    new: pa.Table,
    kept: pa.Table,
    watermark: int | None,
    lifetime: int,
) -> Settled | None:
    """Settle what is past at a watermark (µs) with the edges of a batch; None without one.

    The tables are only read: what they become is in temporary tables, see `write`.
    """
    columns = "source, destination, time, functions"
    with visible(connection, hw_new=new, hw_marked=kept):
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE hw_edges AS SELECT source AS s, destination AS d, "
            f"bit_or(functions) AS f FROM (SELECT {columns} FROM {tables.hot} UNION ALL "
            f"SELECT {columns} FROM hw_new) GROUP BY s, d"
        )
        # A time that was not told is that of the batch: else the vertex would stay for good.
        told = f"nullif(time, ({NO_TIME}))"
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE hw_last AS SELECT id, "
            f"coalesce(max(time), {'NULL' if watermark is None else watermark}) AS last FROM ("
            f"SELECT id, last AS time FROM {tables.last} UNION ALL "
            f"SELECT source, {told} FROM hw_new UNION ALL "
            f"SELECT destination, {told} FROM hw_new) GROUP BY id"
        )
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE hw_alive AS "
            f"SELECT id FROM {tables.kept} UNION SELECT id FROM hw_marked"
        )
    if watermark is None:
        connection.execute("CREATE OR REPLACE TEMP TABLE hw_left AS SELECT s, d, f FROM hw_edges")
        return None
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE hw_past AS "
        f"SELECT id FROM hw_last WHERE last + {lifetime} < {watermark}"
    )
    return settling.settle(connection, tables.no, "hw_alive", everything=False)


def write(connection: duckdb.DuckDBPyConnection, tables: Tables) -> None:
    """Write what is left of a job's tables; names must have been added before."""
    connection.execute(
        f"CREATE OR REPLACE TABLE {tables.hot} AS SELECT s AS source, d AS destination, "
        f"({NO_TIME})::BIGINT AS time, f AS functions, true AS derived FROM hw_left"
    )
    alive = f"(SELECT source FROM {tables.hot} UNION SELECT destination FROM {tables.hot})"
    for table, found in (
        (tables.last, "hw_last"),
        (tables.kept, "hw_alive"),
        (tables.name, tables.name),
    ):
        connection.execute(f"CREATE TABLE hw_rest AS SELECT * FROM {found} WHERE id IN {alive}")
        connection.execute(f"DROP TABLE {table}")
        connection.execute(f"ALTER TABLE hw_rest RENAME TO {table}")
