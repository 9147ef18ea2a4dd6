"""The job that the restart tests kill: `python -m tests.restart.job HOME [POINT BATCH]`.

POINT says where in a batch the process kills itself, its JVM with it: `before` the store's
transaction, `inside` it when all is written but nothing committed, or `after` it, when the store
has the batch and Spark does not know yet.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from headwater.examples import load
from headwater.store import EmbeddedWriter
from headwater.store.lake.prepared import Notes
from headwater.store.lake.tables import Table
from headwater.store.lake.writer import LakeWriter
from headwater.testing.records import SCHEMA, SourceData
from tests.random_flows.running import write_files
from tests.support import MASTER, full

T0 = datetime(2025, 1, 1, tzinfo=UTC)


def generate(home: Path, sources: int, files: int, seed: int) -> None:
    """Streams with disorder, late records and duplicates, a file for each micro-batch."""
    chance = random.Random(seed)
    for s in range(sources):
        batches, ids = [], iter(range(s * 1_000_000, (s + 1) * 1_000_000))
        for f in range(files):
            rows: list[tuple[Any, ...]] = []
            for _ in range(chance.randint(4, 12)):
                second = max(0, f * 10 + chance.choice([0, 3, 7, 9, -4, -8, -40]))
                k, v = chance.randint(1, 3), chance.randint(0, 9)
                rows.append((next(ids), T0 + timedelta(seconds=second), k, v, "s", (v,)))
            rows += chance.sample(rows, k=min(len(rows), chance.randint(0, 1)))
            batches.append(tuple(rows))
        data = SourceData(name=f"s{s}", batches=tuple(batches), delay="5 seconds", declared=True)
        write_files(data, home / f"s{s}")


def flow(spark: SparkSession, home: Path) -> hw.Flow:
    """A flow of each kind of state over whatever sources there are."""
    made = hw.Flow("restart", spark)
    if (home / EXAMPLE).exists():
        example = load((home / EXAMPLE).read_text())
        example.sinks(made, home / example.SOURCE, options={"maxFilesPerTrigger": "1"})
        return made
    frames = [
        made.source(
            place.name,
            schema=SCHEMA,
            event_time="ts",
            watermark="5 seconds",
            id="id",
            **_reading(place),
        )
        for place in sorted(home.glob("s[0-9]"))
    ]
    first, last = frames[0], frames[-1]
    if (home / IN_ORDER).exists():
        return _in_order(made, first, last)
    made.sink("rows", first.filter("v > 4").select("id", "v"))
    made.sink("windows", first.groupBy("k", F.window("ts", "20 seconds", "10 seconds")).count())
    made.sink("distinct", last.dropDuplicates(["id", "ts"]).select("id"))
    near = F.expr("l.k = r.k AND l.ts BETWEEN r.ts - INTERVAL 4 SECONDS AND r.ts")
    pairs = first.filter("v > 2").alias("l").join(last.filter("v < 6").alias("r"), near)
    made.sink("pairs", pairs.selectExpr("l.id", "r.id AS other"))
    if (home / LIVE).exists():
        sessions = first.groupBy("k", F.session_window("ts", "12 seconds")).count()
        made.sink("sessions", sessions.filter("count > 2"))
    return made


def _reading(place: Path) -> dict[str, Any]:
    """How a source is read: a folder has its files, a file the options of its topic."""
    if place.is_file():
        return {"format": "kafka", "options": json.loads(place.read_text())}
    return {"format": "parquet", "path": str(place), "options": {"maxFilesPerTrigger": "1"}}


IN_ORDER = "in-order"
"""A file of this name asks for steps over arrival order instead."""
EXAMPLE = "example"
"""A file of this name has the name of an example, whose flow it then is."""
LAKE = "lake"
"""A file of this name asks for a lake as the store."""
LIVE = "live"
"""A file of this name asks for a live graph, with sessions among the steps."""


def store_of(home: Path) -> str:
    """The address of the store."""
    return f"{'delta:' if (home / LAKE).exists() else ''}{home / 'store'}"


def _in_order(made: hw.Flow, first: hw.Frame, last: hw.Frame) -> hw.Flow:
    """A flow of each step that keeps rows until others arrive."""
    columns = first.select("id", "ts", "k", "v")
    other = last.selectExpr("id AS other", "ts AS at", "k", "v AS w")
    count = F.count("*").alias("n")
    made.sink("counted", columns.count_window(5, 2).by("k").agg(F.sum("v").alias("v"), count))
    recent = columns.join_last(other, "k", left=2, right="10 seconds").select("id", "other")
    made.sink("recent", recent)
    if not full():
        # All steps keep their state in one way: a few of them have to do, each takes its time.
        _falls(made, columns)
        return made
    made.sink("close", columns.value_window("20 seconds", "10 seconds", "ts").agg(count))
    made.sink("sorted", columns.b_sort(6, "ts").count_window(2).agg(F.min("id").alias("id")))
    made.sink("latest", columns.join_latest(other, "k", how="left_outer").select("id", "other"))
    ranged = columns.join_value(other, "ts", "at", "4 seconds", "k").select("id", "other")
    made.sink("ranged", ranged)
    _falls(made, columns)
    return made


def _falls(made: hw.Flow, columns: hw.Frame) -> None:
    """The pattern of falling values."""
    falls = columns.match(
        "A B+",
        by="k",
        within="30 seconds",
        define={"B": "v < prev(v)"},
        measures={"n": "count(*)", "least": "min(v)"},
    )
    made.sink("falls", falls)


MIXED = {"eager": ["rows"], "intervals": ["windows"], "ancestors": ["distinct", "pairs"]}


def capture(home: Path) -> str | dict[str, list[str]]:
    """One source is captured eagerly, several in all modes: then the log of files must be right."""
    if (home / IN_ORDER).exists() or (home / LIVE).exists():
        return "eager"
    return "eager" if len(list(home.glob("s[0-9]"))) == 1 else MIXED


def kill_at(point: str, batch: int) -> None:
    """Arrange for this process and its JVM to be killed at a point of a batch."""
    commit = EmbeddedWriter.commit

    def die(*_: object) -> None:
        os.killpg(os.getpgid(0), signal.SIGKILL)

    def killing(self: EmbeddedWriter, given: Any, before_commit: Any = None) -> Any:
        mine = given.batch >= batch
        if mine and point == "before":
            die()
        done = commit(self, given, die if mine and point == "inside" else before_commit)
        if mine and point == "after":
            die()
        return done

    EmbeddedWriter.commit = killing  # type: ignore[method-assign]


def kill_lake_at(point: str, batch: int) -> None:
    """The same for a lake, where `noted` and `inside` are points before and between its tables."""
    write, add, commit = Notes.write, Table.add, LakeWriter.commit

    def die() -> None:
        os.killpg(os.getpgid(0), signal.SIGKILL)

    def noting(self: Notes, prepared: Any) -> None:
        mine = prepared.batch >= batch
        if mine and point == "before":
            die()
        write(self, prepared)
        if mine and point == "noted":
            die()

    def adding(self: Table, files: Any, app: str, version: int) -> None:
        add(self, files, app, version)
        if version >= batch and point == "inside":
            die()

    def committing(self: LakeWriter, query_id: str, number: int, *given: Any, **more: Any) -> Any:
        done = commit(self, query_id, number, *given, **more)
        if number >= batch and point == "after":
            die()
        return done

    Notes.write = noting  # type: ignore[method-assign]
    Table.add = adding  # type: ignore[method-assign]
    LakeWriter.commit = committing  # type: ignore[method-assign]


def session() -> SparkSession:
    """A small session of this process's own."""
    return (
        SparkSession.builder.master(os.environ.get(MASTER, "local[2]"))
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        # It lives for seconds: compiling, of its own code or of plans, never pays.
        .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.executor.memory", "768m")
        .getOrCreate()
    )


if __name__ == "__main__":
    place = Path(sys.argv[1])
    if len(sys.argv) > 2:
        kill = kill_lake_at if (place / LAKE).exists() else kill_at
        kill(sys.argv[2], int(sys.argv[3]))
    run = flow(session(), place).start(
        store=store_of(place),
        checkpoint=str(place / "checkpoint"),
        capture=capture(place),
        available_now=True,
        live=(place / LIVE).exists(),
        on_batch=lambda info: print(f"batch {info.batch}", flush=True),
    )
    run.wait()
