"""Settling: eliminating what is past, and writing out what can't change any more.

A vertex is *past* when no further edge of it can come. An intermediate that is past is eliminated.
An output that is past, all of whose edges lead to inputs that are past, is written out as
dependencies and forgotten. At a job's end everything is past: then nothing is left.

An activity at an end of the graph (it used nothing, or generated nothing) is treated as an output
or input that is not reported: its edges still say of their other end that it is no input or no
output. So does an edge from a vertex to itself, which is what is left of a cycle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.store.jobs import elimination

if TYPE_CHECKING:
    import duckdb

TEMPORARY = (
    *elimination.TEMPORARY,
    "hw_edges",
    "hw_ends",
    "hw_past",
    "hw_through",
    "hw_left",
    "hw_left_ends",
    "hw_ready",
    "hw_written",
    "hw_known",
)


@dataclass(frozen=True, slots=True)
class Settled:
    """What settling found; the rest is in temporary tables.

    `hw_written` has the dependencies (`job_no`, `output`, `input`, `functions`), `hw_known` the
    entities to be named (`id`, `is_input`, `is_output`), `hw_left` the edges that go on (`s`, `d`,
    `f`).
    """

    cyclic: bool
    rounds: int


def settle(
    connection: duckdb.DuckDBPyConnection, job_no: int, kept: str, *, everything: bool
) -> Settled:
    """Settle the edges of `hw_edges` (`s`, `d`, `f`, each once); those past are in `hw_past`.

    `kept` is the table of entities told to be outputs. With `everything` all is past.
    """
    connection.execute(_ENDS.format(ends="hw_ends", edges="hw_edges"))
    past = "true" if everything else "id IN (SELECT id FROM hw_past)"
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE hw_through AS "
        f"SELECT id FROM hw_ends WHERE i AND o AND {past}"
    )
    _prepare(connection, kept, everything=everything)
    eliminating = elimination.Elimination(connection)
    eliminating.run()
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE hw_left AS "
        "SELECT s, d, bit_or(f) AS f FROM hw_done GROUP BY s, d"
    )
    connection.execute("DROP TABLE hw_done")
    if everything:
        _write_all(connection, job_no, kept)
    else:
        _write_ready(connection, job_no, kept)
    return Settled(eliminating.cyclic, eliminating.rounds)


_ENDS = """
    CREATE OR REPLACE TEMP TABLE {ends} AS
    SELECT id, bool_or(i) AS i, bool_or(o) AS o, bool_or(loop) AS loop FROM (
        SELECT DISTINCT s AS id, false AS i, s <> d AS o, s = d AS loop FROM {edges} UNION ALL
        SELECT DISTINCT d, s <> d, false, s = d FROM {edges})
    GROUP BY id
"""
"""For each vertex: whether edges come in, go out, or lead from it to itself."""

_ENTITY = "({0} & 1 = 0)"


def _prepare(connection: duckdb.DuckDBPyConnection, kept: str, *, everything: bool) -> None:
    through = "(SELECT id FROM hw_through)"
    # At the end, what hangs on activities at the graph's ends is of no use any more.
    useless = (
        "AND s NOT IN (SELECT id FROM hw_ends WHERE id & 1 = 1 AND NOT i) "
        "AND d NOT IN (SELECT id FROM hw_ends WHERE id & 1 = 1 AND NOT o)"
    )
    edges = f"(FROM hw_edges WHERE true {useless if everything else ''})"
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE hw_work AS "
        f"SELECT s, s NOT IN {through} AS sf, d, d NOT IN {through} AS df, f FROM {edges} "
        f"UNION ALL SELECT s, true, d, d NOT IN {through}, f FROM {edges} "
        f"WHERE s IN {through} AND s <> d AND s IN (SELECT id FROM {kept})"
    )


def _write_all(connection: duckdb.DuckDBPyConnection, job_no: int, kept: str) -> None:
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE hw_written AS SELECT {job_no}::INTEGER AS job_no, "
        "s AS output, d AS input, f AS functions FROM hw_left WHERE s <> d "
        f"AND s NOT IN (SELECT id FROM hw_ends WHERE loop AND id NOT IN (SELECT id FROM {kept})) "
        "AND d NOT IN (SELECT id FROM hw_ends WHERE loop)"
    )
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE hw_known AS "
        "SELECT id, bool_or(is_input) AS is_input, bool_or(is_output) AS is_output FROM ("
        "SELECT id, NOT o AS is_input, NOT i AS is_output FROM hw_ends "
        f"WHERE {_ENTITY.format('id')} AND NOT (i AND o) AND NOT loop UNION ALL "
        f"SELECT id, false, true FROM {kept}) GROUP BY id"
    )
    connection.execute("DELETE FROM hw_left")


def _write_ready(connection: duckdb.DuckDBPyConnection, job_no: int, kept: str) -> None:
    connection.execute(_ENDS.format(ends="hw_left_ends", edges="hw_left"))
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE hw_ready AS SELECT id, loop FROM hw_left_ends e
        WHERE NOT i AND id IN (SELECT id FROM hw_past) AND id NOT IN (
            SELECT l.s FROM hw_left l JOIN hw_left_ends t ON l.d = t.id
            WHERE l.s <> l.d AND (t.o OR t.id NOT IN (SELECT id FROM hw_past)))
        """
    )
    # An output whose only edge led into a cycle is known to have been there, and no more.
    shown = f"(NOT r.loop OR l.s IN (SELECT id FROM {kept}))"
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE hw_written AS SELECT {job_no}::INTEGER AS job_no, "
        "l.s AS output, l.d AS input, l.f AS functions FROM hw_left l JOIN hw_ready r "
        f"ON l.s = r.id JOIN hw_left_ends t ON l.d = t.id WHERE l.s <> l.d AND NOT t.loop "
        f"AND {_ENTITY.format('l.s')} AND {_ENTITY.format('l.d')} AND {shown}"
    )
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE hw_known AS "
        "SELECT id, bool_or(is_input) AS is_input, bool_or(is_output) AS is_output FROM ("
        "SELECT l.s AS id, false AS is_input, true AS is_output FROM hw_left l "
        f"JOIN hw_ready r ON l.s = r.id WHERE {_ENTITY.format('l.s')} AND {shown} UNION ALL "
        "SELECT l.d, true, false FROM hw_left l JOIN hw_ready r ON l.s = r.id "
        f"JOIN hw_left_ends t ON l.d = t.id WHERE {_ENTITY.format('l.d')} AND NOT t.loop UNION ALL "
        f"SELECT k.id, false, true FROM {kept} k WHERE k.id IN (SELECT id FROM hw_past)) "
        "GROUP BY id"
    )
    connection.execute("DELETE FROM hw_left WHERE s IN (SELECT id FROM hw_ready)")
