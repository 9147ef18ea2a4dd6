"""Validating files and folders: what is in them, and where what is wrong stands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwater.errors import HeadwaterError
from headwater.reduce import validating
from headwater.reduce.validating import validate

USED = '{"type": "used", "activity": "m1", "entity": "in-7"}'
DOCUMENT = {
    "entity": {"e": {}},
    "used": {"_:u1": {"prov:activity": "a", "prov:entity": "e"}, "_:u2": {"prov:activity": "a"}},
}


def test_a_folder_of_both(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        f'{USED}\n\n{{"type": "agent"}}\nnonsense\n{{"type": "end", "job": "J"}}\n'
    )
    (tmp_path / "b.json").write_text(json.dumps(DOCUMENT, indent=1))
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "c.jsonl").write_text(json.dumps(DOCUMENT) + "\n" + USED)
    (tmp_path / ".a.jsonl.writing").write_text("nonsense")
    (tmp_path / "_SUCCESS").write_text("nonsense")
    report = validate(tmp_path)
    assert (report.files, report.documents) == (3, 1)
    assert report.bytes == sum(
        (tmp_path / name).stat().st_size for name in ("a.jsonl", "b.json", "more/c.jsonl")
    )
    assert report.edges == {"used": 4}
    assert report.filtered == {"agent": 1, "entity": 2}
    assert report.ends == ["J"]
    assert not report.valid
    assert [str(place) for place in report.first] == [
        f"{tmp_path}/a.jsonl:4: not JSON: Expecting value at column 1",
        f"{tmp_path}/b.json:10: used '_:u2': `entity` is missing",
        f"{tmp_path}/more/c.jsonl:1: used '_:u2': `entity` is missing",
    ]
    assert report.first[0].text == "nonsense"


def test_a_valid_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(USED)
    report = validate(tmp_path / "a.jsonl")
    assert report.valid
    assert report.edges == {"used": 1}


def test_a_job(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(f'{USED[:-1]}, "job": "K"}}\n{USED}')
    assert validate(tmp_path).valid
    report = validate(tmp_path, "J")
    assert [place.reason for place in report.first] == ["it is of job 'K', not of 'J'"]


@pytest.mark.parametrize("block", [1, 7, 60, 200, 100_000])
def test_blocks_keep_lines_and_their_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(validating, "_BLOCK", block)
    lines = [USED.replace("in-7", "é" * number) for number in range(1, 40)]
    for place in (3, 20, 38):
        lines[place] = "{}"
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    report = validate(tmp_path)
    assert report.edges == {"used": 36}
    assert [place.line for place in report.first] == [4, 21, 39]


def test_only_the_first_are_shown(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{}\n" * 50)
    (tmp_path / "b.jsonl").write_text("{}\n" * 50)
    report = validate(tmp_path, show=60)
    assert report.rejected == 100
    assert len(report.first) == 60
    assert report.first[-1].line == 10


def test_nothing_to_validate(tmp_path: Path) -> None:
    with pytest.raises(HeadwaterError, match="has no files to validate"):
        validate(tmp_path)
    with pytest.raises(HeadwaterError, match="there is no file or folder .*gone"):
        validate(tmp_path / "gone")
