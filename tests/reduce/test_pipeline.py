"""Whole reductions on Spark: files to dependencies, against the plain closure."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

import headwater as hw
from headwater.errors import HeadwaterError, RunError, StoreError
from headwater.reduce.facts import EDGES_ROW, FACTS, Facts
from headwater.reduce.intake import Intake
from headwater.reduce.partitioning import PARTITIONS
from headwater.reduce.planning import murmur3, rows_of_values
from headwater.reduce.run import Reduction
from headwater.reduce.sink import ReducedBatch
from headwater.testing.prov_graphs import Element, dependencies
from tests.reduce.streams import (
    END,
    delayed,
    dependencies_in,
    job,
    letters_in,
    longest_gap,
    put,
    shuffled,
    write,
)

pytestmark = pytest.mark.spark

TIMES = {"strategy": "watermark", "watermark": "1 minute", "lifetime": "100 seconds"}


class Home:
    """Where a test's jobs are read from and reduced to."""

    def __init__(self, place: Path) -> None:
        self.input = place / "in"
        self.store = place / "store"
        self.batches: list[ReducedBatch] = []

    def reduce(self, name: str = "J", *, size: int = 6_000, **given: Any) -> Reduction:
        given = {"once": True, "local_batch": 40, "global_batch": 60, "partitions": 3, **given}
        return hw.reduce_job(
            self.input,
            store=self.store,
            job=name,
            options={"maxBytesPerTrigger": str(size)},
            on_batch=self.batches.append,
            **given,
        )

    def letters(self, name: str = "J") -> list[dict[str, Any]]:
        return letters_in(self.store / "jobs" / name / "dead-letters")


