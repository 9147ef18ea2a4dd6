"""The members of cycles: looked for only once an elimination has met one."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from headwater.reduce.cycles import on_cycles

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb

    from headwater.reduce.blocks import Ints

TEMPORARY = ("hw_loop", "hw_loop_next")

_ROUNDS = 30
"""How often the ends of the graph are cut off before the rest is searched in memory."""
_MOST = 100
"""Cycles that are told."""


def cycles(connection: duckdb.DuckDBPyConnection, edges: str, name: str) -> list[tuple[str, ...]]:
    """The members of each cycle among the edges (`s`, `d`) by name, as the table `name` has them.

    A vertex without a name there is told by its id.
    """
    found = components(*_core(connection, edges))
    names = _names(connection, name, [vertex for members in found for vertex in members])
    return [tuple(sorted(names.get(v, f"#{v}") for v in members)) for members in found]


def has_cycle(connection: duckdb.DuckDBPyConnection, edges: str) -> bool:
    """Whether there is a cycle among the edges (`s`, `d`)."""
    source, destination = _core(connection, edges)
    vertices, codes = np.unique(np.concatenate([source, destination]), return_inverse=True)
    return bool(on_cycles(codes[: len(source)], codes[len(source) :], len(vertices)).any())


def _core(connection: duckdb.DuckDBPyConnection, edges: str) -> tuple[Ints, Ints]:
    """The edges without most of those that lead to no cycle, or come from none."""
    connection.execute(f"CREATE OR REPLACE TEMP TABLE hw_loop AS SELECT DISTINCT s, d FROM {edges}")
    for _ in range(_ROUNDS):
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE hw_loop_next AS SELECT * FROM hw_loop "
            "WHERE d IN (SELECT s FROM hw_loop) AND s IN (SELECT d FROM hw_loop)"
        )
        (before,) = connection.execute("SELECT count(*) FROM hw_loop").fetchall()
        (after,) = connection.execute("SELECT count(*) FROM hw_loop_next").fetchall()
        connection.execute("DROP TABLE hw_loop")
        connection.execute("ALTER TABLE hw_loop_next RENAME TO hw_loop")
        if before == after:
            break
    rows = connection.execute("SELECT s, d FROM hw_loop ORDER BY s, d").fetchnumpy()
    return np.asarray(rows["s"], np.int64), np.asarray(rows["d"], np.int64)


def components(source: Ints, destination: Ints) -> list[list[int]]:
    """The vertices of each cycle, or of cycles that share vertices; the first hundred.

    >>> components(np.array([1, 2, 3, 4, 5]), np.array([2, 1, 1, 5, 4]))
    [[1, 2], [4, 5]]
    """
    vertices, codes = np.unique(np.concatenate([source, destination]), return_inverse=True)
    one, other = codes[: len(source)], codes[len(source) :]
    cyclic = on_cycles(one, other, len(vertices))
    below: dict[int, list[int]] = defaultdict(list)
    above: dict[int, list[int]] = defaultdict(list)
    chosen = cyclic[one] & cyclic[other]
    for effect, cause in zip(source[chosen].tolist(), destination[chosen].tolist(), strict=True):
        below[effect].append(cause)
        above[cause].append(effect)
    waiting = dict.fromkeys(vertices[cyclic].tolist())
    found: list[list[int]] = []
    while waiting and len(found) < _MOST:
        first = next(iter(waiting))
        members = sorted(_reached(first, below) & _reached(first, above))
        found.append(members)
        for member in members:
            del waiting[member]
    return found


def _reached(first: int, ways: Mapping[int, list[int]]) -> set[int]:
    seen, waiting = {first}, [first]
    while waiting:
        fresh = [vertex for vertex in ways.get(waiting.pop(), ()) if vertex not in seen]
        seen.update(fresh)
        waiting.extend(fresh)
    return seen


def _names(connection: duckdb.DuckDBPyConnection, table: str, ids: list[int]) -> dict[int, str]:
    rows = connection.execute(
        f"SELECT id, name FROM {table} WHERE id IN (SELECT unnest(?::BIGINT[]))", [ids]
    ).fetchall()
    return dict(rows)
