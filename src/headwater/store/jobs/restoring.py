"""Restoring: what must come back from the residue before a job can be completed.

A vertex was eliminated with the edges that its contraction knew. If all of its edges were among
them, what it joined is in the hot edges already. It was not so if

- the vertex is an end of a hot edge: that edge came by another way;
- two contractions eliminated it, each with edges of its own;
- it was told to be an output, but the contraction did not know.

From such a vertex on, the edges of eliminated vertices come back: towards causes, as what came late
leads there now, and towards effects, as these now lead to what came late. An edge that came late
brings back causes from its destination only, and effects from its source only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from headwater.store.jobs.tables import Tables

TEMPORARY = ("hw_gone", "hw_hot", "hw_late", "hw_seed", "hw_down", "hw_up")


def restored(connection: duckdb.DuckDBPyConnection, tables: Tables) -> str:
    """The edges to complete a job from, as a relation: `s`, `d`, `f`, some more than once."""
    residue = tables.residue
    _find_late(connection, tables)
    _find_seeds(connection, tables)
    for table, near, far in (
        ("hw_down", "source", "destination"),
        ("hw_up", "destination", "source"),
    ):
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE {table} AS WITH RECURSIVE reached(v) AS ("
            f"SELECT v FROM hw_seed WHERE {table[3:]} UNION SELECT r.{far} FROM reached "
            f"JOIN (SELECT {near}, {far} FROM {residue} WHERE vertex = {near}) r "
            f"ON r.{near} = reached.v) SELECT v FROM reached"
        )
    return (
        "(SELECT s, d, f FROM hw_hot WHERE NOT touches UNION ALL SELECT s, d, f FROM hw_late "
        f"UNION ALL SELECT source, destination, functions FROM {residue} "
        "WHERE (vertex = source AND source IN (SELECT v FROM hw_down)) "
        "OR (vertex = destination AND destination IN (SELECT v FROM hw_up)))"
    )


def _find_late(connection: duckdb.DuckDBPyConnection, tables: Tables) -> None:
    """The hot edges in `hw_hot`; in `hw_late` those of eliminated vertices that are news.

    An edge that a contraction has seen is no news, however often it is told again.
    """
    residue = tables.residue
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE hw_gone AS SELECT vertex AS v, "
        f"min(event) <> max(event) AS twice FROM {residue} GROUP BY vertex"
    )
    gone = "(SELECT v FROM hw_gone)"
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE hw_hot AS SELECT s, d, f, s IN {gone} OR d IN {gone} AS "
        "touches FROM (SELECT source AS s, destination AS d, functions AS f "
        f"FROM {tables.hot} UNION ALL SELECT source, destination, functions FROM {tables.pending})"
    )
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE hw_late AS SELECT DISTINCT s, d, f FROM hw_hot h "
        f"WHERE touches AND NOT EXISTS (SELECT 1 FROM {residue} r "
        "WHERE r.source = h.s AND r.destination = h.d AND r.functions = h.f)"
    )


def _find_seeds(connection: duckdb.DuckDBPyConnection, tables: Tables) -> None:
    """Where to start: `hw_seed` with the vertex, and whether to go `down` to causes and `up`."""
    residue = tables.residue
    # Nor is a vertex that was eliminated twice with the very same edges.
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE hw_seed AS
        SELECT v, bool_or(down) AS down, bool_or(up) AS up FROM (
            SELECT d AS v, true AS down, false AS up FROM hw_late UNION ALL
            SELECT s, false, true FROM hw_late UNION ALL
            SELECT id, true, true FROM {tables.kept} UNION ALL
            SELECT vertex, true, true FROM (
                SELECT vertex, min(events) AS least FROM (
                    SELECT vertex, count(DISTINCT event) AS events FROM {residue}
                    WHERE vertex IN (SELECT v FROM hw_gone WHERE twice)
                    GROUP BY vertex, source, destination, functions)
                GROUP BY vertex)
            JOIN (
                SELECT vertex, count(DISTINCT event) AS all_events FROM {residue}
                WHERE vertex IN (SELECT v FROM hw_gone WHERE twice) GROUP BY vertex)
            USING (vertex) WHERE least < all_events)
        WHERE v IN (SELECT v FROM hw_gone) GROUP BY v
        """
    )