@pytest.fixture
def home(spark: SparkSession, tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_grouping_equals_the_closure(home: Home) -> None:
    told = job(80, seed=1)
    write(home.input, shuffled(told, seed=2), files=5)
    # All at a time: jobs share a store, and most of their time is Spark's start.
    running = [home.reduce(by, partition=by, functions=by == "random") for by in PARTITIONS]
    for one in running:
        one.finish()
        assert dependencies_in(home.store, one.job) == dependencies(told)
        counts = one.counts
        assert counts.batches > 3
        assert counts.edges == counts.elements > len(told)
        assert counts.after_local < counts.edges
        assert counts.finished is not None
        assert counts.after_global == counts.finished.dependencies == len(dependencies(told))
        assert counts.bytes == sum(file.stat().st_size for file in home.input.iterdir())
        assert home.letters(one.job) == []
    assert sum(batch.elements for batch in home.batches) == 3 * counts.edges


def test_watermark_equals_the_closure(home: Home) -> None:
    told = job(150, seed=3)
    assert longest_gap(told) <= 100
    write(home.input, delayed(told, seed=4, within=60), files=4)
    running = [home.reduce(by, partition=by, size=15_000, **TIMES) for by in PARTITIONS]
    for one in running:
        one.wait()
    written = sum(batch.dependencies for batch in home.batches)
    assert written > 0, "what is past must be written before the end for this to mean anything"
    assert max(batch.state for batch in home.batches) < len(told) / 2
    for one in running:
        one.finish()
        assert home.letters(one.job) == []
        assert dependencies_in(home.store, one.job) == dependencies(told)


def test_a_window_as_long_as_the_stream_is_exact_in_order(home: Home) -> None:
    told = job(40, seed=5)
    write(home.input, [element.to_json() for element in told], files=3)
    home.reduce(strategy="window", window=10_000, partitions=1, global_batch=10**6).finish()
    assert dependencies_in(home.store, "J") == dependencies(told)


def test_a_short_window_loses_something_out_of_order(home: Home) -> None:
    told = job(60, seed=5)
    write(home.input, shuffled(told, seed=6), files=3)
    home.reduce(strategy="window", window=1, partitions=1).finish()
    assert dependencies_in(home.store, "J") != dependencies(told)


def test_the_end_completes_a_job_and_what_follows_is_dead(home: Home) -> None:
    told = job(30, seed=7)
    write(home.input, shuffled(told, seed=8), files=2)
    late = '{"type": "used", "activity": "x", "entity": "late-%d"}\n'
    put(home.input, 5, late.replace("late-%d", "in-0") + END + late % 1)
    put(home.input, 6, late % 2 + late % 3)  # of the same batch
    put(home.input, 7, late % 4 + "z" * 20_000 + "\n")  # of the next
    running = home.reduce(size=15_000)
    running.wait()
    assert running.counts.finished is not None
    used = Element("used", "x", "in-0")
    assert dependencies_in(home.store, "J") == dependencies([*told, used])
    letters = home.letters()
    assert [letter["reason"] for letter in letters] == ["job 'J' is finished"] * 5
    assert ["late-" in letter["line"] for letter in letters] == [True] * 4 + [False]
    assert running.counts.rejected == {"job '…' is finished": 5}
    with pytest.raises(StoreError, match="job 'J' is finished"):
        home.reduce()


def test_the_end_flushes_what_reducers_keep_back(home: Home) -> None:
    told = job(40, seed=7)
    write(home.input, delayed(told, seed=8, within=60), files=2)
    put(home.input, 5, END)
    home.reduce(**{**TIMES, "watermark": "1 day"}).wait()
    assert dependencies_in(home.store, "J") == dependencies(told)


def test_late_elements_are_dead_letters(home: Home) -> None:
    told = [
        Element("used", "a", "in", seconds=0),
        Element("wasGeneratedBy", "out", "a", seconds=500),
        Element("wasDerivedFrom", "sum", "out", seconds=700),
    ]
    late = Element("used", "b", "other", seconds=499)
    first = put(home.input, 0, "".join(json.dumps(e.to_json()) + "\n" for e in told))
    put(home.input, 1, json.dumps(late.to_json()) + "\n" + "x" * 5_000 + "\n")
    put(home.input, 2, '{"type": "used", "activity": "c", "entity": "timeless"}\n')
    times = {"watermark": "200 seconds", "lifetime": "10 minutes"}
    home.reduce(size=first.stat().st_size, strategy="watermark", **times).finish()
    assert dependencies_in(home.store, "J") == {("sum", "in")}
    reasons = Counter(letter["reason"].split(":")[0] for letter in home.letters())
    assert reasons == {"late": 1, "not JSON": 1, "`time` is missing": 1}
    [line] = [letter["line"] for letter in home.letters() if letter["reason"].startswith("late")]
    assert json.loads(line)["entity"] == "other"
    assert sum(batch.elements for batch in home.batches) == 3


def test_a_job_goes_on_where_it_stopped(home: Home) -> None:
    told = job(60, seed=9)
    lines = shuffled(told, seed=10)
    half = len(lines) // 2
    write(home.input, lines[:half], files=2)
    home.reduce().wait()
    batches = len(home.batches)
    home.reduce().wait()
    assert len(home.batches) == batches, "there was nothing new"
    write(home.input, lines[half:], files=2, start=2)
    home.reduce(partitions=None).finish()
    assert dependencies_in(home.store, "J") == dependencies(told)


def test_silence_completes_a_job(home: Home) -> None:
    told = job(20, seed=11)
    lines = delayed(told, seed=12, within=60)
    half = len(lines) // 2
    write(home.input, lines[:half], files=1)
    with home.reduce(once=False, idle_after="3 seconds", **TIMES) as running:
        while not home.batches:
            time.sleep(0.1)
            assert running.active
        write(home.input, lines[half:], files=1, start=1)
        assert running.wait(timeout=120)
    assert running.counts.finished is not None
    assert dependencies_in(home.store, "J") == dependencies(told)


def test_a_run_is_stopped_between_batches(home: Home) -> None:
    put(home.input, 0, '{"type": "used", "activity": "a", "entity": "in"}\n')
    running = home.reduce(once=False)
    while not home.batches:
        time.sleep(0.1)
    running.stop()
    assert not running.active
    assert running.counts.finished is None
    assert repr(running) == "Reduction('J', ended)"


def test_bad_input_stops_nothing(home: Home) -> None:
    told = job(20, seed=13)
    write(home.input, [e.to_json() for e in told], files=1)
    big = json.dumps({"type": "used", "activity": "a", "entity": "x" * 1_000_000})
    other = '{"type": "used", "activity": "a", "entity": "in", "job": "K"}'
    loop = '{"type": "wasDerivedFrom", "generatedEntity": "e", "usedEntity": "e"}'
    unknown = '{"type": "wasEaten", "entity": "in"}'
    agent = '{"type": "agent", "id": "me"}'
    bad = ["garbage", '{"type": "used"', "[]", big, other, loop, unknown, agent, "", "\x00"]
    put(home.input, 2, "\n".join(bad))
    (home.input / "gone.jsonl").symlink_to("/nonexistent/file")
    (home.input / "broken.jsonl.gz").write_bytes(b"this is not packed")
    cycle = [Element("wasDerivedFrom", "p", "q"), Element("wasDerivedFrom", "q", "p")]
    put(home.input, 3, "".join(json.dumps(e.to_json()) + "\n" for e in cycle))
    running = home.reduce(size=10**7)
    running.finish()
    assert dependencies_in(home.store, "J") == dependencies([*told, *cycle])
    assert running.counts.filtered == {"agent": 1}
    assert running.counts.rejected.total() == len(bad) - 2 + 1
    letters = home.letters()
    assert [set(letter["vertices"]) for letter in letters if "vertices" in letter] == [{"p", "q"}]
    assert max(len(letter.get("line", "")) for letter in letters) <= 4_100
    reasons = {letter["reason"] for letter in letters}
    assert len(reasons) >= 7
    assert running.counts.finished is not None
    assert running.counts.finished.cycles


def test_documents_and_packed_files_are_read_too(home: Home) -> None:
    import gzip

    home.input.mkdir()
    document = {
        "prefix": {"ex": "http://example.org/"},
        "wasGeneratedBy": {"g": {"prov:entity": "ex:out", "prov:activity": "ex:a"}},
        "used": {"u": {"prov:activity": "ex:a", "prov:entity": "ex:in"}},
    }
    (home.input / "a.json").write_text(json.dumps(document, indent=1))
    line = '{"type": "wasDerivedFrom", "generatedEntity": "sum", "usedEntity": "ex:out"}\n'
    (home.input / "b.jsonl.gz").write_bytes(gzip.compress(line.encode()))
    home.reduce().finish()
    assert dependencies_in(home.store, "J") == {("sum", "ex:in")}


def test_an_empty_directory_makes_an_empty_job(home: Home) -> None:
    home.input.mkdir()
    running = home.reduce(**TIMES)
    running.finish()
    assert running.counts.finished is not None
    assert running.counts.finished.dependencies == 0


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"strategy": "magic"}, "strategy='magic' is not one of"),
        ({"partition": "diagonal"}, "partition='diagonal' is not one of"),
        ({"watermark": "5 minutes"}, "watermark='5 minutes' is of strategy='watermark'"),
        ({"lifetime": "5 minutes"}, "lifetime='5 minutes' is of strategy='watermark'"),
        ({"window": 5}, "window=5 is of strategy='window'"),
        ({"strategy": "watermark", "window": 5}, "means nothing with 'watermark'"),
        ({"strategy": "watermark", "lifetime": "soon"}, "'soon'"),
        ({"strategy": "watermark", "lifetime": "0 seconds"}, "not longer than nothing"),
        ({"strategy": "watermark", "keep": "full"}, "keep='full' keeps all edges"),
        ({"keep": "some"}, "keep='some' is not one of"),
        ({"partitions": 0}, "partitions=0 is not a number of 1 or more"),
        ({"local_batch": 0}, "local_batch=0"),
        ({"idle_after": "1 minute"}, "either once=True"),
        ({"idle_after": "later", "once": False}, "'later'"),
        ({"name": ""}, "a job's name has 1 to 200 bytes"),
        ({"size": "many"}, "maxBytesPerTrigger='many'"),
        ({"dead_letters": "/proc/letters"}, "dead letters can't be written to /proc/letters"),
    ],
)
def test_what_can_not_be_asked(home: Home, given: dict[str, Any], says: str) -> None:
    home.input.mkdir()
    with pytest.raises(HeadwaterError) as refused:
        home.reduce(**given)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not home.store.exists()


