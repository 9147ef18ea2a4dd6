"""Ids and times read from a batch's files are those that Spark reads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import headwater as hw
from headwater.flow.nodes import Source
from headwater.live import reading
from headwater.live.reading import read_times, times_in_files

pytestmark = pytest.mark.spark

SCHEMA = "id bigint, ts timestamp, v int"
T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)
TIMES = [T0, T0 + timedelta(milliseconds=7), None]
MICROS = [1_772_366_400_000_000, 1_772_366_400_007_000]


def source(flow: hw.Flow, folder: Path, **more: Any) -> Source:
    said = {"format": "parquet", "path": str(folder), "schema": SCHEMA, "id": "id"}
    flow.source("a", **{**said, "event_time": "ts", "watermark": "0 seconds", **more})
    return flow.sources["a"]


def written(folder: Path, ids: pa.Array, times: pa.Array, **how: Any) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "part #1%.parquet"
    pq.write_table(pa.table({"id": ids, "ts": times, "v": [1] * len(ids)}), path, **how)
    return [path.as_uri()]


@pytest.mark.parametrize(
    ("unit", "how"), [("us", {}), ("ms", {}), ("us", {"use_deprecated_int96_timestamps": True})]
)
def test_points_in_time_are_read_as_they_are(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    unit: str,
    how: dict[str, Any],
) -> None:
    times_told = pa.array(TIMES, pa.timestamp(unit, "UTC"))
    uris = written(tmp_path / "d", pa.array([1, 2, 3]), times_told, **how)
    node = source(hw.Flow("f", spark), tmp_path / "d")
    slow = reading._by_spark(node, uris, spark).to_pydict()
    monkeypatch.setattr(reading, "_by_spark", lambda *args: pytest.fail("not read plainly"))
    ids, times = read_times(node, uris, spark)
    assert ids.tolist() == slow["id"] == [1, 2, 3]
    assert times.tolist()[:2] == slow["time"][:2] == MICROS
    assert slow["time"][2] is None
    assert times[2] < 0


def test_hours_of_an_unknown_place_are_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    naive = pa.array([t and t.replace(tzinfo=None) for t in TIMES], pa.timestamp("us"))
    uris = written(tmp_path / "d", pa.array([1, 2, 3]), naive)
    node = source(hw.Flow("f", spark), tmp_path / "d")
    assert reading._plainly(node, reading.local(uris[0])) is None
    ids, times = read_times(node, uris, spark)
    # Spark takes them by the session's zone, which is UTC in tests.
    assert (ids.tolist(), times.tolist()[:2]) == ([1, 2, 3], MICROS)


def test_times_from_the_names_of_folders_are_left_to_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "d" / "ts=2026-03-01 12%3A00%3A00"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"id": [5], "v": [1]}), folder / "x.parquet")
    node = source(hw.Flow("f", spark), tmp_path / "d")
    ids, times = read_times(node, [(folder / "x.parquet").as_uri()], spark)
    assert (ids.tolist(), times.tolist()) == ([5], MICROS[:1])


def test_a_filter_first_and_other_ids_keep_to_the_plan(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    flow = hw.Flow("f", spark)
    rows = flow.source(
        "a", format="parquet", path=str(folder), schema=SCHEMA, event_time="ts", id="id"
    )
    flow.sink("few", rows.filter("v > 1"))
    assert not times_in_files(flow.sources["a"], list(flow.sinks.values()))
    flow.sink("all", rows.select("id"))
    assert times_in_files(flow.sources["a"], list(flow.sinks.values()))


@pytest.mark.parametrize(
    "more",
    [
        {"id": ["id", "v"]},
        {"keep": "all"},
        {"format": "json"},
        {"options": {"mergeSchema": "true"}},
    ],
)
def test_what_only_spark_can_read(
    spark: SparkSession, tmp_path: Path, more: dict[str, Any]
) -> None:
    (tmp_path / "d").mkdir()
    node = source(hw.Flow("f", spark), tmp_path / "d", **more)
    assert not times_in_files(node, [node])
