"""What looks wrong in a job: slow nodes, and entities that somebody forgot.

Each answer is one SELECT over the job's tables, so that it can be asked while the job runs, and is
asked for the last time when it is finished and its tables go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.store.jobs.tables import Tables

Query = Callable[[str], pa.Table]

SLOWER = 2.0
"""How many times slower than on other nodes an execution must be for its node to be slow."""
LEAST = 3
"""Executions of a function on a node that say something about it."""
USUAL = 0.5
"""The part of a function's entities that makes something usual, and its absence a finding."""
MOST = 1_000
"""Findings of a kind that are told."""

FINDINGS: Mapping[str, pa.Schema] = {
    "slow_nodes": pa.schema(
        [
            ("function", pa.string()),
            ("node", pa.string()),
            ("executions", pa.int64()),
            ("median_seconds", pa.float64()),
            ("others_seconds", pa.float64()),
            ("ratio", pa.float64()),
        ]
    ),
    "never_generated": pa.schema([("entity", pa.string()), ("function", pa.string())]),
    "never_used": pa.schema([("entity", pa.string()), ("function", pa.string())]),
}
"""By kind of finding, the columns in which it is told."""


def diagnosed(query: Query, tables: Tables, functions: Sequence[str]) -> dict[str, Any]:
    """The findings of a job by kind, as lists of rows; `functions` are the job's own, by bit."""
    if not functions and not query(f"SELECT 1 AS one FROM {tables.execution} LIMIT 1").num_rows:
        return {name: [] for name in FINDINGS}
    asked = {
        "slow_nodes": _slow_nodes(tables),
        "never_generated": _forgotten(tables, functions, used=True),
        "never_used": _forgotten(tables, functions, used=False),
    }
    return {name: query(sql).to_pylist() for name, sql in asked.items()}


def _slow_nodes(tables: Tables) -> str:
    """Nodes that take more than twice as long for a function as others do, by their medians."""
    return f"""
        WITH executions AS (
            SELECT any_value(function) AS function, any_value(node) AS node,
                (max(last) - min(first)) / 1e6 AS seconds
            FROM {tables.execution} GROUP BY execution),
        nodes AS (
            SELECT function, node, count(*) AS executions, median(seconds) AS median_seconds
            FROM executions WHERE function IS NOT NULL AND node IS NOT NULL
            GROUP BY function, node HAVING count(*) >= {LEAST}),
        compared AS (
            SELECT one.*, median(other.median_seconds) AS others_seconds
            FROM nodes one JOIN nodes other
            ON one.function = other.function AND one.node <> other.node
            GROUP BY ALL)
        SELECT *, median_seconds / nullif(others_seconds, 0) AS ratio FROM compared
        WHERE median_seconds > {SLOWER} * others_seconds
        ORDER BY ratio DESC NULLS FIRST, function, node LIMIT {MOST}
    """


def _forgotten(tables: Tables, functions: Sequence[str], *, used: bool) -> str:
    """Entities that a function used though nobody generated them, as is usual with its others.

    Or else, without `used`: that it generated and nobody used. An edge's function is that of its
    activity's execution; without one, the function that was told with the edge.
    """
    end, other = ("destination", "source") if used else ("source", "destination")
    names = "".join(f", ({1 << bit}, {_text(name)})" for bit, name in enumerate(functions))
    marked = "false" if used else f"entity IN (SELECT id FROM {tables.kept})"
    return f"""
        WITH edges AS (
            SELECT DISTINCT {end} AS entity, functions, CASE WHEN source & 1 = 1 THEN source
                WHEN destination & 1 = 1 THEN destination END AS execution
            FROM {tables.edges} WHERE {end} & 1 = 0),
        labelled AS (
            SELECT DISTINCT entity, coalesce(x.function, b.name) AS function FROM edges e
            LEFT JOIN (SELECT execution, any_value(function) AS function FROM {tables.execution}
                GROUP BY execution) x ON e.execution = x.execution
            LEFT JOIN (SELECT * FROM (VALUES (0::BIGINT, NULL){names}) v(bit, name)) b
                ON e.functions = b.bit),
        found AS (
            SELECT entity, function,
                entity IN (SELECT {other} FROM {tables.edges}) OR {marked} AS usual
            FROM labelled WHERE function IS NOT NULL),
        shares AS (SELECT function, avg(usual::INTEGER) AS share FROM found GROUP BY function)
        SELECT n.name AS entity, f.function FROM found f JOIN shares s USING (function)
        JOIN {tables.name} n ON n.id = f.entity
        WHERE NOT f.usual AND s.share > {USUAL} ORDER BY f.function, n.name LIMIT {MOST}
    """


def _text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"
