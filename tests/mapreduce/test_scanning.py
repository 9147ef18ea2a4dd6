"""Which files are taken, and when it ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headwater.errors import RunError
from headwater.mapreduce.scanning import Found, Scanner, Seen

S = 1_000_000_000
NOW = 1_700_000_000 * S


def put(folder: Path, name: str, text: str, at: int) -> None:
    (folder / name).write_text(text)
    os.utime(folder / name, ns=(at, at))


def names(found: tuple[Seen, ...]) -> list[str]:
    return [seen.name for seen in found]


def test_half_written_files_are_left(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", ".c.txt", "_d.txt", "e.txt.tmp", "f.csv", "shutdown.txt"):
        put(tmp_path, name, "x", NOW - 60 * S)
    (tmp_path / "folder.txt").mkdir()
    put(tmp_path, "growing.txt", "x", NOW)
    put(tmp_path, "first.txt", "x", NOW - 90 * S)
    found = Scanner(tmp_path, "*.txt", 1).look({}, NOW)
    assert names(found.whole) == ["first.txt", "a.txt", "b.txt"], "by time, then by name"
    assert names(found.growing) == ["growing.txt"]


def test_a_file_is_whole_once_it_stays_as_it_is(tmp_path: Path) -> None:
    scanner = Scanner(tmp_path, "*", 2)
    ahead = NOW + 3_600 * S  # its time says nothing
    put(tmp_path, "a", "x", ahead)
    assert names(scanner.look({}, NOW).whole) == []
    assert names(scanner.look({}, NOW + S).whole) == []
    put(tmp_path, "a", "xx", ahead)
    assert names(scanner.look({}, NOW + 2 * S).whole) == [], "it has grown"
    assert names(scanner.look({}, NOW + 4 * S).whole) == ["a"]
    assert names(scanner.look({"a"}, NOW + 5 * S).whole) == [], "it is known"


def test_it_ends_after_what_came_before_the_end() -> None:
    end = Seen(50, "shutdown.txt", 0)
    before, after = Seen(50, "a", 1), Seen(51, "b", 1)
    assert Found((before, after), (), end).taken == (before,)
    assert Found((before,), (after,), end).ends
    assert not Found((), (before,), end).ends, "what came before it still grows"
    assert not Found((before,), (), None).ends


def test_no_directory_is_told(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="No such file or directory"):
        Scanner(tmp_path / "none", "*", 1).look({}, NOW)
