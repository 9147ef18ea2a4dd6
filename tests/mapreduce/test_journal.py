"""The journal: what it tells after any end."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from headwater.errors import RunError
from headwater.mapreduce.journal import Input, Journal, Reduce, State
from headwater.mapreduce.scanning import Seen
from headwater.mapreduce.windows import Change, Member


def state_of(folder: Path) -> State:
    with closing(Journal(folder)) as journal:
        return journal.state


def filled(folder: Path) -> Journal:
    journal = Journal(folder)
    for number in range(3):
        journal.take(Seen(number * 1000, f"f{number}", 5), number)
    journal.mapped(0, 4, 1)
    journal.failed(1, "no text")
    journal.decide(Change(0, (Member(0, 0),), 0))
    journal.done(0, 7, 2)
    return journal


def test_it_tells_what_comes_next(tmp_path: Path) -> None:
    filled(tmp_path).close()
    state = state_of(tmp_path)
    assert state.to_map() == [Input(2, "f2", 5, 2000, 2)]
    assert state.to_place() == [], "the third is not mapped yet"
    assert (state.done, state.reduces, state.clock, state.results) == (1, 1, 0, 7)
    assert state.letters == 1 + 1 + 2
    assert state.in_use() == {0, 1, 2}
    again = Journal(tmp_path)
    again.changed(2, Seen(9_000, "f2", 6))
    again.mapped(2, 1, 0)
    assert again.state.to_place() == [Member(2, 2)], "what failed is passed over"
    again.decide(Change(2, (Member(2, 2),), 2))
    assert again.state.waiting == {1: Reduce(1, 2, (2,))}
    assert again.state.in_use() == {2}
    assert again.state.inputs[2].size == 6
    again.close()


def test_cut_off_anywhere_it_tells_a_state_that_was(tmp_path: Path) -> None:
    journal = filled(tmp_path / "whole")
    journal.close()
    data = journal.path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(data) if byte == ord("\n")]
    for cut in {*ends, *(end - 1 for end in ends), *(end + 3 for end in ends[:-1])}:
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / "journal.jsonl").write_bytes(data[:cut])
        journal = Journal(folder)
        whole = max([end for end in ends if end <= cut], default=0)
        assert (folder / "journal.jsonl").stat().st_size == whole
        journal.take(Seen(1, "later", 1), 1)  # and it goes on
        journal.close()
        assert "later" in state_of(folder).names


def test_damage_is_told_with_its_line(tmp_path: Path) -> None:
    filled(tmp_path).close()
    path = tmp_path / "journal.jsonl"
    path.write_bytes(path.read_bytes().replace(b'{"failed"', b'{"feiled"'))
    with pytest.raises(RunError, match="journal.jsonl:5 is damaged"):
        Journal(tmp_path)
