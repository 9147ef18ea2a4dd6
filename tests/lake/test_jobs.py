"""Foreign jobs in a lake: the same answers as from a file, each dependency once whatever fails."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headwater as hw
from headwater.errors import HeadwaterError, StoreError
from headwater.query import Store
from headwater.reduce import settings
from headwater.store import EmbeddedWriter, copying
from headwater.store.jobs import JobSettings, JobWriter
from headwater.store.lake.compacting import compact
from headwater.store.lake.jobs import LakeJobs, LakeJobWriter
from headwater.store.lake.tables import Table
from headwater.store.lake.writer import LakeWriter
from headwater.testing.prov_graphs import Element, dependencies
from tests.reduce.lab import moment, tell
from tests.reduce.streams import END, job, put, shuffled, write

TIMED: dict[str, Any] = {"strategy": "watermark", "lifetime": 20_000_000}


class Lake:
    """A lake to which jobs are told, each with the store of its reducer beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.address = folder, f"delta:{folder / 'lake'}"

    @contextlib.contextmanager
    def job(self, name: str, **more: Any) -> Iterator[LakeJobWriter]:
        """A job, begun or gone on with."""
        stores = LakeJobs.open(self.address, self.folder / name)
        try:
            yield LakeJobWriter(stores, JobSettings(name, "in", **more), f"query of {name}")
        finally:
            stores.close()

    def open(self) -> Store:
        """The lake, for questions."""
        return hw.open(self.address)

    def dependencies(self, name: str) -> set[tuple[str, str]]:
        """The dependencies of a job; none may be there twice, in either order."""
        with self.open() as store:
            found = [
                store._reader.query(
                    f"SELECT o.name AS o, i.name AS i FROM {relation} d JOIN entities o "
                    "ON o.id = d.output JOIN entities i ON i.id = d.input WHERE job_no = "
                    "(SELECT job_no FROM jobs WHERE job = ?)",
                    [name],
                ).to_pylist()
                for relation in ("dependencies", "dependencies_by_input")
            ]
        pairs = [sorted((row["o"], row["i"]) for row in rows) for rows in found]
        assert pairs[0] == pairs[1]
        assert len(pairs[0]) == len(set(pairs[0]))
        return set(pairs[0])


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def pieces(told: list[Element], size: int = 25) -> list[list[Element]]:
    return [told[at : at + size] for at in range(0, len(told), size)]


def run(writer: JobWriter, told: list[Element], *, first: int = 0, timed: bool = False) -> None:
    """Tell a job its elements, some at a time."""
    for number, part in enumerate(pieces(told)):
        at = moment(part[0].seconds or 0) if timed else None
        if number >= first:
            tell(writer, number, [(part, True)], at)


@pytest.mark.parametrize("more", [{"functions": True}, TIMED], ids=["grouping", "watermark"])
def test_answers_are_those_of_a_file(lake: Lake, tmp_path: Path, more: dict[str, Any]) -> None:
    jobs = {"one": job(12, seed=3), "two": job(8, seed=4)}
    with EmbeddedWriter.open(tmp_path / "file") as file:
        for name, told in jobs.items():
            plain = JobWriter(file, JobSettings(name, "in", **more), f"query of {name}")
            run(plain, told, timed=more is TIMED)
            expected = plain.finish()
            with lake.job(name, **more) as writer:
                run(writer, told, timed=more is TIMED)
                done = writer.finish()
            assert (done.dependencies, done.inputs, done.outputs) == (
                expected.dependencies,
                expected.inputs,
                expected.outputs,
            )
            assert lake.dependencies(name) == dependencies(told)
    with hw.open(tmp_path / "file") as store, lake.open() as found:
        counted = ["job", "state", "elements", "hot", "dependencies", "inputs", "outputs"]
        assert found.jobs().select([*counted, "batches"]) == store.jobs().select(
            [*counted, "batches"]
        )
        for told in jobs.values():
            pairs = sorted(dependencies(told))
            for output, entry in Random(7).sample(pairs, 3):
                assert found.backward(entity=output) == store.backward(entity=output)
                assert found.forward(entity=entry) == store.forward(entity=entry)
                assert found.depends(output, entry)
                assert not found.depends(entry, output)
        for name in jobs:
            assert found.diagnosis(name) == store.diagnosis(name)
        with pytest.raises(HeadwaterError, match="is in a lake, which has its dependencies only"):
            found.paths("one")


def test_what_is_settled_can_be_asked_while_the_job_goes_on(lake: Lake) -> None:
    told = job(30, seed=5)
    with lake.job("J", **TIMED) as writer, lake.open() as found:
        run(writer, told, timed=True)
        [row] = found.jobs().to_pylist()
        assert (row["state"], row["batches"]) == ("open", len(pieces(told)))
        so_far = lake.dependencies("J")
        assert 0 < len(so_far) < len(dependencies(told))
        output, entry = min(so_far)
        assert entry in found.backward(entity=output)["id"].to_pylist()
        with pytest.raises(HeadwaterError, match="a lake has the diagnosis of complete jobs only"):
            found.diagnosis("J")
        writer.finish()
        assert found.diagnosis("J").finished
    assert lake.dependencies("J") == dependencies(told)


