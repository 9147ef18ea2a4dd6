"""The stateful processor around ordered steps, in Spark's own tester."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql.streaming.tws_tester import TwsTester

from headwater.names import GROUP, NUMBER
from headwater.ordered.host import BUCKET, BUCKETS, ROWS, Host, pack, unpacker
from headwater.ordered.joins import LatestJoin
from headwater.ordered.patterns import Pattern, Patterns
from headwater.ordered.sorting import BoundedSort
from headwater.ordered.step import Step
from headwater.ordered.tables import packed, unpacked
from headwater.ordered.windows import CountWindows, Made, Results
from tests.ordered.rows import PLACE, SECOND, SORT, arrivals, sides

FAR = 1 << 40
"""Milliseconds: packed rows have no time of their own, and none is late."""

RESULTS = Results((), (Made("sum", "sum", "v", pa.int64()),), ("id",), (PLACE,))


def given(tester: TwsTester, table: pa.Table, bucket: int = 0) -> list[dict[str, Any]]:
    """What comes out for rows of one bucket."""
    rows = pd.DataFrame({BUCKET: [bucket], ROWS: [packed(table)]})
    return made(tester.testInPandas(bucket, rows))


def made(out: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows that a processor gave; without any, Spark's tester gives no columns either."""
    return [row for content in out.get(ROWS, ()) for row in unpacked(content).to_pylist()]


def test_state_is_kept_from_batch_to_batch_and_bucket_by_bucket() -> None:
    tester = TwsTester(Host(CountWindows(2, 1, RESULTS), SORT))
    assert given(tester, arrivals([1], pa.int64())) == []
    assert given(tester, arrivals([5], pa.int64()), bucket=1) == []
    (window,) = given(tester, arrivals([2], pa.int64(), first=1))
    assert (window["sum"], window["id"], window[NUMBER]) == (3, [0, 1], 0)


@pytest.mark.parametrize(
    ("step", "rows", "number"),
    [
        (CountWindows(2, 2, RESULTS), arrivals([3, 1, 2], pa.int64()), 1),
        (BoundedSort(1, ("v",), (PLACE,)), arrivals([3, 1, 2], pa.int64()), 2),
        (LatestJoin(0, True, (PLACE,)), sides([("r", 1), ("l", 2)]), 1),
    ],
    ids=lambda v: type(v).__name__,
)
def test_every_order_of_arrival_in_a_batch_gives_the_same(
    step: Step, rows: pa.Table, number: int
) -> None:
    forwards = given(TwsTester(Host(step, SORT)), rows)
    backwards = given(TwsTester(Host(step, SORT)), rows.take(list(range(rows.num_rows))[::-1]))
    assert forwards == backwards
    assert len(forwards) == number


def test_what_is_due_comes_out_when_the_watermark_passes_it() -> None:
    pattern = Pattern("A B+", (("A", "v > 8"), ("B", "v < 5")), (("n", "count(*)"),), 10 * SECOND)
    step = Patterns(pattern, order=(PLACE,), lists=("id",), types={"n": pa.int64()})
    rows = arrivals([9, 3], pa.int64())
    for name, sql in pattern.native.items():
        small = sql.replace("`", "").replace(" ", "")
        rows = rows.append_column(
            name, pa.array([v > 8 if ">8" in small else v < 5 for v in (9, 3)])
        )
    tester = TwsTester(
        Host(step, SORT, told=True), timeMode="eventTime", eventTimeExtractor=lambda row: FAR
    )
    assert given(tester, rows) == []
    assert not made(tester.setWatermark(10_000))  # not past the first row's time and 10 seconds
    (match,) = made(tester.setWatermark(10_001))
    assert (match["n"], match["id"]) == (2, [0, 1])


def test_rows_are_packed_by_bucket_and_unpacked_as_they_were() -> None:
    rows = arrivals([1, 2, 3], pa.int64(), groups=[5, 6, 5])
    buckets = pa.array([g % BUCKETS for g in (5, 6, 5)], pa.int32())
    table = rows.add_column(0, BUCKET, buckets)
    (batch,) = pack(iter(table.to_batches(max_chunksize=2)))
    assert batch.column(0).to_pylist() == [5, 6]
    parts = [unpacked(content) for content in batch.column(1).to_pylist()]
    assert [part[GROUP].to_pylist() for part in parts] == [[5, 5], [6]]
    wanted = pa.schema([("v", pa.int64()), (GROUP, pa.int64())])
    back = list(unpacker(wanted)(iter([batch.select([1])])))
    assert [row for b in back for row in b.to_pylist()] == [
        {"v": 1, GROUP: 5},
        {"v": 3, GROUP: 5},
        {"v": 2, GROUP: 6},
    ]
