"""What a live graph leaves on disk for the process after this one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headwater.errors import StoreError
from headwater.live import files

TABLE = pa.table({"id": pa.array([1, 2, 3]), "time": pa.array([10, 20, 30])})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    files.write(tmp_path / "times", 3, TABLE)
    files.write(tmp_path / "times", 3, TABLE.slice(1))
    assert list(files.batches(tmp_path / "times")) == [3]
    assert files.read(tmp_path / "times", 3) == TABLE.slice(1)
    assert [file.name for file in (tmp_path / "times").iterdir()] == ["3.arrow"]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_damaged_file_is_named(tmp_path: Path, share: float) -> None:
    files.write(tmp_path, 3, TABLE)
    file = files.place(tmp_path, 3)
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(StoreError, match=r"3\.arrow is damaged; put a copy of its store"):
        files.read(tmp_path, 3)
    with pytest.raises(FileNotFoundError):
        files.read(tmp_path, 4)
