"""Large questions to a lake by Spark: the answers are DuckDB's, of whole batches alone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from headwater.errors import HeadwaterError, PredicateError, StoreError
from headwater.store.lake.prepared import Notes
from tests.lake.same import differences, rows
from tests.lake.small_lake import SmallLake
from tests.lake.test_lake import FILES, SCHEMA, _failing_at_batches, _interrupted, traffic, write
from tests.store.small import batch, flow, reports, stopped

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with a flow whose records are kept, one read again by id, by place and by hash."""
    home = tmp_path_factory.mktemp("frames")
    for number in range(FILES):
        write(home / "data", number, range(number * 20, number * 20 + 20))
    write(home / "data", FILES, range(5))  # the same records once more
    traffic(spark, home / "data", keep="all").start(
        store=f"delta:{home / 'lake'}", capture="eager", available_now=True
    ).wait()
    for name, given in (("column", "id"), ("place", None), ("hash", ["k", "ts"])):
        made = hw.Flow(name, spark)
        source = made.source(
            "reports",
            format="parquet",
            path=str(home / "data"),
            schema=SCHEMA,
            event_time="ts",
            watermark="0 seconds",
            id=given,
            options={"maxFilesPerTrigger": "100"},
        )
        counts = source.groupBy("k", F.window("ts", "10 seconds")).agg(F.count("*").alias("n"))
        made.sink("counts", counts)
        made.start(store=f"delta:{home / 'lake'}", capture="eager", available_now=True).wait()
    return home


def test_spark_answers_as_duckdb_does(lake: Path, spark: SparkSession) -> None:
    with hw.open(f"delta:{lake / 'lake'}") as store:
        assert sum(store.batches()["edges"].to_pylist()) > 300
        assert not differences(store, spark)


def test_conditions_are_on_results(lake: Path, spark: SparkSession) -> None:
    with hw.open(f"delta:{lake / 'lake'}") as store:
        frames = store.frames(spark)
        bounds = {"since": "2023-11-14T22:13:40Z", "until": "2023-11-14T22:14:20Z"}
        asked = {"where": "v > 100 and k = 1", **bounds}
        for answer in ("results", "backward"):
            spark_says = getattr(frames, answer)("windows", **asked)
            assert 0 < spark_says.count() < getattr(frames, answer)("windows").count()
            assert rows(spark_says) == rows(getattr(store, answer)("windows", **asked))
        reached = frames.forward("traffic/reports", [25, 45, 46], sink="windows", **bounds)
        expected = store.forward("traffic/reports", [25, 45, 46], sink="windows", **bounds)
        expected = expected.filter(pa.compute.is_valid(expected["result_id"]))
        assert reached.count() > 0
        assert rows(reached) == rows(expected.drop_columns(["final"]))


def test_ids_may_be_a_frame_and_a_frame_may_be_gone_on_with(
    lake: Path, spark: SparkSession
) -> None:
    with hw.open(f"delta:{lake / 'lake'}") as store:
        frames = store.frames(spark)
        # The last ones: the first hold records that came twice, and have two results in `rows`.
        last = frames.results("windows").filter("k = 2").orderBy(F.desc("event_time"))
        chosen = last.limit(3)
        behind = frames.backward("windows", chosen)
        expected = store.backward("windows", [row.result_id for row in chosen.collect()])
        assert rows(behind) == rows(expected)
        beyond = frames.forward("traffic/reports", behind, sink="rows")
        assert rows(beyond.select("id")) == rows(behind.filter("v > 2").select("id"))
        assert frames.backward("windows", []).count() == 0
        assert frames.records("traffic/reports").count() == FILES * 20
        with pytest.raises(HeadwaterError, match="no column 'result_id'"):
            frames.backward("windows", behind.drop("result_id"))
        with pytest.raises(HeadwaterError, match="whole numbers"):
            frames.backward("windows", ["one"])
        with pytest.raises(PredicateError, match="Spark's SQL"):
            frames.results("windows", where="k = = 2")


def test_frames_are_of_whole_batches_of_one_moment(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"delta:{tmp_path / 'lake'}"
    write(tmp_path / "data", 0, range(20))
    run = {"store": address, "capture": "eager", "available_now": True}
    traffic(spark, tmp_path / "data").start(**run).wait()
    with hw.open(address) as store:
        before = store.frames(spark)
        known = rows(before.edges("rows"))
        files = len(store._reader.files("edges"))  # type: ignore[attr-defined]
        write(tmp_path / "data", 1, range(20, 40))
        with monkeypatch.context() as patched:
            patched.setattr(Notes, "remove", _interrupted)
            patched.setattr("headwater.store.lake.tables.Table.append", _failing_at_batches())
            with pytest.raises(hw.RunError):
                traffic(spark, tmp_path / "data").start(**run).wait()
        assert len(store._reader.files("edges")) > files  # type: ignore[attr-defined]
        assert rows(store.frames(spark).edges("rows")) == known
        traffic(spark, tmp_path / "data").start(**run).wait()
        assert rows(before.edges("rows")) == known
        assert store.frames(spark).edges("rows").count() == 39
        (tmp_path / "data" / "001.parquet").unlink()
        with pytest.raises(PySparkException, match="is no longer there"):
            store.frames(spark).backward("rows").toArrow()
        assert store.frames(spark).backward("rows", columns=False).count() == 39


def test_what_has_no_edges_says_so(spark: SparkSession, tmp_path: Path) -> None:
    address = f"delta:{tmp_path / 'lake'}"
    write(tmp_path / "data", 0, range(20))
    run = {"store": address, "capture": "intervals", "available_now": True}
    traffic(spark, tmp_path / "data").start(**run).wait()
    with hw.open(address) as store:
        frames = store.frames(spark)
        assert frames.results("rows").count() == 19
        for asked in (
            lambda: frames.backward("rows"),
            lambda: frames.forward("reports"),
            frames.edges,
        ):
            with pytest.raises(
                HeadwaterError, match="captured as 'intervals', and so has no edges"
            ):
                asked()


def test_what_was_erased_is_in_no_frame(tmp_path: Path, spark: SparkSession) -> None:
    with SmallLake(f"delta:{tmp_path / 'lake'}") as lake:
        lake.register(flow())
        kept = reports((1, 1, 10), (2, 2, 20))
        lake.commit(batch(0, stopped((7, 70, "a", 2, [1, 2])), kept))
        with hw.open(f"delta:{tmp_path / 'lake'}") as store:
            assert store.frames(spark).records("reports").count() == 2
            store.erase("reports", ids=[2])
            assert not differences(store, spark)
            frames = store.frames(spark)
            assert [row.id for row in frames.records("reports").collect()] == [1]
            speeds = {row.id: row.speed for row in frames.backward("stopped").collect()}
            assert speeds == {1: 10, 2: None}


def test_a_store_in_a_file_says_what_to_do(tmp_path: Path, spark: SparkSession) -> None:
    from headwater.store import EmbeddedWriter

    EmbeddedWriter.open(tmp_path / "store").close()
    with hw.open(tmp_path / "store") as store, pytest.raises(StoreError, match="headwater copy"):
        store.frames(spark)
