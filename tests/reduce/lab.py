"""Small jobs for the tests of the store's side of `reduce`: told in batches, then asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.reduce.contraction import Reduced, contract
from headwater.reduce.facts import SPANS
from headwater.store import EmbeddedWriter
from headwater.store.jobs import Counts, Finished, JobSettings, JobWriter
from headwater.testing.prov_graphs import Element, block, vertex_id

Plan = Sequence[Sequence[tuple[Sequence[Element], bool]]]
"""For each batch, its blocks, and whether a local reducer contracts each."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBERS = count()


class Lab:
    """A store in which any number of jobs is run, each under a name of its own."""

    def __init__(self, writer: EmbeddedWriter) -> None:
        self.writer = writer

    def job(self, name: str | None = None, **settings: Any) -> JobWriter:
        """A new job."""
        name = name or f"job-{next(_NUMBERS)}"
        return JobWriter(self.writer, JobSettings(name, "in", **settings), f"query of {name}")

    def told(self, plan: Plan, **settings: Any) -> JobWriter:
        """A job that was told some batches."""
        job = self.job(**settings)
        for number, blocks in enumerate(plan):
            tell(job, number, blocks)
        return job

    def dependencies(self, job: JobWriter) -> set[tuple[str, str]]:
        """The dependencies that the store has of a job, by name; none may be there twice."""
        rows = self.rows(
            "SELECT o.name, i.name FROM (SELECT job_no, output, input FROM dependencies "
            "UNION ALL SELECT job_no, output, input FROM fresh_dependencies) d "
            f"LEFT JOIN ({_NAMES}) o ON o.id = d.output LEFT JOIN ({_NAMES}) i ON i.id = d.input "
            f"WHERE job_no = (SELECT job_no FROM jobs WHERE job = '{job.settings.job}')"
        )
        assert len(rows) == len(set(rows))
        assert all(output and cause for output, cause in rows), "an end without a name"
        return set(rows)

    def functions(self, job: JobWriter) -> dict[tuple[str, str], set[str]]:
        """The functions of each dependency of a job."""
        rows = self.rows(
            "SELECT o.name, i.name, d.functions, j.functions FROM (FROM dependencies UNION ALL "
            "FROM fresh_dependencies) d JOIN (SELECT job_no, job, functions::JSON::VARCHAR[] AS "
            f"functions FROM jobs) j USING (job_no) JOIN ({_NAMES}) o ON o.id = d.output "
            f"JOIN ({_NAMES}) i ON i.id = d.input WHERE job = '{job.settings.job}'"
        )
        return {
            (output, cause): {name for bit, name in enumerate(names) if bits >> bit & 1}
            for output, cause, bits, names in rows
        }

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What the store answers."""
        with self.writer.working("reading") as connection:
            return connection.execute(sql).fetchall()


_NAMES = "FROM entities UNION ALL FROM fresh_entities"


@contextmanager
def lab(path: Path) -> Iterator[Lab]:
    """A laboratory in a new store."""
    with EmbeddedWriter.open(path) as writer:
        yield Lab(writer)


def tell(
    job: JobWriter,
    number: int,
    blocks: Sequence[tuple[Sequence[Element], bool]],
    watermark: datetime | None = None,
    ended: bool = False,
) -> Any:
    """Commit a batch of these blocks, contracted or not."""
    parts = [reduced(elements, contracts=contracts) for elements, contracts in blocks]
    elements = [element for told, _ in blocks for element in told]
    return job.commit(
        number,
        watermark,
        [part.hot for part in parts],
        [part.residue for part in parts if len(part.residue)],
        spans(elements),
        Counts(len(elements), 200 * len(elements)),
        ended=ended,
    )


def reduced(elements: Sequence[Element], *, contracts: bool) -> Reduced:
    """Elements as a local reducer hands them on."""
    whole = block(elements)
    return contract(whole) if contracts else contract(whole, lambda ids: ids != ids)


def spans(elements: Sequence[Element]) -> pa.Table:
    """The executions of elements with the times of their first and last."""
    told: dict[str, list[Element]] = {}
    for element in elements:
        if element.execution is not None and element.seconds is not None:
            told.setdefault(element.execution, []).append(element)
    rows = [
        {
            "execution": vertex_id(("activity", name)),
            "function": parts[0].function,
            "node": parts[0].node,
            "first": min(part.micros for part in parts),
            "last": max(part.micros for part in parts),
        }
        for name, parts in told.items()
    ]
    return pa.Table.from_pylist(rows, SPANS)


def finished(job: JobWriter) -> Finished:
    """The job, completed."""
    done = job.finish()
    assert not done.held
    return done


def moment(seconds: float) -> datetime:
    """A time of the elements' own: seconds since their start."""
    start = Element("used", "a", "b", seconds=0).micros
    return EPOCH + timedelta(microseconds=start + round(seconds * 1e6))
