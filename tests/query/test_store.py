"""The store as a whole: what it lists, how it shows itself, answers as Spark DataFrames."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater import store as stores
from headwater.errors import UnknownName
from headwater.query import to_spark
from headwater.store import EmbeddedWriter
from tests.store.small import at, batch, flow, reports, rows, stopped


def test_what_is_registered(tmp_path: Path) -> None:
    with EmbeddedWriter.open(tmp_path) as writer, stores.open(tmp_path) as store:
        assert "no sources → no sinks; 0 results" in repr(store)
        with pytest.raises(UnknownName, match="the store has no sink yet"):
            store.results("stopped")
        writer.register(flow())
        writer.commit(batch(3, stopped((7, 0, "a", 1, [1])), reports((1, 0, 0))))
        assert rows(store.flows(), "flow", "capture", "query_id") == [("traffic", "eager", "q")]
        assert rows(store.sources(), "flow", "name") == [("traffic", "reports")]
        assert json.loads(store.sources()["definition"][0].as_py())["keep"] == "all"
        assert rows(store.sinks(), "flow", "name") == [("traffic", "stopped")]
        [done] = rows(store.batches())
        assert done[:-1] == ("traffic", "q", 3, at(3), 1, 1, 1)
        assert repr(store) == (
            f"Store({str(tmp_path)!r}: reports → stopped; 1 results, 1 edges, 1 batches)"
        )


def test_threads_ask_at_once(tmp_path: Path) -> None:
    with EmbeddedWriter.open(tmp_path) as writer, stores.open(tmp_path) as store:
        writer.register(flow())
        failures: list[BaseException] = []

        def ask() -> None:
            try:
                for _ in range(20):
                    count = store.results("stopped").num_rows
                    assert count % 10 == 0, "a batch is seen as a whole"
                    assert store.backward("stopped").num_rows >= count
            except BaseException as error:  # noqa: BLE001
                failures.append(error)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for number in range(30):
            made = [(number * 10 + i, 0, "a", 1, [i]) for i in range(10)]
            writer.commit(batch(number, stopped(*made)))
        for thread in threads:
            thread.join()
        assert failures == []


@pytest.mark.spark
def test_an_answer_as_a_dataframe(tmp_path: Path, spark: SparkSession) -> None:
    with EmbeddedWriter.open(tmp_path) as writer, stores.open(tmp_path) as store:
        writer.register(flow())
        writer.commit(batch(0, stopped((7, 9, "a", 1, [1]), (8, 9, "b", 1, [1]))))
        frame = to_spark(store.results("stopped"), spark)
        assert frame.dtypes == [
            ("result_id", "bigint"),
            ("event_time", "timestamp"),
            ("vid", "string"),
            ("n", "bigint"),
        ]
        found = frame.selectExpr("result_id", "unix_micros(event_time)", "vid", "n").collect()
        micros = int(at(9).timestamp()) * 1_000_000
        assert [tuple(row) for row in found] == [(7, micros, "a", 1), (8, micros, "b", 1)]
        assert to_spark(store.results("stopped")).count() == 2, "in the active session"
