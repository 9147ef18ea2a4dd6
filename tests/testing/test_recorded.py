"""Reading a Spark checkpoint: which files each batch had, and its watermark."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from headwater.flow import nodes
from headwater.testing import InterpreterError, arrival_places, read_checkpoint
from tests.testing.tables import source


def checkpoint(root: Path, batches: list[tuple[int, list[str]]], logs: list[list[str]]) -> Path:
    """A checkpoint of batches (watermark, offset lines) and source logs (a file per offset)."""
    for number, (watermark, offsets) in enumerate(batches):
        lines = ["v1", json.dumps({"batchWatermarkMs": watermark}), *offsets]
        (root / "offsets").mkdir(parents=True, exist_ok=True)
        (root / "offsets" / str(number)).write_text("\n".join(lines))
        (root / "offsets" / f".{number}.crc").write_text("")
    for i, log in enumerate(logs):
        folder = root / "sources" / str(i)
        folder.mkdir(parents=True)
        for at, name in enumerate(log):
            entry = {"path": f"file:///data/{name}", "timestamp": 1, "batchId": at}
            (folder / str(at)).write_text("v1\n" + json.dumps(entry))
    return root


def at(n: int) -> str:
    return json.dumps({"logOffset": n})


def test_each_batch_has_its_files_and_watermark(tmp_path: Path) -> None:
    batches = [(0, [at(0), "-"]), (1000, [at(1), at(0)]), (2000, [at(1), at(0)])]
    found = read_checkpoint(checkpoint(tmp_path, batches, [["a/x y", "a/1"], ["b/0"]]))
    assert found.watermarks == [0, 1000, 2000]
    assert found.of("/data/a") == [[Path("/data/a/x y")], [Path("/data/a/1")], []]
    assert found.of("/data/b") == [[], [Path("/data/b/0")], []]


def test_a_source_may_be_in_the_plan_twice(tmp_path: Path) -> None:
    batches = [(0, [at(0), at(0), at(0)]), (9, [at(1), at(0), at(1)])]
    found = read_checkpoint(checkpoint(tmp_path, batches, [["a/0", "a/1"], ["b/0"]]))
    assert found.files == [[Path("/data/a/0"), Path("/data/b/0")], [Path("/data/a/1")]]


def test_compacted_logs_repeat_what_was_before(tmp_path: Path) -> None:
    place = checkpoint(tmp_path, [(0, [at(0)]), (0, [at(1)])], [["a/0", "a/1"]])
    entries = [{"path": f"file:///data/a/{i}", "batchId": i} for i in (0, 1)]
    (place / "sources/0/1").unlink()
    (place / "sources/0/1.compact").write_text("\n".join(["v1", *map(json.dumps, entries)]))
    assert read_checkpoint(place).files == [[Path("/data/a/0")], [Path("/data/a/1")]]


def test_a_purged_checkpoint_is_refused(tmp_path: Path) -> None:
    place = checkpoint(tmp_path, [(0, [at(0)]), (0, [at(1)])], [["a/0", "a/1"]])
    (place / "offsets/0").unlink()
    with pytest.raises(InterpreterError, match="not all there"):
        read_checkpoint(place)


def test_places_are_the_files_time_and_row_or_the_id(tmp_path: Path) -> None:
    early, late = tmp_path / "early", tmp_path / "late"
    for file, milliseconds in ((early, 1_700_000_000_123), (late, 1_700_000_000_124)):
        file.touch()
        os.utime(file, ns=(milliseconds * 1_000_000,) * 2)
    rows = [(9, None, 0, 0), (8, None, 0, 0)]
    parquet = replace(source(), format="parquet")
    first, second = (arrival_places(parquet, file, rows) for file in (early, late))
    assert [first[1] - first[0], second[1] - second[0]] == [1, 1]
    assert first[1] < second[0]
    assert arrival_places(replace(source(), format="kafka"), early, rows) == [9, 8]
    by_content = replace(source(), format="csv", identity=nodes.Identity("content", ()))
    with pytest.raises(InterpreterError, match="has no places"):
        arrival_places(by_content, early, rows)


def test_a_checkpoint_without_a_batch(tmp_path: Path) -> None:
    for name in ("offsets", "commits", "sources/0"):
        (tmp_path / name).mkdir(parents=True)
    found = read_checkpoint(tmp_path)
    assert (found.files, found.watermarks) == ([], [])
