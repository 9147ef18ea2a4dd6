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
    findings: dict[str, Any] = {name: [] for name in FINDINGS}
    findings["slow_nodes"] = query(_slow_nodes(tables)).to_pylist()
    for row in query(_forgotten(tables, functions)).to_pylist():
        findings[row.pop("kind")].append(row)
    return findings


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


def _forgotten(tables: Tables, functions: Sequence[str]) -> str:
    """Entities that a function used though nobody generated them, as is usual with its others.

    And entities that it generated and nobody used. An edge's function is that of its activity's
    execution; without one, the function that was told with the edge.
    """
    names = "".join(f", ({1 << bit}, {_text(name)})" for bit, name in enumerate(functions))
    return f"""
        WITH told AS MATERIALIZED (
            SELECT DISTINCT source, destination, functions FROM {tables.edges}),
        executions AS MATERIALIZED (
            SELECT execution, any_value(function) AS function FROM {tables.execution}
            GROUP BY execution),
        ends AS (
            SELECT 'never_generated' AS kind, destination AS entity, source AS other, functions
            FROM told WHERE destination & 1 = 0 UNION ALL
            SELECT 'never_used', source, destination, functions FROM told WHERE source & 1 = 0),
        labelled AS (
            SELECT DISTINCT kind, entity, coalesce(x.function, b.name) AS function FROM ends e
            LEFT JOIN executions x ON e.other = x.execution
            LEFT JOIN (SELECT * FROM (VALUES (0::BIGINT, NULL){names}) v(bit, name)) b
                ON e.functions = b.bit),
        found AS (
            SELECT kind, entity, function, CASE kind
                WHEN 'never_generated' THEN entity IN (SELECT source FROM told)
                ELSE entity IN (SELECT destination FROM told UNION ALL SELECT id FROM {tables.kept})
                END AS usual
            FROM labelled WHERE function IS NOT NULL),
        shares AS (
            SELECT kind, function FROM found GROUP BY kind, function
            HAVING avg(usual::INTEGER) > {USUAL})
        SELECT kind, n.name AS entity, function FROM found JOIN shares USING (kind, function)
        JOIN {tables.name} n ON n.id = entity WHERE NOT usual
        QUALIFY row_number() OVER (PARTITION BY kind ORDER BY function, n.name) <= {MOST}
        ORDER BY kind, function, n.name
    """


def _text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"
