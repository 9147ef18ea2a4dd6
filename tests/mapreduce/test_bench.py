"""The measurement of window reuse, at a size that says nothing about speed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater.bench.mapreduce import generate, measure


def test_files_are_as_large_as_told_and_the_same_each_time(tmp_path: Path) -> None:
    lines = [generate(tmp_path / name, 2, 50_000) for name in ("a", "b")]
    for number in ("000", "001"):
        data = (tmp_path / "a" / f"{number}.txt").read_bytes()
        assert data == (tmp_path / "b" / f"{number}.txt").read_bytes()
        assert 50_000 <= len(data) < 60_000
    assert lines[0] == lines[1] > 1_000


@pytest.mark.spark
def test_both_ways_give_the_same_and_are_timed(spark: SparkSession, tmp_path: Path) -> None:
    table = measure(size=0.01, files=2, windows=[2], pairs=1, warm_ups=0, folder=tmp_path)
    assert [(row["reduce"], row["files"]) for row in table.rows] == [(0, 1), (1, 2)]
    seconds = [row["reuse s"] for row in table.rows]
    assert seconds == sorted(seconds)
    assert all(row["ratio"] > 0 for row in table.rows)
    assert len(list(table.cells())) == 2
    assert "times sooner" in table.notes[0]
    assert not any(tmp_path.iterdir())
