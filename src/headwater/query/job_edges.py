"""What entities depend on within jobs: dependencies of what is settled, edges of what is held.

A job is *held* while it is open, or if all of it is kept: then its edges can be followed from any
entity. They are followed in the database, however deep; activities are passed through.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from headwater.query.entities import among
from headwater.store.jobs.register import FINISHED
from headwater.store.jobs.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from headwater.reduce.blocks import Ints
    from headwater.store.reader import Reader

Direction = Literal["backward", "forward"]


class Link(NamedTuple):
    """One entity leads to another within a job."""

    start: int
    end: int
    job: int
    functions: int


@dataclass(frozen=True, slots=True)
class Job:
    """A job as queries need it."""

    no: int
    name: str
    finished: bool
    strategy: str
    keep: str
    has_functions: bool
    functions: tuple[str, ...]
    in_lake: bool = False
    """Whether the store has only what is settled: the reducer of a lake's job has the rest."""

    @property
    def is_held(self) -> bool:
        """Whether its edges are there."""
        return not self.in_lake and (not self.finished or self.keep == "full")

    @property
    def held(self) -> Held:
        """Its edges."""
        return Held(self)

    def named(self, bits: int) -> list[str] | None:
        """The functions of a set of bits; None if the job does not tell them."""
        if not self.has_functions:
            return None
        return [name for bit, name in enumerate(self.functions) if bits >> bit & 1]


def jobs(reader: Reader) -> dict[int, Job]:
    """All jobs, by number."""
    rows = reader.query("SELECT job_no, job, state, settings, functions FROM jobs ORDER BY job_no")
    found = {}
    for row in rows.to_pylist():
        settings = json.loads(row["settings"])
        found[row["job_no"]] = Job(
            row["job_no"],
            row["job"],
            row["state"] == FINISHED,
            settings["strategy"],
            settings["keep"],
            settings["functions"],
            tuple(json.loads(row["functions"])),
            not settings.get("held", True),
        )
    return found


def settled(reader: Reader, ids: Ints, direction: Direction) -> list[Link]:
    """The dependencies of entities on inputs, or of outputs on them."""
    near, far, table = (
        ("output", "input", "dependencies")
        if direction == "backward"
        else ("input", "output", "dependencies_by_input")
    )
    chosen = among(near, ids.tolist())
    columns = f"{near}, {far}, job_no, functions"
    return _links(
        reader.query(
            f"SELECT {columns} FROM {table} {chosen} UNION ALL "
            f"SELECT {columns} FROM fresh_dependencies {chosen}",
            [ids.tolist()],
        )
    )


@dataclass(frozen=True, slots=True)
class Held:
    """The edges of a job that is held."""

    job: Job

    @property
    def tables(self) -> Tables:
        """The job's own tables."""
        return Tables(self.job.no)

    def has(self, reader: Reader, id: int) -> bool:
        """Whether some edge is of this entity."""
        sql = (
            f"SELECT 1 AS one FROM {self.tables.edges} WHERE source = $1 OR destination = $1 "
            "LIMIT 1"
        )
        return bool(reader.query(sql, [id]).num_rows)

    def names_of(self, reader: Reader, ids: Iterable[int]) -> dict[int, str]:
        """The names of vertices that the job has named."""
        found = reader.query(
            f"SELECT id, name FROM {self.tables.name} WHERE id IN (SELECT unnest(?::BIGINT[]))",
            [list(ids)],
        )
        return dict(zip(found["id"].to_pylist(), found["name"].to_pylist(), strict=True))

    def reached(
        self, reader: Reader, starts: Sequence[int], direction: Direction, also: Sequence[int] = ()
    ) -> list[Link]:
        """The inputs that entities depend on so far, or the outputs that depend on them.

        `also` are entities that are told in any case.
        """
        near, far = _ends(direction)
        edges, kept = self.tables.edges, self.tables.kept
        last = f"v NOT IN (SELECT {near} FROM {edges})"
        if direction == "forward":
            last = f"({last} OR v IN (SELECT id FROM {kept}))"
        return _links(
            reader.query(
                f"WITH RECURSIVE reached(a, v, f) AS (SELECT {near}, {far}, functions "
                f"FROM {edges} WHERE {near} IN (SELECT unnest($1::BIGINT[])) UNION "
                f"SELECT r.a, e.{far}, r.f | e.functions FROM reached r JOIN {edges} e "
                f"ON r.v = e.{near}) "
                f"SELECT a, v, {self.job.no} AS job_no, bit_or(f) AS f FROM reached "
                f"WHERE v & 1 = 0 AND ({last} OR v IN (SELECT unnest($2::BIGINT[]))) GROUP BY a, v",
                [list(starts), list(also)],
            )
        )

    def starts(self, direction: Direction, *, anywhere: bool) -> str:
        """A SELECT of the entities among `asked` that lead on, with the job's number.

        Unless from `anywhere`, only outputs (or inputs) lead on.
        """
        near, far = _ends(direction)
        edges, kept = self.tables.edges, self.tables.kept
        sql = (
            f"SELECT DISTINCT {self.job.no} AS job_no, {near} AS id FROM {edges} "
            f"WHERE {near} IN (SELECT id FROM asked)"
        )
        if anywhere:
            return sql
        is_end = f"{near} NOT IN (SELECT {far} FROM {edges} WHERE {far} IN (SELECT id FROM asked))"
        if direction == "backward":
            is_end = f"({is_end} OR {near} IN (SELECT id FROM {kept}))"
        return f"{sql} AND {is_end}"


def starts(
    reader: Reader, held: Sequence[Held], ids: Ints, direction: Direction, *, anywhere: bool
) -> dict[int, list[int]]:
    """By job that is held: those of the entities that lead on in it."""
    if not held:
        return {}
    each = " UNION ALL ".join(one.starts(direction, anywhere=anywhere) for one in held)
    rows = reader.query(f"WITH asked AS (SELECT unnest($1::BIGINT[]) AS id) {each}", [ids.tolist()])
    found: dict[int, list[int]] = {}
    for job, start in zip(rows["job_no"].to_pylist(), rows["id"].to_pylist(), strict=True):
        found.setdefault(job, []).append(start)
    return found


def _ends(direction: Direction) -> tuple[str, str]:
    return ("source", "destination") if direction == "backward" else ("destination", "source")


def _links(rows: pa.Table) -> list[Link]:
    return [
        Link(*row) for row in zip(*(column.to_pylist() for column in rows.columns), strict=True)
    ]
