"""Dependencies and the names of entities, in sorted runs, so that a lookup reads a few row groups.

What comes in small pieces waits in a `fresh_…` table, which a lookup scans. Once there is enough of
it, it becomes a run: it is appended in order. Once as much was appended as there was before, the
whole table is written anew as one run. So there are never many runs, and each row is sorted a few
times only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.errors import IdCollision

if TYPE_CHECKING:
    import duckdb

RUN = 100_000
"""Rows that are worth a run of their own."""
SORTED = "sorted "
"""Before a relation's name: the fact about a store that says how much of it is one run."""

_DEPENDENCIES = ("dependencies", "dependencies_by_input")
_ORDERS = {
    "dependencies": "output, input, job_no",
    "dependencies_by_input": "input, output, job_no",
    "entities": "id",
}
_COLUMNS = {
    "dependencies": "job_no, output, input, functions",
    "dependencies_by_input": "input, output, job_no, functions",
    "entities": "id, name",
}


def add_dependencies(connection: duckdb.DuckDBPyConnection, relation: str) -> int:
    """Write the dependencies of a relation with the same columns; how many they are."""
    count = _count(connection, relation)
    if count >= RUN:
        for table in _DEPENDENCIES:
            _append(connection, table, relation)
    else:
        connection.execute(
            f"INSERT INTO fresh_dependencies SELECT {_COLUMNS['dependencies']} FROM {relation}"
        )
    return count


def add_entities(connection: duckdb.DuckDBPyConnection, relation: str) -> None:
    """Write the entities of a relation (`id`, `name`, each once) that the store does not know yet.

    Raises `IdCollision` where the store knows an id by another name.
    """
    compare(connection, relation, "(FROM entities UNION ALL FROM fresh_entities)")
    new = "(SELECT id, name FROM hw_compared WHERE known IS NULL)"
    if _count(connection, new) >= RUN:
        _append(connection, "entities", new)
    else:
        connection.execute(f"INSERT INTO fresh_entities {new}")


def compare(connection: duckdb.DuckDBPyConnection, new: str, known: str) -> None:
    """Look up the ids of a relation in another: `hw_compared` has their names in both.

    Raises `IdCollision` if an id has two names.
    """
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE hw_compared AS SELECT n.id, n.name, k.name AS known "
        f"FROM {new} n LEFT JOIN {known} k ON n.id = k.id"
    )
    rows = connection.execute(
        "SELECT known, name, id FROM hw_compared WHERE known <> name LIMIT 1"
    ).fetchall()
    if rows:
        first, second, number = rows[0]
        raise IdCollision(
            f"the names {first!r} and {second!r} have one hash ({number}): rename one of them"
        )


def compact(connection: duckdb.DuckDBPyConnection) -> None:
    """Make a run of what is fresh."""
    if _count(connection, "fresh_dependencies"):
        for table in _DEPENDENCIES:
            _append(connection, table, "fresh_dependencies")
        connection.execute("DELETE FROM fresh_dependencies")
    if _count(connection, "fresh_entities"):
        _append(connection, "entities", "fresh_entities")
        connection.execute("DELETE FROM fresh_entities")


def fresh(connection: duckdb.DuckDBPyConnection) -> int:
    """How many rows wait to be sorted."""
    return _count(connection, "fresh_dependencies") + _count(connection, "fresh_entities")


def _append(connection: duckdb.DuckDBPyConnection, table: str, relation: str) -> None:
    key, columns, order = f"{SORTED}{table}", _COLUMNS[table], _ORDERS[table]
    rows = connection.execute("SELECT value::BIGINT FROM meta WHERE key = ?", [key]).fetchall()
    sorted_once = int(rows[0][0]) if rows else 0
    ordered = f"SELECT {columns} FROM {relation} ORDER BY {order}"
    total = _count(connection, table) + _count(connection, relation)
    if total < 2 * sorted_once:
        connection.execute(f"INSERT INTO {table} {ordered}")
        return
    connection.execute(
        f"CREATE TABLE hw_sorted AS SELECT {columns} FROM "
        f"(SELECT {columns} FROM {table} UNION ALL SELECT {columns} FROM {relation}) "
        f"ORDER BY {order}"
    )
    connection.execute(f"DROP TABLE {table}")
    connection.execute(f"ALTER TABLE hw_sorted RENAME TO {table}")
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", [key, str(total)])


def _count(connection: duckdb.DuckDBPyConnection, relation: str) -> int:
    rows = connection.execute(f"SELECT count(*) FROM {relation}").fetchall()
    return int(rows[0][0])
