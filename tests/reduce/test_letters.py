"""Dead letters: one file for each batch, the same however often the batch runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwater.errors import RunError
from headwater.reduce.facts import letters
from headwater.reduce.letters import Letters, by_reason


def read(folder: Path) -> dict[str, list[dict[str, object]]]:
    return {
        file.name: [json.loads(line) for line in file.read_text().split("\n") if line]
        for file in sorted(folder.iterdir())
    }


def test_a_batch_writes_one_file(tmp_path: Path) -> None:
    kept = Letters(tmp_path / "letters")
    kept.require_writable()
    kept.write(3, [letters("bad", "a.jsonl", ["x", "ü"]), letters("late", "watermark", ["y"])])
    kept.write(4, [letters("bad", "a.jsonl", [])])
    assert read(tmp_path / "letters") == {
        "batch-00000003.jsonl": [
            {"reason": "bad", "where": "a.jsonl", "line": "x"},
            {"reason": "bad", "where": "a.jsonl", "line": "ü"},
            {"reason": "late", "where": "watermark", "line": "y"},
        ]
    }


def test_a_batch_that_runs_again_writes_its_file_anew(tmp_path: Path) -> None:
    kept = Letters(tmp_path)
    kept.write(3, [letters("bad", "a", ["x", "y"])])
    kept.write(3, [letters("bad", "a", ["x"])])
    assert len(read(tmp_path)["batch-00000003.jsonl"]) == 1
    kept.write(3, [])
    assert read(tmp_path) == {}


def test_a_batch_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    kept = Letters(tmp_path)
    kept.write(3, [letters("bad", "a", ["x"])])

    def failing():
        yield letters("bad", "a", ["y"])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kept.write(3, failing())
    assert (tmp_path / "batch-00000003.jsonl").read_text().count("\n") == 1


def test_lines_that_are_no_json_are_kept_as_they_are(tmp_path: Path) -> None:
    odd = 'a"\\\n\t\u2028{\x00'
    Letters(tmp_path).write(0, [letters("bad", "a", [odd])])
    [[letter]] = read(tmp_path).values()
    assert letter["line"] == odd


def test_cycles_are_told_by_their_members(tmp_path: Path) -> None:
    kept = Letters(tmp_path)
    kept.write_cycles("cycles", "count", [("a", "b"), ("c",)])
    assert [letter["vertices"] for letter in read(tmp_path)["cycles.jsonl"]] == [["a", "b"], ["c"]]
    kept.write_cycles("none", "count", [])
    assert list(read(tmp_path)) == ["cycles.jsonl"]


def test_a_folder_that_can_not_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="dead letters can't be written to .*file/x"):
        Letters(tmp_path / "file" / "x").require_writable()


def test_reasons_are_counted_without_their_names_and_numbers() -> None:
    found = by_reason(
        {
            "not JSON: Expecting value at column 7": 2,
            "not JSON: Expecting value at column 1,234": 1,
            "`entity` has 5,000 bytes: at most 4,096 are allowed": 1,
            "type 'it\\'s' is unknown": 1,
            'type "it\'s" is unknown': 1,
        }
    )
    assert found == {
        "not JSON: Expecting value at column …": 3,
        "`entity` has … bytes: at most … are allowed": 1,
        "type '…' is unknown": 2,
    }
