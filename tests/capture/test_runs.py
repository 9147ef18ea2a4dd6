"""Runs: batches, restarts, batch sources, the user's own writer, kept records, readers beside."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Literal

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import headwater as hw
from tests.support.streams import SCHEMA, Lab, rows_of, tell, write

A = """
1 | 0 | 1 | 5
2 | 1 | 2 | 6
--
3 | 9 | 1 | 7
"""


def test_a_second_start_goes_on_where_the_first_ended(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", A)
    flow.sink("out", a.groupBy(F.window("ts", "5 seconds")).count())
    batches: list[hw.BatchInfo] = []
    store = str(lab.home / "store")
    flow.start(store=store, capture="eager", available_now=True, on_batch=batches.append).wait()
    first = len(batches)
    assert [b.batch for b in batches] == list(range(first))
    assert tell(hw.open(store), "out") == [(((0.0, 5.0), 2), {"a": {1, 2}})]
    write(lab.home / "a", SCHEMA, "4 | 20 | 1 | 5")
    flow.start(store=store, capture="eager", available_now=True, on_batch=batches.append).wait()
    assert [b.batch for b in batches] == list(range(len(batches)))
    assert tell(hw.open(store), "out") == [
        (((0.0, 5.0), 2), {"a": {1, 2}}),
        (((5.0, 10.0), 1), {"a": {3}}),
    ]


def test_batch_sources_run_once_and_close_every_window(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", A, stream=False, options={})
    flow.sink("out", a.groupBy(F.window("ts", "5 seconds")).count())
    flow.sink("total", a.agg(F.sum("v").alias("v")))
    told = lab.tell(flow)
    assert told["out"] == [(((0.0, 5.0), 2), {"a": {1, 2}}), (((5.0, 10.0), 1), {"a": {3}})]
    assert told["total"] == [((18,), {"a": {1, 2, 3}})]
    with pytest.raises(hw.RunError, match="holds the results of flow 'test' already"):
        flow.start(store=str(lab.home / f"store-{lab.runs}"))


@pytest.mark.parametrize("capture", ["eager", "intervals", "ancestors"])
def test_files_of_any_name_are_found_by_their_place(capture: str, flow: hw.Flow, lab: Lab) -> None:
    folder = lab.home / "old & new"
    write(folder, SCHEMA, A)
    for number, file in enumerate(sorted(folder.glob("*.parquet"))):
        file.rename(folder / f"Zürich + 100% (a)=b #{number}.parquet")
    a = flow.source(
        "a", format="parquet", path=folder, schema=SCHEMA, event_time="ts", watermark="0 seconds"
    )
    flow.sink("out", a.groupBy(F.window("ts", "5 seconds")).count())
    store = lab.run(flow, capture)
    [result] = store.results("out")["result_id"].to_pylist()
    assert sorted(store.backward("out", result)["a.id"].to_pylist()) == [1, 2]
    first = min(folder.glob("*.parquet"))
    for place in ((first.name, 0), (str(first), 1)):
        assert store.forward("a", place)["result_id"].to_pylist() == [result]
    assert store.mark("a", where="id = 2").records == 1


def test_any_dataframe_may_be_a_source(flow: hw.Flow, lab: Lab, spark: SparkSession) -> None:
    write(lab.home / "in", SCHEMA, A)
    df = (
        spark.readStream.schema(SCHEMA)
        .parquet(str(lab.home / "in"))
        .withWatermark("ts", "1 second")
    )
    a = flow.source("a", df=df, event_time="ts", id=["k", "v"])
    flow.sink("out", a.filter("v > 5").select("v"))
    store = lab.run(flow, "eager")
    first = store.results("out", where="v = 6")["result_id"][0]
    record = store.backward("out", first).to_pylist()
    assert store.backward("out", (first.as_py(),)).column_names[0] == "result_id", "a list of one"
    assert [(r["k"], r["v"]) for r in record] == [(2, 6)], "kept, since it can't be read again"
    assert store.forward("a", (2, 6))["v"].to_pylist() == [6], "asked by the user's own values"


@pytest.mark.parametrize("keep", ["all", "contributing", "none"])
def test_what_is_kept_of_records(
    flow: hw.Flow, lab: Lab, keep: Literal["all", "contributing", "none"]
) -> None:
    a = lab.source(flow, "a", A + "--\n4 | 60 | 1 | 1", keep=keep)
    flow.sink("out", a.filter("v > 5").select("v"))
    store = lab.run(flow, "eager", checkpoint=lab.home / "checkpoint")
    (result, *_) = store.results("out", where="v = 6")["result_id"].to_pylist()
    assert store.backward("out", result)["v"].to_pylist() == [6]
    assert store.forward("a", 1)["result_id"].to_pylist() == [None], "known, without a result"
    with pytest.raises(hw.UnknownId):
        store.forward("a", 77)


def test_contributing_records_stay_and_others_go_once_they_can_reach_nothing(
    flow: hw.Flow, lab: Lab, spark: SparkSession
) -> None:
    write(lab.home / "in", SCHEMA, A + "--\n4 | 60 | 1 | 1\n--\n5 | 61 | 1 | 1")
    df = (
        spark.readStream.schema(SCHEMA)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(lab.home / "in"))
    )
    a = flow.source(
        "a", df=df, event_time="ts", watermark="0 seconds", id="id", keep="contributing"
    )
    flow.sink("out", a.filter("v > 5").groupBy(F.window("ts", "5 seconds")).count())
    store = lab.run(flow, "eager")
    assert tell(store, "out") == [(((0.0, 5.0), 1), {"a": {2}}), (((5.0, 10.0), 1), {"a": {3}})]
    kept = [i for i in (1, 2, 3, 4, 5) if _known(store, i)]
    assert kept == [2, 3, 4, 5], "1 can reach nothing more; 4 and 5 are within their window"


def _known(store: hw.Store, record: int) -> bool:
    try:
        return store.forward("a", record) is not None
    except hw.UnknownId:
        return False


def test_positional_ids_find_their_file_and_row(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", A, id=None)
    flow.sink("out", a.select("v"))
    store = lab.run(flow, "eager")
    (result,) = store.results("out", where="v = 7")["result_id"].to_pylist()
    (record,) = store.backward("out", result).to_pylist()
    assert (record["a.id"], record["v"]) == (3, 7)
    assert record["id"] & 0xFFFFFFFF == 0, "the first row of the second file"
    assert store.forward("a", ("0001.parquet", 0))["v"].to_pylist() == [7]


def test_the_users_own_writer_gets_the_same_ids(
    flow: hw.Flow, lab: Lab, spark: SparkSession
) -> None:
    a = lab.source(flow, "a", A)
    seen: list[tuple[int, int, int]] = []

    def own(df: DataFrame, batch: int) -> None:
        seen.extend((batch, row.result_id, row.v) for row in df.collect())

    flow.sink("function", a.select("v"), write=own)
    flow.sink("files", a.select("v"), write={"format": "parquet", "path": str(lab.home / "out")})
    store = lab.run(flow, "eager")
    stored = {(r["result_id"], r["v"]) for r in store.results("function").to_pylist()}
    assert {(i, v) for _, i, v in seen} == stored
    assert {batch for batch, _, _ in seen} == {0, 1}
    files = {(r.result_id, r.v) for r in spark.read.parquet(str(lab.home / "out")).collect()}
    assert files == {(r["result_id"], r["v"]) for r in store.results("files").to_pylist()}


def test_a_failing_writer_leaves_its_batch_unwritten(flow: hw.Flow, lab: Lab) -> None:
    def own(df: DataFrame, batch: int) -> None:
        if batch == 1:
            raise RuntimeError("the other system is down")

    flow.sink("out", lab.source(flow, "a", A).select("v"), write=own)
    store = str(lab.home / "store")
    with pytest.raises(hw.RunError, match="the other system is down"):
        flow.start(store=store, capture="eager", available_now=True).wait()
    assert sorted(rows_of(hw.open(store), "out")) == [(5,), (6,)]


def test_two_flows_share_a_store(spark: SparkSession, lab: Lab) -> None:
    store = str(lab.home / "store")
    for name in ("one", "two"):
        flow = hw.Flow(name, spark)
        a = lab.source(flow, f"a-{name}", A)
        flow.sink(f"out-{name}", a.select("v"))
        flow.start(store=store, capture="eager", available_now=True).wait()
    opened = hw.open(store)
    assert len(opened.results("out-one")) == len(opened.results("out-two")) == 3


READER = """
import sys, headwater as hw
store = hw.open(sys.argv[1])
print(len(store.results("out")), store.forward("a", 1)["v"].to_pylist())
"""


def test_another_process_reads_while_the_flow_runs(flow: hw.Flow, lab: Lab) -> None:
    flow.sink("out", lab.source(flow, "a", A).select("v"))
    store = str(lab.home / "store")
    answers = []

    def ask(info: hw.BatchInfo) -> None:
        done = subprocess.run(
            [sys.executable, "-c", READER, store],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        answers.append(done.stdout.strip())

    flow.start(store=store, capture="eager", available_now=True, on_batch=ask).wait()
    assert answers == ["2 [5]", "3 [5]"]


def test_stopping_lets_the_batch_at_hand_end(flow: hw.Flow, lab: Lab) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(df: DataFrame, batch: int) -> None:
        begun.set()
        go_on.wait(20)

    flow.sink("out", lab.source(flow, "a", A).select("v"), write=slow)
    store = str(lab.home / "store")
    run = flow.start(store=store, capture="eager")
    assert begun.wait(60)
    stopping = threading.Thread(target=run.stop)
    stopping.start()
    go_on.set()
    stopping.join(60)
    assert not run.active
    run.wait()
    assert sorted(rows_of(hw.open(store), "out")) == [(5,), (6,)]
    flow.start(store=store, capture="eager", available_now=True).wait()
    assert sorted(rows_of(hw.open(store), "out")) == [(5,), (6,), (7,)]


def test_a_run_can_be_stopped_and_told_of(flow: hw.Flow, lab: Lab) -> None:
    flow.sink("out", lab.source(flow, "a", A).select("v"))
    with flow.start(store=str(lab.home / "store"), capture="eager") as run:
        assert run.active
        assert run.wait(timeout=0.01) is False
        assert "active" in repr(run)
    assert not run.active


ALONE = """
import sys
import headwater as hw
from pyspark.sql import functions as F

flow = hw.Flow("alone")
rows = flow.spark.createDataFrame([(1, 5), (2, 7)], "id bigint, v int")
numbers = flow.source("numbers", df=rows, id="id")
flow.sink("pairs", numbers.count_window(2).agg(F.sum("v").alias("sum")))
flow.start(store=sys.argv[1], capture="eager").wait()
print(hw.open(sys.argv[1]).results("pairs")["sum"].to_pylist())
"""


@pytest.mark.long
def test_a_batch_run_over_arrival_order_in_a_session_that_never_streamed(lab: Lab) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(lab.home / "store")],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.stdout.strip().endswith("[12]"), done.stderr[-2000:]
