"""The measurement of window reuse, at a size that says nothing about speed."""

from __future__ import annotations

from pathlib import Path

from headwater.bench.mapreduce import generate


def test_files_are_as_large_as_told_and_the_same_each_time(tmp_path: Path) -> None:
    lines = [generate(tmp_path / name, 2, 50_000) for name in ("a", "b")]
    for number in ("000", "001"):
        data = (tmp_path / "a" / f"{number}.txt").read_bytes()
        assert data == (tmp_path / "b" / f"{number}.txt").read_bytes()
        assert 50_000 <= len(data) < 60_000
    assert lines[0] == lines[1] > 1_000
