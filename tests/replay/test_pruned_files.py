"""Which files a replay leaves out by their statistics: none that may have what it needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.replay.reading import may_hold

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIME = pa.timestamp("us", "UTC")


def node(column: str = "ts", format: str = "parquet") -> Any:
    return SimpleNamespace(event_time=column, format=format)


def written(path: Path, micros: list[int | None], kind: pa.DataType = TIME, **how: Any) -> str:
    times = [None if one is None else EPOCH + timedelta(microseconds=one) for one in micros]
    if kind.tz is None:
        times = [one and one.replace(tzinfo=None) for one in times]
    pq.write_table(pa.table({"ts": pa.array(times, kind), "v": [1] * len(micros)}), path, **how)
    return str(path)


@given(
    micros=st.lists(st.none() | st.integers(-50, 50), max_size=12),
    spans=st.lists(st.tuples(st.integers(-60, 60), st.integers(-60, 60)), max_size=3),
    size=st.integers(1, 5),
)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_file_with_a_record_in_a_span_is_left_out(
    tmp_path: Path, micros: list[int | None], spans: list[tuple[int, int]], size: int
) -> None:
    path = written(tmp_path / "a.parquet", micros, row_group_size=size)
    held = any(one is not None and a <= one <= b for one in micros for a, b in spans)
    assert may_hold(node(), path, spans) or not held


def test_files_of_other_times_are_left_out(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", [10, None, 20])
    assert may_hold(node(), path, [(20, 30)])
    assert may_hold(node(), path, [(-5, 10)])
    assert not may_hold(node(), path, [(21, 30), (-5, 9)])
    assert not may_hold(node(), path, [])
    assert not may_hold(node(), written(tmp_path / "b.parquet", [None, None]), [(0, 99)])


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        (pa.timestamp("us"), {}),
        (TIME, {"use_deprecated_int96_timestamps": True}),
        (TIME, {"write_statistics": False}),
    ],
)
def test_what_statistics_do_not_tell_is_read(
    tmp_path: Path, kind: pa.DataType, how: dict[str, Any]
) -> None:
    path = written(tmp_path / "a.parquet", [10, 20], kind, **how)
    assert may_hold(node(), path, [(1_000, 2_000)])


def test_what_can_t_be_looked_at_is_left_to_spark(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", [10])
    assert may_hold(node("other"), path, [(50, 60)])
    assert may_hold(node(format="json"), path, [(50, 60)])
    assert may_hold(node(), str(tmp_path / "none.parquet"), [(50, 60)])
    assert may_hold(node(), "s3://bucket/a.parquet", [(50, 60)])
    (tmp_path / "b.parquet").write_bytes(b"no parquet")
    assert may_hold(node(), str(tmp_path / "b.parquet"), [(50, 60)])
