"""What a task makes of its part of the input: blocks by bucket, facts, and the job's end."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.reduce.blocks import Block
from headwater.reduce.facts import EDGES_ROW, END, FACTS, TICK, Facts
from headwater.reduce.intake import UNORDERED, Intake
from headwater.reduce.ranges import Range, how_to_read

KEYS = (5, 7, 9)
INTAKE = Intake("count", "random", KEYS)
TIMED = Intake("count", "random", KEYS, timed=True)


def used(activity: str, **more: object) -> str:
    return json.dumps({"type": "used", "activity": activity, "entity": "in", **more}) + "\n"


def rows(batches: Iterator[pa.RecordBatch]) -> list[dict[str, Any]]:
    return pa.Table.from_batches(list(batches)).to_pylist()


def taken(intake: Intake, home: Path, *contents: str) -> list[dict[str, Any]]:
    """The rows of some files, a part each."""
    numbered = []
    for part, content in enumerate(contents):
        file = home / f"{part}.jsonl"
        file.write_text(content)
        numbered.append((part, Range(str(file), 0, len(content), how_to_read(str(file)))))
    return rows(intake.ranges(numbered))


def facts(made: list[dict[str, Any]]) -> Facts:
    return Facts.sum([Facts.from_bytes(r["payload"]) for r in made if r["kind"] == FACTS])


def edges(made: list[dict[str, Any]]) -> Block:
    return Block.joined(
        [Block.empty()] + [Block.from_bytes(r["payload"]) for r in made if r["kind"] == EDGES_ROW]
    )


def test_edges_go_to_the_keys_of_their_buckets(tmp_path: Path) -> None:
    made = taken(INTAKE, tmp_path, "".join(used(f"a{n}") for n in range(60)), used("b"))
    assert {r["bucket"] for r in made if r["kind"] == EDGES_ROW} == set(KEYS)
    assert Counter(r["kind"] for r in made)[EDGES_ROW] <= 4
    assert len(edges(made)) == 61
    assert facts(made).elements == 61
    assert facts(made).size == sum(file.stat().st_size for file in tmp_path.iterdir())
    assert {r["part"] for r in made} == {0, 1}
    assert all(r["time"] is None for r in made)


def test_what_is_wrong_is_told_with_its_place(tmp_path: Path) -> None:
    made = taken(INTAKE, tmp_path, used("a") + "garbage\n" + used("a") + '{"type": "agent"}\n')
    found = facts(made)
    [letter] = found.letters.to_pylist()
    assert letter["line"] == "garbage"
    assert letter["where"].endswith("0.jsonl, line 2")
    assert found.filtered == {"agent": 1}


def test_the_end_goes_to_every_bucket_and_cuts_the_part(tmp_path: Path) -> None:
    end = '{"type": "end", "job": "count"}\n'
    made = taken(INTAKE, tmp_path, used("a") + end + used("b") + "\n" + used("c"), used("d"))
    assert [(r["bucket"], r["part"]) for r in made if r["kind"] == END] == [(k, 0) for k in KEYS]
    assert len(edges([r for r in made if r["part"] == 0])) == 1
    letters = facts(made).letters.to_pylist()
    assert [json.loads(letter["line"])["activity"] for letter in letters] == ["b", "c"]
    assert {letter["reason"] for letter in letters} == {"job 'count' is finished"}


def test_only_this_jobs_end_is_one(tmp_path: Path) -> None:
    lines = '{"type": "end", "job": "other"}\n' + used("a", note='"end"', function="end")
    made = taken(INTAKE, tmp_path, lines + used("end"))
    assert not [r for r in made if r["kind"] == END]
    assert len(edges(made)) == 2
    assert facts(made).letters.num_rows == 1


def test_a_document_is_read_as_one(tmp_path: Path) -> None:
    document = {"prefix": {}, "used": {"u": {"prov:activity": "a", "prov:entity": "in"}}}
    made = taken(INTAKE, tmp_path, json.dumps(document, indent=2))
    assert sorted(edges(made).names.to_pylist()) == ["a", "in"]


def test_a_file_that_is_gone_is_a_letter(tmp_path: Path) -> None:
    made = rows(INTAKE.ranges([(0, Range(str(tmp_path / "gone"), 0, 10))]))
    [letter] = facts(made).letters.to_pylist()
    assert letter["reason"] == "the file can't be read: No such file or directory"
    assert letter["line"] == str(tmp_path / "gone")


def test_by_time_every_bucket_is_told_that_something_came(tmp_path: Path) -> None:
    made = taken(TIMED, tmp_path, used("a", time=2_000) + used("a", time=1_000))
    assert [r["bucket"] for r in made if r["kind"] == TICK] == list(KEYS)
    assert [r["time"].timestamp() for r in made if r["time"] is not None] == [2.0]
    assert len({r["bucket"] for r in made if r["kind"] == EDGES_ROW}) == 1


def test_by_time_an_element_needs_one(tmp_path: Path) -> None:
    made = taken(TIMED, tmp_path, used("a", time=2_000) + used("b"))
    assert len(edges(made)) == 1
    assert facts(made).elements == 1
    [letter] = facts(made).letters.to_pylist()
    assert "`time` is missing" in letter["reason"]
    assert json.loads(letter["line"]) == {"type": "used", "activity": "b", "entity": "in"}


def test_messages_are_elements_too() -> None:
    texts = [
        used("a"),
        None,
        '{"type":\n "used", "activity": "b",\r\n "entity": "in"}',
        "{",
        used("c"),
    ]
    values = pa.RecordBatch.from_arrays([pa.array(texts)], ["value"])
    made = rows(INTAKE.values(iter([values, values])))
    assert len(edges(made)) == 6
    assert facts(made).letters.num_rows == 2
    assert {r["part"] for r in made} == {UNORDERED}
    ends = pa.RecordBatch.from_arrays([pa.array(['{"type": "end"}', used("d")])], ["value"])
    made = rows(INTAKE.values(iter([values, ends, values])))
    assert len(edges(made)) == 3
    assert facts(made).letters.num_rows == 1 + 1 + 4
    assert [r["part"] for r in made if r["kind"] == END] == [UNORDERED] * 3


def test_no_messages_make_no_rows() -> None:
    empty = pa.RecordBatch.from_arrays([pa.array([], pa.string())], ["value"])
    assert list(INTAKE.values(iter([empty]))) == []