def test_complete_jobs_are_copied_both_ways(lake: Lake, tmp_path: Path) -> None:
    told = job(10, seed=11)
    with EmbeddedWriter.open(tmp_path / "file") as file:
        plain = JobWriter(file, JobSettings("J", "in"), "query of J")
        run(plain, told)
        with pytest.raises(StoreError, match="job 'J' is open, which a copy can't go on with"):
            copying.copy(tmp_path / "file", lake.address)
        plain.finish()
    copying.copy(tmp_path / "file", lake.address)
    assert lake.dependencies("J") == dependencies(told)
    with lake.job("K") as writer:
        run(writer, job(5, seed=12))
        with pytest.raises(StoreError, match="job 'K' is open"):
            copying.copy(lake.address, tmp_path / "back")
        writer.finish()
    copying.copy(lake.address, tmp_path / "back")
    with lake.open() as here, hw.open(tmp_path / "back") as there:
        assert there.jobs() == here.jobs()
        assert there.batches().num_rows == here.batches().num_rows == 0, "they are of flows alone"
        output, entry = min(dependencies(told))
        assert there.backward(entity=output) == here.backward(entity=output)
        assert there.forward(entity=entry) == here.forward(entity=entry)
        with pytest.raises(HeadwaterError, match="only its dependencies are kept"):
            there.paths("J")
    with EmbeddedWriter.open(tmp_path / "full") as file:
        full = JobWriter(file, JobSettings("F", "in", keep="full"), "query of F")
        run(full, told)
        full.finish()
    with pytest.raises(StoreError, match=r"of job 'F' all edges are kept"):
        copying.copy(tmp_path / "full", f"delta:{tmp_path / 'other'}")


class Killed(BaseException):
    """Stands for a process that ends here."""


@pytest.mark.parametrize(
    ("relation", "point", "timed"),
    [
        ("jobs", "before", False),
        ("dependencies", "after", True),
        ("batches", "before", True),
        ("batches", "after", False),
    ],
)
def test_killed_on_the_way_to_the_lake(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, relation: str, point: str, timed: bool
) -> None:
    """At a table's commit: whatever was on its way is there once."""
    told, more = job(12, seed=6), TIMED if timed else {}
    kills = 0

    def dying(call: Any) -> Any:
        def wrapped(self: Table, *args: Any) -> None:
            nonlocal kills
            mine = armed and self.relation == relation and kills < 2
            kills += mine
            if mine and point == "before":
                raise Killed
            call(self, *args)
            if mine:
                raise Killed

        return wrapped

    armed = False
    monkeypatch.setattr(Table, "add", dying(Table.add))
    monkeypatch.setattr(Table, "append", dying(Table.append))
    for _ in range(20):
        # What is finished and only had to be sent is refused once it is.
        with contextlib.suppress(Killed, StoreError), lake.job("J", **more) as writer:
            armed = True
            for number, part in enumerate(pieces(told)):
                if not writer.holds(number):
                    tell(writer, number, [(part, True)], moment(part[0].seconds or 0))
            writer.finish()
        armed = False
        with lake.open() as store:
            if store.jobs()["state"].to_pylist() == ["finished"]:
                break
    assert kills
    assert lake.dependencies("J") == dependencies(told)
    with lake.open() as store:
        [row] = store.jobs().to_pylist()
        assert (row["state"], row["elements"], row["batches"]) == (
            "finished",
            len(told),
            len(pieces(told)),
        )
        names = store._reader.query("SELECT id FROM entities")["id"].to_pylist()
        assert len(names) == len(set(names))


def test_a_job_is_its_checkpoint_s(lake: Lake, tmp_path: Path) -> None:
    told = job(6, seed=8)
    with lake.job("J") as writer:
        run(writer, told)
    with contextlib.ExitStack() as stack:
        other = LakeJobs.open(lake.address, tmp_path / "other")
        stack.callback(other.close)
        with pytest.raises(StoreError, match="was begun with another checkpoint"):
            LakeJobWriter(other, JobSettings("J", "in"), "another query")
    with lake.job("J") as writer:
        writer.finish()
    with pytest.raises(StoreError, match="is finished"), lake.job("J"):
        pass
    with contextlib.ExitStack() as stack:
        other = LakeJobs.open(lake.address, tmp_path / "other")
        stack.callback(other.close)
        with pytest.raises(StoreError, match="is finished"):
            LakeJobWriter(other, JobSettings("J", "in"), "another query")


def test_what_a_lake_does_not_take(tmp_path: Path) -> None:
    asked: dict[str, Any] = dict.fromkeys(
        ("partitions", "window", "watermark", "lifetime", "idle_after", "dead_letters", "options")
    )
    asked |= {"job": "J", "strategy": "grouping", "partition": "vertical", "functions": False}
    asked |= {"local_batch": 1, "global_batch": 1, "once": True, "checkpoint": None}
    with pytest.raises(HeadwaterError, match="a lake takes dependencies only"):
        settings.given(tmp_path, store=f"delta:{tmp_path / 'lake'}", keep="full", **asked)
    with pytest.raises(HeadwaterError, match="needs checkpoint=, a directory of this machine"):
        settings.given(tmp_path, store="delta:s3://bucket/prov", keep="reduced", **asked)
    assert not list(tmp_path.iterdir())


@pytest.mark.spark
def test_a_directory_is_reduced_into_a_lake(
    lake: Lake, spark: SparkSession, tmp_path: Path
) -> None:
    told = job(20, seed=9)
    lines = shuffled(told, seed=10)
    write(tmp_path / "in", [*lines[:30], {"type": "nonsense"}, *lines[30:]], 3)
    put(tmp_path / "in", 9, END)
    running = hw.reduce_job(tmp_path / "in", store=lake.address, job="J", partitions=2, once=True)
    running.wait()
    assert running.counts.finished is not None
    assert running.dead_letters.is_relative_to(tmp_path / "lake" / "_headwater" / "jobs" / "J")
    assert len(list(running.dead_letters.glob("*.jsonl"))) == 1
    expected = dependencies(told)
    assert lake.dependencies("J") == expected
    with LakeWriter.open(lake.address) as writer:
        compact(writer, spark, keep_hours=0)
    assert lake.dependencies("J") == expected
