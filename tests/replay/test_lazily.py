"""Provenance by replay over every kind of source, and sources that are not as they were."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from tests.support.streams import Lab, tell

pytestmark = pytest.mark.spark

LAZY = ("intervals", "ancestors")
A = """
    1 |  1 | 1 | 5
    2 |  2 | 1 | 6
    3 | 11 | 2 | 7
    --
    4 | 12 | 1 | 8
    6 | 15 | 2 | 1
    --
    5 |  3 | 1 | 9
    7 | 26 | 1 | 2
    2 |  2 | 1 | 6
    8 | 60 | 1 | 3
"""
"""Record 5 is late for the first window but not for the second; record 2 comes twice."""


def windows(frame: hw.Frame) -> hw.Frame:
    return frame.groupBy("k", F.window("ts", "20 seconds", "10 seconds")).agg(
        F.count("*").alias("n"), F.sum("v").alias("total")
    )


def expected(flow: hw.Flow, lab: Lab) -> object:
    return tell(lab.run(flow, "eager"), "out")


@pytest.mark.parametrize("mode", LAZY)
def test_ids_by_position_hash_and_content(mode: str, spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("ids", spark)
    place = lab.source(flow, "place", A, id=None)
    key = lab.source(flow, "key", A, id=["k", "ts"], watermark="5 seconds")
    flow.sink("by_place", windows(place))
    flow.sink("by_key", key.filter("v > 2"))
    eager, lazy = lab.run(flow, "eager"), lab.run(flow, mode)
    for sink in flow.sinks:
        assert tell(lazy, sink) == tell(eager, sink)


@pytest.mark.parametrize("mode", LAZY)
def test_text_files_in_odd_places(mode: str, spark: SparkSession, lab: Lab) -> None:
    folder = lab.home / "a b%20c"
    folder.mkdir()
    for number, lines in enumerate((("1,1,5", "2,2,6"), ("3,15,7", "4,40,8"))):
        file = folder / f"part [{number}] {{x}}*.csv"
        file.write_text("\n".join(lines))
        os.utime(file, (1_700_000_000 + number,) * 2)
    flow = hw.Flow("text", spark)
    rows = flow.source(
        "rows",
        format="csv",
        path=str(folder),
        schema="id bigint, at bigint, v int",
        id="id",
        options={"maxFilesPerTrigger": 1},
    )
    timed = rows.withColumn("ts", F.timestamp_seconds("at")).withWatermark("ts", "0 seconds")
    flow.sink("out", timed.groupBy(F.window("ts", "10 seconds")).count())
    if mode == "ancestors":
        with pytest.raises(hw.UnsupportedError, match="takes 'ts' for the time, which no source"):
            lab.run(flow, mode)
        return
    assert tell(lab.run(flow, mode), "out") == expected(flow, lab)


@pytest.mark.parametrize("mode", LAZY)
def test_a_source_that_keeps_its_records(mode: str, spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("kept", spark)
    lab.source(hw.Flow("other", spark), "a", A)
    schema = "id bigint, ts timestamp, k int, v int"
    df = (
        spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(lab.home / "a"))
    )
    rows = flow.source("rows", df=df, event_time="ts", watermark="0 seconds", id="id", keep="all")
    flow.sink("out", windows(rows))
    assert tell(lab.run(flow, mode), "out") == expected(flow, lab)


def test_batch_sources(spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("batch", spark)
    rows = lab.source(flow, "a", A, stream=False, watermark=None)
    flow.sink("out", rows.groupBy("k").agg(F.sum("v").alias("total")))
    for mode in LAZY:
        assert tell(lab.run(flow, mode), "out") == expected(flow, lab)


@pytest.mark.parametrize("mode", LAZY)
def test_forward(mode: str, spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("forward", spark)
    a = lab.source(flow, "a", A)
    flow.sink("windows", windows(a).filter("n > 0"))
    flow.sink("rows", a.filter("v > 5"))
    eager, lazy = lab.run(flow, "eager"), lab.run(flow, mode)
    for record in range(1, 9):
        asked = [store.forward("a", record).sort_by("result_id") for store in (eager, lazy)]
        assert asked[0].to_pylist() == asked[1].to_pylist(), record
    assert lazy.forward("a", [2, 5]).num_rows == eager.forward("a", [2, 5]).num_rows > 0
    with pytest.raises(hw.UnknownId):
        lazy.forward("a", 99)


def test_each_sink_in_a_mode_of_its_own(spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("mixed", spark)
    a = lab.source(flow, "a", A)
    for name in ("one", "two", "three", "four"):
        flow.sink(name, windows(a))
    store = lab.run(flow, {"eager": ["one"], "intervals": ["two"], "ancestors": ["three"]})
    told = tell(store, "one")
    assert tell(store, "two") == tell(store, "three") == told
    assert {str(s) for _, s in tell(store, "four")} == {"{}"}
    (row,) = store.flows().to_pylist()
    assert row["capture"] == "one: eager, two: intervals, three: ancestors, four: none"


def test_late_records_are_in_no_set(spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("late", spark)
    flow.sink("out", windows(lab.source(flow, "a", A)))
    for mode in LAZY:
        told = {row[:2]: sets["a"] for row, sets in tell(lab.run(flow, mode), "out")}
        # Record 5, at 3 s, comes when the watermark was at 11 s: late for the window before.
        assert told[1, (-10.0, 10.0)] == {1, 2}
        assert told[1, (0.0, 20.0)] == {1, 2, 4, 5}


def test_a_file_that_changed_or_went_is_an_error(spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("changed", spark)
    flow.sink("out", windows(lab.source(flow, "a", A)))
    store = lab.run(flow, "ancestors")
    ids = store.results("out")["result_id"].to_pylist()
    first = sorted((lab.home / "a").iterdir())[0]
    os.utime(first, (1_800_000_000,) * 2)
    with pytest.raises(hw.StoreError, match="was changed after the flow read it"):
        store.backward("out", ids)
    first.unlink()
    with pytest.raises(hw.StoreError, match="is gone; put it back"):
        store.backward("out", ids)


def test_another_process_replays_from_the_store_alone(spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("elsewhere", spark)
    a = lab.source(flow, "a", A)
    names = spark.createDataFrame([(1, "one"), (2, "two")], "k int, name string")
    flow.sink("out", windows(a.filter("v > 0").join(names, "k")).filter("n > 1"))
    store = lab.run(flow, "ancestors")
    ids = store.results("out")["result_id"].to_pylist()
    told = sorted(map(str, store.backward("out", ids).to_pylist()))
    path = lab.home / f"store-{lab.runs}"
    code = (
        "import sys, headwater as hw\n"
        "store = hw.open(sys.argv[1])\n"
        "ids = store.results('out')['result_id'].to_pylist()\n"
        "print(sorted(map(str, store.backward('out', ids).to_pylist())))\n"
        "assert store.replay('out', ids[0]).matches\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip().splitlines()[-1] == str(told)


def test_what_the_lazy_modes_refuse(spark: SparkSession, lab: Lab) -> None:
    def made(row: object) -> list[tuple[int]]:
        return [(1,)]

    refused = {
        "rand": (lambda a: a.filter(F.rand() < 0.5), "rand\\(\\) differs from run to run"),
        "now": (lambda a: a.withColumn("t", F.current_timestamp()), "current_timestamp\\(\\)"),
        "first": (lambda a: a.groupBy(F.window("ts", "5 seconds")).agg(F.first("v")), "first"),
        "list": (
            lambda a: a.groupBy(F.window("ts", "5 seconds")).agg(F.collect_list("v")),
            "the order in collect_list",
        ),
        "python": (lambda a: a.flat_map(made, "x int", keep=["ts"]), "'made' is not declared"),
        "dedup": (
            lambda a: a.dropDuplicates(["k", "ts"]).groupBy(F.window("ts", "5 seconds")).count(),
            "which of several rows survives",
        ),
    }
    for name, (step, says) in refused.items():
        flow = hw.Flow(name, spark)
        flow.sink("out", step(lab.source(flow, f"a-{name}", A)))
        for mode in LAZY:
            with pytest.raises(hw.UnsupportedError, match=says) as error:
                flow.start(store=str(lab.home / "never"), capture=mode)
            assert "\n" not in str(error.value)
            assert "step" in str(error.value), "the step is named"
    assert not (lab.home / "never").exists()
    flow = hw.Flow("sessions", spark)
    a = lab.source(flow, "sessions", A)
    flow.sink("out", a.groupBy("k", F.session_window("ts", "5 seconds")).count())
    with pytest.raises(hw.UnsupportedError, match="makes sessions"):
        flow.start(store=str(lab.home / "never"), capture="ancestors")
    assert tell(lab.run(flow, "intervals"), "out") == expected(flow, lab)


def test_auto_takes_the_cheapest_that_is_exact(
    spark: SparkSession, lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = hw.Flow("auto", spark)
    a = lab.source(flow, "a", A)
    flow.sink("windows", windows(a))
    flow.sink("sessions", a.groupBy("k", F.session_window("ts", "5 seconds")).count())
    flow.sink("sampled", a.filter(F.rand(3) < 2))
    store = lab.run(flow, "auto")
    modes = {sink.name: sink.capture for sink in store._catalog.sinks}
    assert modes == {"windows": "ancestors", "sessions": "intervals", "sampled": "eager"}
    flow.explain()
    said = capsys.readouterr().out
    assert "sessions: intervals" in said
    assert "not ancestors: step 'aggregate-2' makes sessions" in said
    assert "sampled: eager" in said


def test_a_declared_function_is_replayed(spark: SparkSession, lab: Lab) -> None:
    from headwater.testing.functions import COPIES, copies

    flow = hw.Flow("declared", spark)
    a = lab.source(flow, "a", A).flat_map(copies, COPIES, keep=["ts", "v"])
    flow.sink("out", a.groupBy(F.window("ts", "10 seconds")).agg(F.sum("twice").alias("sum")))
    for mode in LAZY:
        assert tell(lab.run(flow, mode), "out") == expected(flow, lab)


def test_only_the_covered_files_are_read(spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("slice", spark)
    text = "\n--\n".join(
        "\n".join(f"{10 * f + i} | {10 * f + i} | 1 | 1" for i in range(10)) for f in range(20)
    )
    a = lab.source(flow, "a", text)
    flow.sink("out", a.groupBy(F.window("ts", "10 seconds")).count())
    for mode in LAZY:
        store = lab.run(flow, mode)
        results = store.results("out")
        asked = results["result_id"][results.num_rows // 2].as_py()
        assert store.backward("out", asked, columns=False).num_rows == 10
        assert 10 <= store.rows_read <= 20, f"{mode} read {store.rows_read} rows of 200"


def test_paths_are_told_apart(tmp_path: Path) -> None:
    from headwater.capture.arrivals import Arrivals

    log = tmp_path / "sources" / "0"
    log.mkdir(parents=True)
    entry = '{{"path":"file:///data/{0}","timestamp":{1},"batchId":{2}}}'
    (log / "0").write_text("v1\n" + entry.format("a/x%20y", 5, 0))
    arrivals = Arrivals(tmp_path, {"a": "/data/a", "b": "/data/b*/"}, {})
    assert [(f.path, f.modified) for f in arrivals.new()["a"]] == [("file:///data/a/x%20y", 5)]
    (log / "1.compact").write_text(
        "v1\n" + entry.format("a/x%20y", 5, 0) + "\n" + entry.format("b1/z", 6, 1)
    )
    new = arrivals.new()
    assert (new["a"], [f.path for f in new["b"]]) == ([], ["file:///data/b1/z"])
    again = Arrivals(tmp_path, {"a": "/data/a"}, {"a": ["file:///data/a/x%20y"]})
    assert again.new() == {"a": []}


def test_a_join_by_another_time_has_no_ancestor_function(spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("other-time", spark)
    a = lab.source(flow, "a", "1 | 1 | 1 | 5\n--\n2 | 100 | 1 | 6\n--\n3 | 200 | 1 | 7")
    b = lab.source(flow, "b", "1 | 90 | 1 | 1\n--\n2 | 150 | 2 | 2\n--\n3 | 250 | 3 | 3")
    # The pair's own times lie a minute and more apart: only `due`, no event time, equals `a.ts`.
    due = b.withColumn("due", F.timestamp_seconds(F.unix_seconds("ts") - 50)).alias("b")
    pairs = a.alias("a").join(due, F.expr("a.ts = b.due"), "inner")
    flow.sink("out", pairs.selectExpr("a.id AS a_id", "b.id AS b_id", "b.k"))
    with pytest.raises(hw.UnsupportedError, match="a time that is not the event time of both"):
        flow.start(store=str(lab.home / "never"), capture="ancestors")
    assert tell(lab.run(flow, "intervals"), "out") == expected(flow, lab)
