"""`headwater bench reduce`: every part, at a size that says nothing about speed."""

from __future__ import annotations

import os
from json import loads
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from headwater.bench import entities, figures, processes, reduce, reduce_runs, reduce_stages
from headwater.bench.meter import Usage
from headwater.bench.report import Table
from headwater.cli import app
from headwater.cli.bench import ReducePart
from headwater.errors import HeadwaterError
from headwater.examples.hashtag_provenance import Made, provenance


def measured(part: str, tmp_path: Path, **options: Any) -> list[Table]:
    tables = list(reduce.measure(part, folder=tmp_path, pairs=1, **options))
    assert not any(tmp_path.iterdir())
    for table in tables:
        assert len(list(table.cells())) == len(table.rows)
    return tables


def test_every_part_can_be_asked_for() -> None:
    assert {part.value for part in ReducePart} == {*reduce.PARTS, "all"}
    assert set(reduce.EDGES) == set(reduce.PARTS)


def test_the_stages_add_up(tmp_path: Path) -> None:
    [table] = measured("ceiling", tmp_path, edges=5_000)
    *stages, total = table.rows
    assert [row["stage"] for row in stages] == list(reduce_stages.STAGES)
    assert sum(row["CPU s"] for row in stages) == pytest.approx(total["CPU s"], abs=0.01)
    assert total["share"] == 1


def test_what_reducers_leave(tmp_path: Path) -> None:
    made = provenance(tmp_path / "told", 30_000, files=4)
    for file in made.files:
        file.unlink()
    (tmp_path / "told").rmdir()
    first, second = reduce_stages.partitionings(30_000, batches=[1_000, 30_000], folder=tmp_path)
    assert {row["after global"] for row in first.rows} == {made.dependencies}
    for row in first.rows:
        assert row["after global"] < row["after local"] < row["edges"] == made.edges
        assert row["MB after local"] < row["MB"]
    small, large = second.rows
    # A combine uses what maps of the same node made; no execution uses what its own function made.
    assert large["vertical"] < small["vertical"]
    assert large["vertical"] < large["random"] < large["horizontal"]


def test_one_entity_is_asked_for_across_two_jobs(tmp_path: Path) -> None:
    table = entities.measure(4_000, lookups=5, folder=tmp_path)
    rows = {row["asked"]: row["rows"] for row in table.rows}
    # Four of the first job's outputs, each of four inputs, of which neighbours share three.
    assert rows["backward, two jobs"] == 7
    assert rows["backward, one job"] == 4
    assert rows["depends"] == 1
    assert rows["forward, two jobs"] >= 4


def test_accuracy_out_of_order_is_a_part(tmp_path: Path) -> None:
    [table] = measured("disorder", tmp_path, edges=1_500)
    exact = next(row for row in table.rows if row["algorithm"] == "grouping, Headwater")
    assert exact["50 %"] == 100


def test_goals_are_of_each_core() -> None:
    made = [reduce_runs.reached(rate) for rate in (14.99, 15.0, 40.0)]
    assert made == ["missed: < 15", "met: ≥ 15", "met: ≥ 40"]


def test_more_cores_than_there_are_is_refused(tmp_path: Path) -> None:
    many = len(os.sched_getaffinity(0)) + 1
    with pytest.raises(HeadwaterError, match=f"cores={many}"):
        measured("throughput", tmp_path, edges=1_000, cores=[many])


def test_memory_is_that_of_all_processes() -> None:
    assert processes.held(os.getpid()) > 10 << 20
    assert processes.held(2**22 + 1) == 0
    with processes.Peaks([os.getpid()]) as peaks:
        recent = peaks.since()
    assert recent["driver"] > 10 << 20
    assert peaks.highest["all"] >= recent["driver"]


def test_a_wrong_count_voids_the_measurement() -> None:
    made = Made([], 10, 100, 3, 2, dependencies=7)
    usage = Usage(1.0, 1.0, 1)
    ran = reduce_runs.Ran(usage, usage, 6, [], {})
    with pytest.raises(HeadwaterError, match="void"):
        reduce_runs._require_all(ran, made)


@pytest.mark.spark
def test_a_whole_job_through_the_command(tmp_path: Path) -> None:
    args = ["--part", "throughput", "--edges", "2000", "--pairs", "1", "--cores", "1"]
    shown = CliRunner().invoke(app, ["bench", "reduce", *args, "--folder", str(tmp_path), "--json"])
    assert shown.exit_code == 0, shown.output
    report = loads(shown.stdout)
    [row] = report["suites"]["throughput"][0]["rows"]
    assert row["cores"] == 1
    assert row["MB/s"] > 0
    assert row["JVM MiB"] > 100
    assert row["peak MiB"] >= row["JVM MiB"]
    assert 0 < row["of that finishing"] < row["seconds"]
    page = figures.updated(f"{figures.BEGIN}\n{figures.END}\n", [report])
    assert "| cores | MB/s |" in page
    assert not any(tmp_path.iterdir())