def test_a_missing_directory(home: Home) -> None:
    with pytest.raises(RunError, match="there is no directory"):
        home.reduce()


def test_kafka_needs_a_broker_and_the_connector(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.input = "kafka:prov"  # type: ignore[assignment]
    with pytest.raises(RunError, match="give the option bootstrap.servers"):
        home.reduce()

    def absent(*_: object) -> None:
        raise AnalysisException("Failed to find data source: kafka. Deploy the application as …")

    # The session may have it, for other tests.
    monkeypatch.setattr(DataStreamReader, "load", absent)
    with pytest.raises(RunError, match="kafka:prov: Spark's connector to Kafka is missing"):
        hw.reduce_job(
            "kafka:prov",
            store=home.store,
            job="J",
            options={"bootstrap.servers": "localhost:9092"},
        )
    assert not home.store.exists()


def test_a_job_goes_on_only_as_it_was_begun(home: Home, tmp_path: Path) -> None:
    put(home.input, 0, '{"type": "used", "activity": "a", "entity": "in"}\n')
    home.reduce().wait()
    for given, says in [
        ({"partitions": 2}, "has 3 partitions and can't go on with 2"),
        ({"partition": "random"}, "was begun with partition='vertical'"),
        ({"checkpoint": tmp_path / "other"}, "was begun with another checkpoint"),
        ({"name": "K", "checkpoint": home.store / "jobs" / "J" / "checkpoint"}, "belongs to job"),
    ]:
        with pytest.raises(HeadwaterError, match=says):
            home.reduce(**given)
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "metadata").touch()
    with pytest.raises(RunError, match="belongs to a query that is not job 'K'"):
        home.reduce("K", checkpoint=tmp_path / "used")
    home.reduce(global_batch=7).finish()


