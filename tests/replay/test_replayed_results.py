"""`store.replay` and partial provenance, in every capture mode."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from tests.support.streams import Lab

pytestmark = pytest.mark.spark

MODES = ("eager", "intervals", "ancestors")
A = """
    1 |  1 | 1 | 5
    2 |  2 | 1 | 6
    3 |  3 | 2 | 7
    --
    4 | 12 | 1 | 8
    5 | 13 | 1 | 9
    6 | 25 | 2 | 1
    --
    7 | 60 | 1 | 9
"""


def chained(flow: hw.Flow, lab: Lab) -> None:
    """Sums per key and 10 seconds, then how many keys had one above 10 in 20 seconds."""
    a = lab.source(flow, "a", A).filter("v > 4")
    sums = a.groupBy("k", F.window("ts", "10 seconds")).agg(F.sum("v").alias("total"))
    big = sums.named("sums").filter("total > 6")
    timed = big.select("k", "total", F.window_time("window").alias("t"))
    both = timed.groupBy(F.window("t", "20 seconds")).agg(F.count("*").alias("n"))
    flow.sink("out", both)


@pytest.mark.parametrize("mode", MODES)
def test_a_result_comes_out_again(mode: str, spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("again", spark)
    chained(flow, lab)
    store = lab.run(flow, mode)
    results = store.results("out").to_pylist()
    assert len(results) == 1
    replayed = store.replay("out", results[0]["result_id"])
    assert replayed.matches
    assert replayed.row is not None
    assert replayed.row["n"] == 3
    assert sorted(replayed.sources["id"].to_pylist()) == [1, 2, 3, 4, 5]
    assert replayed.differences == {}
    assert replayed.steps == ()


def test_the_steps_on_the_way(spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("steps", spark)
    chained(flow, lab)
    store = lab.run(flow, "ancestors")
    (result,) = store.results("out")["result_id"].to_pylist()
    made = store.replay("out", result, steps=True).steps
    steps = {s.step: s.rows for s in made}
    assert [s.inputs for s in made] == [(), *((name,) for name in list(steps)[:-1])]
    assert list(steps) == [
        "a", "filter-1", "sums", "filter-2", "project-1", "aggregate-2",
    ]  # fmt: skip
    assert sorted(steps["a"]["id"].to_pylist()) == [1, 2, 3, 4, 5]
    assert sorted(steps["sums"]["total"].to_pylist()) == [7, 11, 17]
    assert steps["aggregate-2"]["n"].to_pylist() == [3]


def test_a_difference_is_told_by_column(spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("differs", spark)
    a = lab.source(flow, "a", A)
    flow.sink("out", a.groupBy("k", F.window("ts", "10 seconds")).agg(F.sum("v").alias("total")))
    store = lab.run(flow, "eager")
    row = next(r for r in store.results("out").to_pylist() if r["total"] == 11)
    file = sorted((lab.home / "a").iterdir())[0]
    times = file.stat()
    table = pq.read_table(file)
    changed = table.set_column(3, table.schema.field(3), pa.array([5, 9, 7], pa.int32()))
    pq.write_table(changed, file)
    import os

    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    replayed = store.replay("out", row["result_id"])
    assert not replayed.matches
    assert list(replayed.differences) == ["total"]
    assert replayed.differences["total"].stored == 11
    assert replayed.differences["total"].replayed == 14


def test_a_replay_needs_provenance(spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("none", spark)
    flow.sink("out", lab.source(flow, "a", A).filter("v > 4"))
    store = lab.run(flow, "none")
    with pytest.raises(hw.HeadwaterError, match="capture='none': its results have no provenance"):
        store.replay("out", store.results("out")["result_id"][0].as_py())
    flow = hw.Flow("random", spark)
    flow.sink("out", lab.source(flow, "b", A).filter(F.rand(1) < 2))
    store = lab.run(flow, "eager")
    with pytest.raises(hw.UnsupportedError, match="can't be replayed: filter step 'filter-1'"):
        store.replay("out", store.results("out")["result_id"][0].as_py())


@pytest.mark.parametrize("mode", MODES)
def test_provenance_in_terms_of_a_step(mode: str, spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("partial", spark)
    chained(flow, lab)
    store = lab.run(flow, mode)
    (result,) = store.results("out")["result_id"].to_pylist()
    sums = store.backward("out", result, to="sums")
    assert sums.column_names == ["source", "id", "event_time", "k", "window", "total"]
    assert sorted(zip(sums["k"].to_pylist(), sums["total"].to_pylist(), strict=True)) == [
        (1, 11),
        (1, 17),
        (2, 7),
    ]
    many = store.backward("out", [result], to="sums", columns=False)
    assert many.column_names == ["result_id", "source", "id", "event_time"]
    assert store.backward("out", result, to="a").num_rows == 5
    with pytest.raises(hw.StoreError, match="no step 'sum' above it; it has: a, filter-1, sums"):
        store.backward("out", result, to="sum")
    with pytest.raises(hw.UnknownId):
        store.backward("out", 5, to="sums")


def test_capture_in_terms_of_a_step(spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("captured", spark)
    chained(flow, lab)
    flow.sink("others", lab.source(flow, "b", A).filter("v > 4"))
    by_replay = lab.run(flow, {"eager": ["out"]})
    (result,) = by_replay.results("out")["result_id"].to_pylist()
    wanted = by_replay.backward("out", result, to="sums").sort_by("id")
    store = lab.run(flow, {"eager": ["sums"]})
    assert store.backward("out", result).sort_by("id").equals(wanted)
    ids = store.backward("out", result, columns=False)
    assert set(ids["source"].to_pylist()) == {"sums"}
    assert store.batches()["edges"].to_pylist()[-1] == 3
    with pytest.raises(hw.RunError, match="names 'summs', which is no sink or step"):
        lab.run(flow, {"eager": ["summs"]})
    with pytest.raises(hw.RunError, match="only 'eager' captures in terms of a step's rows"):
        lab.run(flow, {"intervals": ["sums"]})
