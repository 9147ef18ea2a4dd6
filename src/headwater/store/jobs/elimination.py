"""Eliminating vertices in DuckDB: in parallel, out of core, in few rounds whatever the depth.

The edges are the temporary table `hw_work`: from `s` to `d` with the functions `f`; `sf` and `df`
say that an end is fixed, all other vertices are eliminated. What is left, edges between fixed ends,
is collected in `hw_done`. A vertex may be fixed as a source and not as a destination: an output
that was used as well has two roles.

Most vertices of real provenance have one edge in or one edge out. All of these go at once, along
chains of any length: following the only edge by pointer jumping takes a number of rounds
logarithmic in the longest chain. The others go in rounds, cheapest first, as many at a time as are
no neighbours of each other. Where everything depends on everything, few are no neighbours: then
what is left is walked through, from the end at which fewer vertices are fixed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.store.jobs import loops

if TYPE_CHECKING:
    import duckdb

TEMPORARY = (
    "hw_work",
    "hw_done",
    "hw_found",
    "hw_degree",
    "hw_jump",
    "hw_jumped",
    "hw_rank",
    "hw_start",
)

_FEW = 0.1
"""The part of the vertices that must go in a round for another round to be worth it."""
_PASSES = 10
"""How often a round reads all edges, about."""
_PAIRS = 20_000_000
"""Pairs of a fixed vertex and another that are held at once on a walk."""

_OUT = {"v": "s", "vf": "sf", "t": "d", "tf": "df"}
_IN = {"v": "d", "vf": "df", "t": "s", "tf": "sf"}


class Elimination:
    """The rounds of one elimination, on the tables described above."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self.cyclic = False
        """Whether some vertex was found to depend on itself."""
        self.rounds = 0

    def run(self) -> None:
        """Empty `hw_work` into `hw_done`, where an edge may then be more than once."""
        self._run("CREATE OR REPLACE TEMP TABLE hw_done (s BIGINT, d BIGINT, f BIGINT)")
        self._run("ALTER TABLE hw_work RENAME TO hw_found")
        self._settle()
        while True:
            self.rounds += 1
            ends, starts, count = self._degrees()
            if not count:
                break
            if ends >= _FEW * count:
                self._shortcut(_OUT)
            elif starts >= _FEW * count:
                self._shortcut(_IN)
            elif self._walks(self._choose(), count):
                self._walk(count)
                break
            else:
                self._join()
            self._settle()
        self._run("DROP TABLE hw_work")

    def _settle(self) -> None:
        """Make `hw_work` of what a round found: self-loops say nothing, fixed edges are done."""
        self.cyclic |= self._any("hw_found WHERE s = d AND NOT sf AND NOT df")
        self._run("INSERT INTO hw_done SELECT s, d, f FROM hw_found WHERE sf AND df")
        self._run(
            "CREATE OR REPLACE TEMP TABLE hw_work AS SELECT s, sf, d, df, bit_or(f) AS f "
            "FROM hw_found WHERE NOT (sf AND df) AND NOT (s = d AND NOT sf AND NOT df) "
            "GROUP BY s, sf, d, df"
        )
        self._run("DROP TABLE hw_found")

    def _degrees(self) -> tuple[int, int, int]:
        """Count edges in and out; how many vertices have one edge out, one edge in, any."""
        self._run(
            "CREATE OR REPLACE TEMP TABLE hw_degree AS SELECT v, sum(i) AS i, sum(o) AS o FROM ("
            "SELECT d AS v, count(*) AS i, 0 AS o FROM hw_work WHERE NOT df GROUP BY d UNION ALL "
            "SELECT s, 0, count(*) FROM hw_work WHERE NOT sf GROUP BY s) GROUP BY v"
        )
        [(ends, starts, count)] = self._connection.execute(
            "SELECT count(*) FILTER (o = 1), count(*) FILTER (i = 1), count(*) FROM hw_degree"
        ).fetchall()
        return int(ends), int(starts), int(count)

    def _shortcut(self, way: dict[str, str]) -> None:
        """Eliminate vertices with one edge out (or in): edges to them go where that leads."""
        v, vf, t, tf = (way[name] for name in ("v", "vf", "t", "tf"))
        one = "o = 1" if v == "s" else "i = 1"
        self._run(
            f"CREATE OR REPLACE TEMP TABLE hw_jump AS SELECT w.{v} AS v, w.{t} AS t, "
            f"w.{tf} AS fixed, w.f FROM hw_work w JOIN hw_degree g ON w.{v} = g.v "
            f"WHERE NOT w.{vf} AND {one}"
        )
        moving = "hw_jump m SEMI JOIN hw_jump n ON NOT m.fixed AND m.t = n.v"
        longest = self._count("hw_jump")
        while self._any(moving) and longest:
            longest >>= 1
            self._run(
                "CREATE OR REPLACE TEMP TABLE hw_jumped AS SELECT m.v, coalesce(n.t, m.t) AS t, "
                "coalesce(n.fixed, m.fixed) AS fixed, m.f | coalesce(n.f, 0) AS f "
                "FROM hw_jump m LEFT JOIN hw_jump n ON NOT m.fixed AND m.t = n.v"
            )
            self._run("DROP TABLE hw_jump")
            self._run("ALTER TABLE hw_jumped RENAME TO hw_jump")
        # Who moves on for longer than there are vertices goes round in a circle that has no way
        # out: nothing fixed is ever reached, so edges to it say nothing.
        endless = self._any(moving)
        self.cyclic |= endless
        lost = "AND NOT (m.v IS NOT NULL AND NOT m.fixed AND m.t IN (SELECT v FROM hw_jump))"
        self._run(
            f"CREATE TEMP TABLE hw_found AS SELECT w.{v}, w.{vf}, coalesce(m.t, w.{t}) AS {t}, "
            f"coalesce(m.fixed, w.{tf}) AS {tf}, w.f | coalesce(m.f, 0) AS f "
            f"FROM hw_work w LEFT JOIN hw_jump m ON NOT w.{tf} AND w.{t} = m.v "
            f"WHERE (w.{vf} OR w.{v} NOT IN (SELECT v FROM hw_jump)) {lost if endless else ''}"
        )

    def _choose(self) -> int:
        """Find vertices that are no neighbours of each other, the cheapest; how many.

        Among neighbours of about the same cost chance decides, or long rows would fall singly.
        """
        self._run(
            "CREATE OR REPLACE TEMP TABLE hw_rank AS SELECT v, floor(log2(greatest(i * o, 1))) "
            f"+ hash(v, {self.rounds}) / 18446744073709551616.0 AS r FROM hw_degree"
        )
        self._run(
            "DELETE FROM hw_rank WHERE v IN ("
            "SELECT CASE WHEN (a.r, a.v) < (b.r, b.v) THEN b.v ELSE a.v END FROM hw_work w "
            "JOIN hw_rank a ON w.s = a.v JOIN hw_rank b ON w.d = b.v WHERE NOT w.sf AND NOT w.df)"
        )
        return self._count("hw_rank")

    def _join(self) -> None:
        """Eliminate the chosen vertices: each edge in with each edge out."""
        chosen = "(SELECT v FROM hw_rank)"
        self._run(
            "CREATE TEMP TABLE hw_found AS SELECT s, sf, d, df, f FROM hw_work "
            f"WHERE (sf OR s NOT IN {chosen}) AND (df OR d NOT IN {chosen}) UNION ALL "
            "SELECT a.s, a.sf, b.d, b.df, a.f | b.f FROM hw_work a JOIN hw_rank c "
            "ON a.d = c.v AND NOT a.df JOIN hw_work b ON b.s = c.v AND NOT b.sf"
        )

    def _walks(self, chosen: int, count: int) -> bool:
        """Whether to walk through what is left: if so few go in a round that all take longer."""
        if chosen >= _FEW * count:
            return False
        return min(self._ends()) * chosen <= _PASSES * count

    def _ends(self) -> tuple[int, int]:
        """How many sources and how many destinations are fixed."""
        starts, ends = (
            self._count(f"(SELECT DISTINCT {end} FROM hw_work WHERE {end}f)") for end in "sd"
        )
        return starts, ends

    def _walk(self, vertices: int) -> None:
        """Find which fixed ends reach each other through the vertices that are left."""
        between = "hw_work WHERE NOT sf AND NOT df"
        self.cyclic |= loops.has_cycle(self._connection, f"(SELECT s, d FROM {between})")
        starts, ends = self._ends()
        way = _OUT if starts <= ends else _IN
        v, vf, t, tf = (way[name] for name in ("v", "vf", "t", "tf"))
        self._run(
            f"CREATE OR REPLACE TEMP TABLE hw_start AS SELECT {v} AS v, "
            f"(row_number() OVER () - 1) // {max(1, _PAIRS // vertices)} AS part "
            f"FROM (SELECT DISTINCT {v} FROM hw_work WHERE {vf})"
        )
        for (part,) in self._connection.execute("SELECT DISTINCT part FROM hw_start").fetchall():
            self._run(
                f"INSERT INTO hw_done SELECT {'a, v' if way is _OUT else 'v, a'}, f FROM ("
                "WITH RECURSIVE reached(a, v, fixed, f) AS ("
                f"SELECT {v}, {t}, {tf}, f FROM hw_work WHERE {vf} "
                f"AND {v} IN (SELECT v FROM hw_start WHERE part = {part}) UNION "
                f"SELECT r.a, w.{t}, w.{tf}, r.f | w.f FROM reached r JOIN hw_work w "
                f"ON NOT r.fixed AND r.v = w.{v} AND NOT w.{vf}) "
                "SELECT a, v, bit_or(f) AS f FROM reached WHERE fixed GROUP BY a, v)"
            )

    def _run(self, sql: str) -> None:
        self._connection.execute(sql)

    def _any(self, relation: str) -> bool:
        return bool(self._connection.execute(f"SELECT 1 FROM {relation} LIMIT 1").fetchall())

    def _count(self, relation: str) -> int:
        return int(self._connection.execute(f"SELECT count(*) FROM {relation}").fetchall()[0][0])
