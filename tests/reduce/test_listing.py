"""The list of a job's files: in order, as found, and the same after a restart."""

from __future__ import annotations

import os
import time
from itertools import pairwise
from pathlib import Path

import pytest

from headwater.reduce.listing import Listing, Position


class Folder:
    """A job's directory; files are as old as they say."""

    def __init__(self, home: Path) -> None:
        self.place = home / "in"
        self.log = home / "log" / "files.jsonl"
        self.place.mkdir()

    def put(self, name: str, text: str, age: float = 100.0) -> None:
        file = self.place / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        os.utime(file, (time.time() - age, time.time() - age))

    def listing(self) -> Listing:
        return Listing(str(self.place), str(self.log))

    def parts(self, listing: Listing, start: Position, end: Position) -> list[tuple[str, int, int]]:
        return [
            (os.path.relpath(part.path, self.place), part.start, part.end)
            for part in listing.between(start, end)
        ]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_files_come_oldest_first_and_hidden_ones_not_at_all(folder: Folder) -> None:
    folder.put("b.jsonl", "12\n", age=30)
    folder.put("a.jsonl", "1\n", age=20)
    folder.put("node-1/c.jsonl", "123\n", age=40)
    folder.put(".hidden", "1\n")
    folder.put("_temporary/d.jsonl", "1\n")
    listing = folder.listing()
    listing.look()
    assert folder.parts(listing, Position(), listing.end) == [
        ("node-1/c.jsonl", 0, 4),
        ("b.jsonl", 0, 3),
        ("a.jsonl", 0, 2),
    ]


def test_a_position_means_the_same_after_a_restart(folder: Folder) -> None:
    folder.put("b.jsonl", "1\n", age=10)
    listing = folder.listing()
    listing.look()
    before = listing.end
    folder.put("a.jsonl", "2\n", age=20)  # older, but found later
    listing.look()
    again = folder.listing()
    again.look()
    assert again.end == listing.end
    assert folder.parts(again, Position(), before) == [("b.jsonl", 0, 2)]
    assert folder.parts(again, before, again.end) == [("a.jsonl", 0, 2)]


def test_a_list_that_was_cut_by_a_kill_is_mended(folder: Folder) -> None:
    folder.put("a.jsonl", "1\n", age=20)
    listing = folder.listing()
    listing.look()
    end = listing.end
    with folder.log.open("a") as log:
        log.write('["/half')
    folder.put("b.jsonl", "1\n", age=10)
    again = folder.listing()
    assert again.end == end
    again.look()
    assert folder.parts(folder.listing(), end, again.end) == [("b.jsonl", 0, 2)]


def test_what_a_file_has_grown_by_comes_as_well(folder: Folder) -> None:
    folder.put("a.jsonl", "1\n", age=20)
    listing = folder.listing()
    listing.look()
    first = listing.end
    folder.put("a.jsonl", "1\n22\n", age=10)
    listing.look()
    assert folder.parts(listing, first, listing.end) == [("a.jsonl", 2, 5)]
    listing.look()
    assert listing.end == Position(2)


def test_a_file_in_the_making_waits(folder: Folder) -> None:
    folder.put("a.jsonl", '1\n{"ty', age=0)
    folder.put("b.json", '{\n"prefix": {}', age=0)
    folder.put("c.jsonl", "1\n", age=0)
    listing = folder.listing()
    listing.look()
    assert folder.parts(listing, Position(), listing.end) == [("c.jsonl", 0, 2)]
    folder.put("a.jsonl", '1\n{"ty', age=60)
    listing.look()
    assert folder.parts(listing, Position(1), listing.end) == [("a.jsonl", 0, 6)]
    listing.look(now=True)
    assert folder.parts(listing, Position(2), listing.end) == [("b.json", 0, 14)]


def test_one_file_is_a_directory_of_its_own(folder: Folder) -> None:
    folder.put("a.jsonl", "1\n")
    folder.put("b.jsonl", "1\n")
    listing = Listing(str(folder.place / "a.jsonl"), str(folder.log))
    listing.look()
    assert listing.end == Position(1)


@pytest.mark.parametrize("most", [1, 4, 7, 10, 100])
def test_batches_of_so_many_bytes_cover_all(folder: Folder, most: int) -> None:
    sizes = {"a.jsonl": 10, "b.jsonl": 3, "c.jsonl": 25, "d.jsonl": 1}
    for age, (name, size) in enumerate(sizes.items()):
        folder.put(name, "x" * (size - 1) + "\n", age=100 - age)
    listing = folder.listing()
    listing.look()
    at, found = Position(), []
    while (after := listing.after(at, most, listing.end)) != at:
        parts = folder.parts(listing, at, after)
        assert sum(end - start for _, start, end in parts) <= max(most, 1)
        found += parts
        at = after
    assert at == listing.end
    for name, size in sizes.items():
        covered = [(start, end) for one, start, end in found if one == name]
        assert covered[0][0] == 0
        assert covered[-1][1] == size
        assert all(a[1] == b[0] for a, b in pairwise(covered))


def test_a_document_is_never_cut(folder: Folder) -> None:
    folder.put("a.json", '{\n"prefix": {}' + " " * 50 + "}")
    listing = folder.listing()
    listing.look()
    assert listing.after(Position(), 5, listing.end) == Position(1)
