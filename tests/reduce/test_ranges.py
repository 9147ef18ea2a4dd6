"""Ranges of files: every line once, whatever the cuts; and what is no plain lines."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.reduce import ranges
from headwater.reduce.ranges import Range, how_to_read, texts

LINES = st.lists(st.sampled_from([b"", b"a", b"bb", b"{}", b"a longer line", "é".encode()]))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ranges") / "file.jsonl"


def read(*parts: Range) -> list[bytes]:
    found: list[bytes] = []
    for part in parts:
        for text in texts(part):
            assert text.too_long is None
            found += text.content.split(b"\n")
    return [line for line in found if line]


@settings(max_examples=300, deadline=None)
@given(LINES, st.booleans(), st.integers(1, 12))
def test_each_line_is_in_one_range(file: Path, lines: list[bytes], ends: bool, most: int) -> None:
    content = b"\n".join(lines) + b"\n" * ends
    file.write_bytes(content)
    parts = list(Range(str(file), 0, len(content)).pieces(most))
    assert all(part.end - part.start <= most for part in parts)
    assert read(*parts) == [line for line in lines if line]


def test_a_file_that_has_grown_since(file: Path) -> None:
    file.write_bytes(b"one\ntwo\nthree\n")
    assert read(Range(str(file), 0, 8)) == [b"one", b"two"]
    assert read(Range(str(file), 8, 14)) == [b"three"]


def test_a_mark_of_byte_order_is_no_text(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf{}\n{}\n")
    assert read(Range(str(file), 0, 9)) == [b"{}", b"{}"]


def test_a_line_too_long_is_told_by_its_beginning(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranges, "LONGEST", 100_000)
    long = b"x" * 300_000
    file.write_bytes(b"one\n" + long + b"\ntwo\n")
    size = file.stat().st_size
    parts = list(Range(str(file), 0, size).pieces(50_000))
    found = [text for part in parts for text in texts(part)]
    assert [text.too_long for text in found if text.too_long] == [long[: ranges.HEAD]]
    assert b"".join(text.content for text in found).split() == [b"one", b"two"]
    whole = list(texts(Range(str(file), 0, size)))
    assert b"two" in whole[0].content


@pytest.mark.parametrize("most", [7, 1 << 20])
def test_packed_files_are_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(ranges, "MOST", most)
    file = tmp_path / "file.jsonl.gz"
    lines = [f"line {n}".encode() for n in range(50)]
    file.write_bytes(gzip.compress(b"\n".join(lines)))
    part = Range(str(file), 0, file.stat().st_size, how_to_read(str(file)))
    assert list(part.pieces(3)) == [part]
    assert read(part) == lines


def test_a_long_line_of_a_packed_file_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranges, "MOST", 64)
    monkeypatch.setattr(ranges, "LONGEST", 100)
    file = tmp_path / "file.jsonl.gz"
    file.write_bytes(gzip.compress(b"one\n" + b"x" * 500 + b"\ntwo\n"))
    found = list(texts(Range(str(file), 0, 1, "packed")))
    assert [text.too_long[:2] for text in found if text.too_long] == [b"xx"]
    assert b"".join(text.content for text in found).split() == [b"one", b"two"]


def test_a_damaged_packed_file(tmp_path: Path) -> None:
    file = tmp_path / "file.jsonl.gz"
    file.write_bytes(gzip.compress(b"one\n" * 1_000)[:-20])
    with pytest.raises(OSError, match="ompressed"):
        list(texts(Range(str(file), 0, 1, "packed")))


@pytest.mark.parametrize(
    ("name", "content", "how"),
    [
        ("a.jsonl", '{"type": "used"}\n{"type": "used"}\n', "lines"),
        ("a.json", '{"group": []}\n', "lines"),
        ("a.json", '{"prefix": {}, "used": {}}\n{"prefix": {}, "used": {}}\n', "lines"),
        ("a.json", '\n{\n  "prefix": {}\n}', "document"),
        ("a.json", '{"prefix": {' + '"a": "b",' * 20_000, "document"),
        ("a.json", '{"type": "us\n{"type": "used"}', "lines"),
        ("a.json", "garbage\n", "lines"),
        ("a.json", "", "lines"),
        ("a.json.gz", "", "packed"),
    ],
)
def test_lines_or_a_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str, how: str
) -> None:
    monkeypatch.setattr(ranges, "LONGEST", 100_000)
    (tmp_path / name).write_text(content)
    assert how_to_read(str(tmp_path / name)) == how
