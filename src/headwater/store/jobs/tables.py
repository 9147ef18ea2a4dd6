"""The tables of a single job: what its global reducer holds until the job is finished.

| table | one row per | columns |
|---|---|---|
| `pending_<job_no>` | edge that waits for the next contraction | `source`, `destination`, `time` (µs), `functions` (bits), `derived` |
| `hot_<job_no>` | edge between vertices that are not eliminated | the same |
| `residue_<job_no>` | edge of a vertex that a contraction eliminated | `event` (the contraction), `vertex`, then the same |
| `name_<job_no>` | vertex whose name is known | `id`, `name` |
| `kept_<job_no>` | entity told to be an output | `id` |
| `last_<job_no>` | vertex, of the strategy `watermark` | `id`, `last`: its latest time |
| `execution_<job_no>` | execution | `execution` (its activity), `function`, `node`, `first`, `last` |

Whatever came is in the first three, so that their transitive closure is that of all edges told. They
are dropped when the job is finished, unless all of it is kept.
"""  # noqa: E501

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

EDGE = "source BIGINT, destination BIGINT, time BIGINT, functions BIGINT, derived BOOLEAN"
COLUMNS = "source, destination, time, functions, derived"


@dataclass(frozen=True, slots=True)
class Tables:
    """The names of a job's tables."""

    no: int

    @property
    def pending(self) -> str:
        """Edges that wait for the next contraction."""
        return f"pending_{self.no}"

    @property
    def hot(self) -> str:
        """Edges between vertices that are not eliminated."""
        return f"hot_{self.no}"

    @property
    def residue(self) -> str:
        """Edges of eliminated vertices."""
        return f"residue_{self.no}"

    @property
    def name(self) -> str:
        """Names of vertices."""
        return f"name_{self.no}"

    @property
    def kept(self) -> str:
        """Entities told to be outputs."""
        return f"kept_{self.no}"

    @property
    def last(self) -> str:
        """Latest times of vertices."""
        return f"last_{self.no}"

    @property
    def execution(self) -> str:
        """Executions with their times."""
        return f"execution_{self.no}"

    @property
    def edges(self) -> str:
        """All edges, as a relation: an edge may be there more than once."""
        return (
            f"(SELECT {COLUMNS} FROM {self.pending} UNION ALL SELECT {COLUMNS} FROM {self.hot} "
            f"UNION ALL SELECT {COLUMNS} FROM {self.residue})"
        )

    def create(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make them, empty."""
        connection.execute(
            f"""
            CREATE TABLE {self.pending} ({EDGE});
            CREATE TABLE {self.hot} ({EDGE});
            CREATE TABLE {self.residue} (event INTEGER, vertex BIGINT, {EDGE});
            CREATE TABLE {self.name} (id BIGINT, name VARCHAR);
            CREATE TABLE {self.kept} (id BIGINT);
            CREATE TABLE {self.last} (id BIGINT, last BIGINT);
            CREATE TABLE {self.execution} (
                execution BIGINT, function VARCHAR, node VARCHAR, first BIGINT, last BIGINT);
            """
        )

    def drop(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Drop them all."""
        for table in (
            self.pending,
            self.hot,
            self.residue,
            self.name,
            self.kept,
            self.last,
            self.execution,
        ):
            connection.execute(f"DROP TABLE {table}")
