"""`headwater bench reduce`: every part, at a size that says nothing about speed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from headwater.bench import processes, reduce, reduce_runs
from headwater.bench.meter import Usage
from headwater.bench.report import Table
from headwater.cli.bench.reduce import ReducePart
from headwater.errors import HeadwaterError
from headwater.examples.hashtag_provenance import Made


def measured(part: str, tmp_path: Path, **options: Any) -> list[Table]:
    tables = list(reduce.measure(part, folder=tmp_path, pairs=1, **options))
    assert not any(tmp_path.iterdir())
    for table in tables:
        assert len(list(table.cells())) == len(table.rows)
    return tables


def test_every_part_can_be_asked_for() -> None:
    assert {part.value for part in ReducePart} == {*reduce.PARTS, "all"}
    assert set(reduce.EDGES) == set(reduce.PARTS)


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
