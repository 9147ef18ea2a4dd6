"""Completing a job: everything is past, so what its outputs depend on is known for good."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from headwater.errors import StoreError
from headwater.store import runs
from headwater.store.jobs import loops, restoring, settling
from headwater.store.jobs.diagnosing import diagnosed
from headwater.store.jobs.register import FINISHED

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from headwater.store.jobs.given import JobSettings
    from headwater.store.jobs.tables import Tables

TEMPORARY = (*restoring.TEMPORARY, *settling.TEMPORARY, *loops.TEMPORARY, "hw_named")


def complete(connection: duckdb.DuckDBPyConnection, tables: Tables) -> list[tuple[str, ...]]:
    """Find the dependencies and the entities, in temporary tables; the job's cycles."""
    edges = restoring.restored(connection, tables)
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE hw_edges AS "
        f"SELECT s, d, bit_or(f) AS f FROM {edges} GROUP BY s, d"
    )
    drop(connection, restoring.TEMPORARY)
    settled = settling.settle(connection, tables.no, tables.kept, everything=True)
    if not settled.cyclic:
        return []
    everything = f"(SELECT source AS s, destination AS d FROM {tables.edges})"
    return loops.cycles(connection, everything, tables.name)


def write(
    connection: duckdb.DuckDBPyConnection,
    tables: Tables,
    settings: JobSettings,
    functions: Sequence[str],
) -> None:
    """Write what `complete` found, and let go of the job's own tables unless all is kept."""
    if settings.strategy == "window":
        _forget_nameless(connection, tables)
    written = write_settled(connection, tables)
    # A job of the strategy `watermark` has written some before, and counted neither.
    counted = (
        "SELECT count(DISTINCT input), count(DISTINCT output) FROM "
        "(SELECT job_no, input, output FROM dependencies UNION ALL "
        f"SELECT job_no, input, output FROM fresh_dependencies) WHERE job_no = {tables.no}"
        if settings.strategy == "watermark"
        else "SELECT count(*) FILTER (is_input), count(*) FILTER (is_output) FROM hw_known"
    )
    [(inputs, outputs)] = connection.execute(counted).fetchall()
    diagnosis = diagnosed(lambda sql: connection.sql(sql).to_arrow_table(), tables, functions)
    connection.execute(
        "UPDATE jobs SET state = ?, dependencies = dependencies + ?, inputs = ?, outputs = ?, "
        "diagnosis = ?, finished_at = now() WHERE job_no = ?",
        [FINISHED, written, inputs, outputs, json.dumps(diagnosis), tables.no],
    )
    if settings.keep != "full":
        tables.drop(connection)


def write_settled(connection: duckdb.DuckDBPyConnection, tables: Tables) -> int:
    """Write the dependencies that were settled and name their entities; how many they are."""
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE hw_named AS SELECT k.id, n.name "
        f"FROM hw_known k LEFT JOIN {tables.name} n ON k.id = n.id"
    )
    [(nameless,)] = connection.execute("SELECT min(id) FROM hw_named WHERE name IS NULL").fetchall()
    if nameless is not None:
        raise StoreError(f"no name was given for the entity {nameless}; run the job anew")
    runs.add_entities(connection, "hw_named")
    return runs.add_dependencies(connection, "hw_written")


def _forget_nameless(connection: duckdb.DuckDBPyConnection, tables: Tables) -> None:
    """Leave out eliminated vertices that look like ends, as a window has let go of their edges."""
    named = f"(SELECT id FROM {tables.name})"
    connection.execute(f"DELETE FROM hw_known WHERE id NOT IN {named}")
    connection.execute(
        f"DELETE FROM hw_written WHERE output NOT IN {named} OR input NOT IN {named}"
    )


def drop(connection: duckdb.DuckDBPyConnection, tables: tuple[str, ...]) -> None:
    """Drop temporary tables that may be there."""
    for table in tables:
        connection.execute(f"DROP TABLE IF EXISTS temp.{table}")
