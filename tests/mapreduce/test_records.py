"""Files as records: every line once, with its number, however the file is cut."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.errors import FlowError
from headwater.mapreduce.records import Format, Unreadable, parts, read, rows

TEXT = Format.of("text", None)


def all_of(path: Path, format: Format, size: int = 8) -> tuple[list[Any], list[tuple[int, str]]]:
    """Every record with its number, and what was rejected."""
    rejected: list[tuple[int, str]] = []
    found = [
        tuple(row.values())
        for part in parts(7, path, format, size)
        for batch in read(part, format, lambda row, reason, _: rejected.append((row, reason)))
        for row in batch.to_pylist()
    ]
    return found, rejected


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=60).map(lambda b: b.replace(b"z", b"\n")), st.integers(1, 20))
def test_a_text_is_its_lines_however_it_is_cut(tmp_path: Path, data: bytes, size: int) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    expected = [(n, line.rstrip(b"\r").decode("utf-8", "replace")) for n, line in enumerate(lines)]
    assert all_of(path, TEXT, size)[0] == expected
    wanted = list(range(0, len(expected), 2))
    found = [tuple(row.values()) for row in rows(7, path, TEXT, wanted).to_pylist()]
    assert found == expected[::2]


def test_a_large_text_has_parts(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("".join(f"line {n}\n" for n in range(1_000)))
    cut = parts(7, path, TEXT, 1_000)
    assert len(cut) == 9
    assert [part.number for part in cut] == list(range(9))
    (tmp_path / "b.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert all_of(tmp_path / "b.gz", TEXT) == all_of(path, TEXT, 1_000)


def test_parquet_has_its_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"other": ["x"] * 10, "n": pa.array(range(10), pa.int32())})
    pq.write_table(table, path, row_group_size=3)
    numbers = Format.of("parquet", "n bigint")
    assert [part.first for part in parts(7, path, numbers, 1)] == [0, 3, 6, 9]
    assert all_of(path, numbers, 1)[0] == [(n, n) for n in range(10)]
    with pytest.raises(Unreadable, match="no column 'm'"):
        all_of(path, Format.of("parquet", "m bigint"))


def test_bad_rows_of_csv_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('k,n,more\na,1,\n"b\nc",2,\nd,two,\ne\nf,3,\n')
    found, rejected = all_of(path, Format.of("csv", "k string, n bigint"))
    assert found == [(0, "a", 1), (1, "b\nc", 2), (4, "f", 3)]
    assert sorted(rejected) == [
        (2, "column 'n': 'two' is not a bigint"),
        (3, "1 values for 3 columns"),
    ]


@pytest.mark.parametrize("format", ["text", "csv", "json", "parquet"])
def test_an_empty_file_has_no_record(tmp_path: Path, format: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"")
    if format == "parquet":
        pq.write_table(pa.table({"n": pa.array([], pa.int64())}), path)
    assert all_of(path, Format.of(format, None if format == "text" else "n bigint")) == ([], [])


def test_what_can_t_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(b"no gzip")
    with pytest.raises(Unreadable, match="Not a gzipped file"):
        all_of(tmp_path / "a.gz", TEXT)
    with pytest.raises(Unreadable, match="No such file"):
        all_of(tmp_path / "none", TEXT)
    with pytest.raises(Unreadable, match="Parquet"):
        all_of(tmp_path / "a.gz", Format.of("parquet", "n bigint"))
    with pytest.raises(FlowError, match="needs the columns"):
        Format.of("csv", None)
    with pytest.raises(FlowError, match="none of text"):
        Format.of("doc", None)