def test_a_store_and_a_checkpoint_that_disagree(home: Home) -> None:
    put(home.input, 0, '{"type": "used", "activity": "a", "entity": "in"}\n')
    home.reduce().wait()
    checkpoint = home.store / "jobs" / "J" / "checkpoint"
    shutil.copy(checkpoint / "commits" / "0", checkpoint / "commits" / "1")
    with pytest.raises(RunError, match="the store lacks batch 1 of job 'J'"):
        home.reduce()
    for log in ("commits", "offsets"):
        for file in (checkpoint / log).iterdir():
            file.unlink()
    with pytest.raises(RunError, match="the store holds batch 0 of job 'J'"):
        home.reduce()


def test_messages_become_rows_on_spark(spark: SparkSession) -> None:
    lines = [json.dumps(e.to_json()) for e in job(10, seed=14)]
    values = spark.createDataFrame(pa.table({"value": [line.encode() for line in lines]}))
    made = rows_of_values(values, Intake("J", "vertical", (0, 1))).toArrow().to_pylist()
    facts = Facts.sum([Facts.from_bytes(r["payload"]) for r in made if r["kind"] == FACTS])
    assert facts.elements == len(lines)
    assert {r["bucket"] for r in made if r["kind"] == EDGES_ROW} == {0, 1}


def test_buckets_are_hashed_as_spark_does(spark: SparkSession) -> None:
    rows = spark.range(50).selectExpr("id", "hash(cast(id AS int)) AS hash").collect()
    assert [murmur3(row["id"]) for row in rows] == [row["hash"] for row in rows]
