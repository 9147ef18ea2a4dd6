"""What a start refuses, in one line, before anything is written."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from tests.support.streams import Lab, rows_of

A = """
1 | 0 | 1 | 5
--
2 | 9 | 1 | 6
"""


def counted(spark: SparkSession, lab: Lab, name: str = "test", size: str = "5 seconds") -> hw.Flow:
    flow = hw.Flow(name, spark)
    a = lab.source(flow, "a", A if not (lab.home / "a").exists() else "3 | 9 | 1 | 7")
    flow.sink("out", a.groupBy(F.window("ts", size)).count())
    return flow


def refused(flow: hw.Flow, says: str, **settings: object) -> None:
    with pytest.raises(hw.HeadwaterError, match=says) as error:
        flow.start(available_now=True, **settings).wait()  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_a_flow_needs_a_sink_and_sane_settings(spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("empty", spark)
    lab.source(flow, "a", A)
    store = str(lab.home / "store")
    refused(flow, "flow 'empty' has no sink", store=store)
    flow = counted(spark, lab)
    refused(flow, "capture='lazy' is not one of none, ancestors, ", store=store, capture="lazy")
    refused(flow, "either available_now=True or trigger=", store=store, trigger="1 second")
    assert not Path(store).exists()


def test_a_window_of_a_stream_needs_a_watermark(spark: SparkSession, lab: Lab) -> None:
    (lab.home / "csv").mkdir()
    flow = hw.Flow("open", spark)
    path = str(lab.home / "csv")
    a = flow.source("a", format="csv", path=path, schema="id bigint, ts timestamp", event_time="ts")
    flow.sink("out", a.groupBy(F.window("ts", "5 seconds")).count())
    store = str(lab.home / "store")
    refused(flow, "give the source event_time= and watermark=, or stream=False", store=store)


def test_a_checkpoint_belongs_to_one_flow_and_one_store(spark: SparkSession, lab: Lab) -> None:
    store, checkpoint = str(lab.home / "store"), str(lab.home / "cp")
    counted(spark, lab).start(store=store, checkpoint=checkpoint, available_now=True).wait()
    before = rows_of(hw.open(store), "out")

    refused(
        counted(spark, lab, "other"), "belongs to flow 'test'", store=store, checkpoint=checkpoint
    )
    another = str(lab.home / "another")
    refused(counted(spark, lab), "belongs to another store", store=another, checkpoint=checkpoint)
    refused(
        counted(spark, lab),
        "capture='ancestors' and can't go on with 'none'",
        store=store,
        checkpoint=checkpoint,
        capture="none",
    )
    refused(
        counted(spark, lab, size="9 seconds"),
        "has changed since its checkpoint was made, in aggregate aggregate-1",
        store=store,
        checkpoint=checkpoint,
    )
    elsewhere = lab.home / "elsewhere"
    (elsewhere / "offsets").mkdir(parents=True)
    refused(
        counted(spark, lab, "third"),
        "belongs to a query that Headwater did not start",
        store=store,
        checkpoint=str(elsewhere),
    )
    shutil.rmtree(checkpoint)
    refused(counted(spark, lab), "is gone but its store holds", store=store, checkpoint=checkpoint)
    assert rows_of(hw.open(store), "out") == before


def test_a_store_and_a_checkpoint_of_different_age(spark: SparkSession, lab: Lab) -> None:
    store, checkpoint = lab.home / "store", lab.home / "cp"
    flow = counted(spark, lab)
    flow.start(store=str(store), checkpoint=str(checkpoint), available_now=True).wait()
    shutil.copytree(store, lab.home / "old-store")
    shutil.copytree(checkpoint, lab.home / "old-cp")
    lab.source(hw.Flow("more", spark), "a", "4 | 30 | 1 | 7")
    counted(spark, lab).start(
        store=str(store), checkpoint=str(checkpoint), available_now=True
    ).wait()

    refused(
        counted(spark, lab),
        "the store is older",
        store=str(lab.home / "old-store"),
        checkpoint=str(checkpoint),
    )
    refused(
        counted(spark, lab),
        "the checkpoint is older",
        store=str(store),
        checkpoint=str(lab.home / "old-cp"),
    )


def test_a_place_that_cannot_be_written(spark: SparkSession, lab: Lab) -> None:
    file = lab.home / "file"
    file.write_text("not a directory")
    refused(counted(spark, lab), str(file), store=str(file / "store"))
    refused(
        counted(spark, lab),
        "can't be written",
        store=str(lab.home / "s"),
        checkpoint=str(file / "cp"),
    )


def test_a_record_without_an_id_stops_the_run(spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("test", spark)
    flow.sink("out", lab.source(flow, "a", "1 | 0 | 1 | 5\n- | 1 | 1 | 5"))
    store = str(lab.home / "store")
    refused(flow, "source 'a': a record has no id, column 'id' is null", store=store)
    assert rows_of(hw.open(store), "out") == []


def test_two_records_under_one_id_stop_the_run(spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("test", spark)
    a = lab.source(flow, "a", "1 | 0 | 1 | 5\n--\n1 | 1 | 2 | 6", keep="contributing")
    flow.sink("out", a.select("v"))
    store = str(lab.home / "store")
    refused(flow, "source 'a'.* id 1", store=store)
    assert rows_of(hw.open(store), "out") == [(5,)], "the batch before is whole, its own is absent"


def test_a_failing_python_function_is_named(spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("test", spark)
    flow.sink("out", lab.source(flow, "a", A).flat_map(lambda row: [(row.nope,)], "x int"))
    refused(flow, "flow 'test' failed: .*nope", store=str(lab.home / "store"))


def test_what_spark_refuses_on_streams_leaves_no_store(spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("test", spark)
    flow.sink("out", lab.source(flow, "a", A).groupBy("k").count())
    store = lab.home / "store"
    refused(flow, "flow 'test': .*watermark", store=str(store))
    assert not store.exists()


def test_steps_may_not_change_under_results_that_are_replayed(
    spark: SparkSession, lab: Lab
) -> None:
    def flow(least: int) -> hw.Flow:
        made = hw.Flow("test", spark)
        a = lab.source(made, "a", A if not (lab.home / "a").exists() else "3 | 9 | 1 | 7")
        made.sink("out", a.filter(f"v > {least}"))
        return made

    lazy, eager = str(lab.home / "lazy"), str(lab.home / "eager")
    flow(4).start(store=lazy, capture="ancestors", available_now=True).wait()
    flow(4).start(store=eager, capture="eager", available_now=True).wait()
    refused(flow(5), "has changed since its checkpoint was made, in filter", store=lazy)
    flow(5).start(store=eager, capture="eager", available_now=True).wait()
