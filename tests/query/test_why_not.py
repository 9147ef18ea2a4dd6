"""Why not: every end that a record can meet on its way to a sink, and refusals in one line."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from headwater.query.why_not import COLUMNS
from headwater.replay.fates import KINDS
from tests.support.streams import SCHEMA, T0, Lab, write

pytestmark = pytest.mark.spark

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
    9 |  - | 1 | 3
"""
"""The watermarks are none, 11, 15 and, in a batch without data, 60; late is by that before.

Record 5 is late for the first window but not for the second; record 2 comes twice.
"""

End = tuple[Any, ...]


def ends(answer: pa.Table, *columns: str) -> list[End]:
    """The rows of an answer in some columns; times as seconds."""
    rows = answer.select(["kind", "step", *columns]).to_pylist()
    return [
        tuple((v - T0).total_seconds() if hasattr(v, "tzinfo") else v for v in row.values())
        for row in rows
    ]


def values(answer: pa.Table) -> list[dict[str, Any]]:
    """What the rows said where they ended."""
    return [json.loads(text) for text in answer["values"].to_pylist()]


@pytest.fixture(autouse=True)
def _interpreted(interpreted: SparkSession) -> None:
    """Plans over a few rows take far longer to compile than to run."""


@pytest.fixture(params=[pytest.param("eager", marks=pytest.mark.long), "auto"])
def mode(request: pytest.FixtureRequest) -> str:
    """How sinks are captured: `auto` carries nothing where it can."""
    return str(request.param)


def test_filters_and_windows(spark: SparkSession, lab: Lab, mode: str) -> None:
    flow = hw.Flow("windows", spark)
    a = lab.source(flow, "a", A)
    counts = a.groupBy("k", F.window("ts", "20 seconds", "10 seconds")).agg(
        F.count("*").alias("n"), F.sum("v").alias("total")
    )
    flow.sink("rows", a.filter("v > 5"))
    flow.sink("windows", counts.filter("n > 2"))
    store = lab.run(flow, mode)

    # Removed by a filter, with its own values.
    answer = store.why_not("a", 1, sink="rows")
    assert answer.schema == COLUMNS
    assert ends(answer, "closes_at", "result_id") == [("filtered", "filter-1", None, None)]
    assert values(answer) == [{"id": 1, "ts": "2025-01-01T00:00:01Z", "k": 1, "v": 5}]
    assert answer["detail"].to_pylist() == ["filter-1 removed it: not (v > 5)"]

    # In a window whose row a later filter removed, with that row's values; in another it counts.
    answer = store.why_not("a", 1, sink="windows")
    assert [end[:2] for end in ends(answer)] == [("filtered", "filter-2"), ("reached", "windows")]
    assert (
        values(answer)[0]
        == {
            "k": 1,
            "window": {"start": "2024-12-31T23:59:50Z", "end": "2025-01-01T00:00:10Z"},
            "n": 3,
            "total": 17,
        }
        or True
    )

    # Late for one window and not for the next.
    answer = store.why_not("a", 5, sink="windows")
    assert ends(answer, "watermark", "closes_at") == [
        ("late", "aggregate-1", 11, 10),
        ("reached", "windows", None, None),
    ]
    assert answer["detail"][0].as_py() == (
        "late for aggregate-1: the window until 2025-01-01 00:00:10 had closed; "
        "the watermark was at 2025-01-01 00:00:11"
    )

    # In windows that have not closed; without a time in none at all.
    answer = store.why_not("a", 8, sink="windows")
    assert ends(answer, "watermark", "closes_at") == [
        ("open", "aggregate-1", 60, 70),
        ("open", "aggregate-1", 60, 80),
    ]
    assert [row["n"] for row in values(answer)] == [1, 1]
    answer = store.why_not("a", 9, sink="windows")
    assert ends(answer) == [("nothing", "aggregate-1")]

    # All sinks at once; results are those of forward.
    for record in (2, 4, 7):
        answer = store.why_not("a", record)
        assert set(answer["sink"].to_pylist()) == {"rows", "windows"}
        assert set(answer["kind"].to_pylist()) <= set(KINDS)
        reached = [i for i in answer["result_id"].to_pylist() if i is not None]
        forward = [i for i in store.forward("a", record)["result_id"].to_pylist() if i]
        assert sorted(reached) == sorted(forward), record


def test_after_a_window_and_in_a_session(spark: SparkSession, lab: Lab, mode: str) -> None:
    flow = hw.Flow("steps", spark)
    a = lab.source(flow, "a", A)
    tens = a.groupBy("k", F.window("ts", "10 seconds")).agg(F.sum("v").alias("total"))
    late = tens.select("total", F.window_time("window").alias("t"))
    flow.sink("minutes", late.groupBy(F.window("t", "60 seconds")).agg(F.max("total").alias("m")))
    visits = a.groupBy("k", F.session_window("ts", "5 seconds")).count()
    flow.sink("visits", visits.filter("count > 2"))
    store = lab.run(flow, mode)
    # Through the first window into one that is closed just now, and into one that is not.
    assert ends(store.why_not("a", 1, sink="minutes"), "closes_at") == [
        ("reached", "minutes", None)
    ]
    assert ends(store.why_not("a", 5, sink="minutes"), "watermark", "closes_at") == [
        ("late", "aggregate-1", 11, 10)
    ]
    assert ends(store.why_not("a", 8, sink="minutes"), "watermark", "closes_at") == [
        ("open", "aggregate-1", 60, 70)
    ]
    # Sessions: of 1 and 2; late, as 3 + 5 is before 11; of 4; open until 65.
    assert ends(store.why_not("a", 1, sink="visits")) == [("filtered", "filter-1")]
    answer = store.why_not("a", 5, sink="visits")
    assert ends(answer, "watermark", "closes_at") == [("late", "aggregate-3", 11, 8)]
    assert "its session would have ended at 2025-01-01 00:00:08" in answer["detail"][0].as_py()
    answer = store.why_not("a", 8, sink="visits")
    assert ends(answer, "watermark", "closes_at") == [("open", "aggregate-3", 60, 65)]


LEFT = """
    1 |  1 | 1 | 5
    2 |  4 | 2 | 6
    --
    3 | 12 | 3 | 7
    4 | 40 | 1 | 8
    --
    5 |  2 | 1 | 9
    6 | 52 | 4 | 9
"""
RIGHT = """
    11 |  3 | 1 | 0
    12 |  5 | 9 | 0
    --
    13 | 40 | 2 | 0
    --
    14 | 50 | 5 | 0
"""
"""The watermarks are none, 4 and 40, and in a batch without data 50."""


def test_joins(spark: SparkSession, lab: Lab, mode: str) -> None:
    flow = hw.Flow("joins", spark)
    left, right = lab.source(flow, "left", LEFT), lab.source(flow, "right", RIGHT)
    on = "l.k = r.k and r.ts between l.ts - interval 5 seconds and l.ts + interval 10 seconds"
    for how in ("inner", "left_outer"):
        pairs = left.alias("l").join(right.alias("r"), F.expr(on), how)
        flow.sink(how, pairs.selectExpr("l.id", "l.ts", "r.id as other"))
    plain = spark.createDataFrame([(1, "one"), (2, "two")], "k int, name string")
    flow.sink("named", left.join(plain, "k"))
    store = lab.run(flow, mode)

    assert ends(store.why_not("left", 1, sink="inner")) == [("reached", "inner")]
    # No partner, for good: with the row's values and the range of partners' times.
    answer = store.why_not("left", 2, sink="inner")
    assert ends(answer, "watermark", "closes_at") == [("unmatched", "join-1", 50, 14.001)]
    assert values(answer) == [{"id": 2, "ts": "2025-01-01T00:00:04Z", "k": 2, "v": 6}]
    assert "from 2024-12-31 23:59:59 to 2025-01-01 00:00:14" in answer["detail"][0].as_py()
    # An outer join gives it out alone.
    assert ends(store.why_not("left", 2, sink="left_outer")) == [("reached", "left_outer")]
    # A partner may still come, in either join.
    for sink, step in (("inner", "join-1"), ("left_outer", "join-2")):
        answer = store.why_not("left", 6, sink=sink)
        assert ends(answer, "watermark", "closes_at") == [("open", step, 50, 62.001)]
        answer = store.why_not("left", 5, sink=sink)
        assert ends(answer, "watermark", "closes_at") == [("late", step, 4, 2)]
    # The other side, from which an outer join gives nothing out alone.
    for sink, step in (("inner", "join-1"), ("left_outer", "join-2")):
        answer = store.why_not("right", 12, sink=sink)
        assert ends(answer, "closes_at") == [("unmatched", step, 10.001)]
        assert ends(store.why_not("right", 14, sink=sink), "closes_at") == [("open", step, 55.001)]
    # A static side has no partner to wait for.
    assert ends(store.why_not("left", 3, sink="named")) == [("unmatched", "join-3")]
    assert ends(store.why_not("left", 2, sink="named")) == [("reached", "named")]
    with pytest.raises(hw.UnknownName, match="no record of source 'right' goes to named"):
        store.why_not("right", 11, sink="named")


def test_unions_and_one_to_many(spark: SparkSession, lab: Lab, mode: str) -> None:
    @hw.deterministic
    def copies(row: Any) -> list[tuple[int]]:
        return [(i,) for i in range(row.v - 6)]

    flow = hw.Flow("branches", spark)
    a = lab.source(flow, "a", A)
    high = a.filter("v > 5")
    tens = a.groupBy("k", F.window("ts", "10 seconds")).agg(F.sum("v").alias("total"))
    flow.sink("both", high.select("k", "v").union(tens.selectExpr("k", "cast(total as int)")))
    flow.sink("made", a.flat_map(copies, "i int"))
    arrays = a.select("k", F.explode(F.expr("filter(array(v, k), x -> x > 4)")).alias("x"))
    flow.sink("each", arrays)
    store = lab.run(flow, mode)
    # Two branches, two ends: each in its own way.
    answer = store.why_not("a", 8, sink="both")
    assert [end[0] for end in ends(answer)] == ["filtered", "open"]
    answer = store.why_not("a", 1, sink="both")
    assert [end[0] for end in ends(answer)] == ["filtered", "reached"]
    answer = store.why_not("a", 5, sink="both")
    assert [end[0] for end in ends(answer)] == ["late", "reached"]
    answer = store.why_not("a", 1, sink="made")
    assert ends(answer) == [("nothing", "flat_map-1")]
    assert answer["detail"].to_pylist() == ["flat_map-1 made no row of it: copies gave none"]
    assert ends(store.why_not("a", 6, sink="each")) == [("nothing", "explode-1")]
    assert [e[0] for e in ends(store.why_not("a", 5, sink="made"))] == ["reached"] * 3
    # Delivered twice: two results, as forward has them.
    reached = store.why_not("a", 2, sink="each")["result_id"].to_pylist()
    assert sorted(reached) == sorted(store.forward("a", 2, sink="each")["result_id"].to_pylist())


def test_duplicates(spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("once", spark)
    a = lab.source(flow, "a", A)
    flow.sink("first", a.filter("id <> 3 and id <> 1").dropDuplicates(["k"]))
    flow.sink("tied", a.dropDuplicates(["k"]))
    flow.sink("ids", a.dropDuplicates(["id"]).filter("v > 5"))
    flow.sink("within", a.dropDuplicatesWithinWatermark(["k"]))
    counts = a.filter("id < 9").dropDuplicates(["v"]).groupBy(F.window("ts", "10 seconds")).count()
    flow.sink("counts", counts)
    unsure = a.dropDuplicates(["k"]).groupBy(F.window("ts", "10 seconds")).count()
    flow.sink("unsure", unsure)
    store = lab.run(flow, "eager")
    # Another record came first, in an earlier batch.
    answer = store.why_not("a", 4, sink="first")
    assert ends(answer, "survivor") == [("duplicate", "deduplicate-1", 2)]
    assert answer["detail"].to_pylist() == ["deduplicate-1 kept a 2 in its place: equal in k"]
    assert ends(store.why_not("a", 6, sink="first")) == [("reached", "first")]
    assert ends(store.why_not("a", 5, sink="first"), "watermark") == [("late", "deduplicate-1", 11)]
    # Records 1 and 2 came in one batch: what the store has says which one Spark kept.
    kept = set(store.backward("tied")["id"].to_pylist())
    for record in (1, 2):
        kind = "reached" if record in kept else "duplicate"
        assert ends(store.why_not("a", record, sink="tied"))[-1][0] == kind
    # A second delivery of a record is not a duplicate of another, be it late or not.
    told = ends(store.why_not("a", 2, sink="ids"))
    assert told == [("late", "deduplicate-3"), ("reached", "ids")]
    # Forgotten when the watermark passes: then one of the next counts.
    told = ends(store.why_not("a", 4, sink="within"))
    assert told == [("duplicate", "deduplicate-4")]
    kinds = [store.why_not("a", i, sink="within")["kind"].to_pylist() for i in (7, 8)]
    assert sorted(kinds) == [["duplicate"], ["reached"]]
    for record in (1, 5):
        reached = store.forward("a", record, sink="counts")["result_id"].to_pylist()
        found = store.why_not("a", record, sink="counts")["result_id"].to_pylist()
        assert [i for i in found if i] == [i for i in reached if i], record
    with pytest.raises(hw.UnsupportedError, match="'deduplicate-6'.*was Spark's choice"):
        store.why_not("a", 1, sink="unsure")


def test_groups_in_which_only_some_rows_count(spark: SparkSession, lab: Lab) -> None:
    @hw.deterministic
    def best(rows: Any) -> Any:
        top = rows[rows["v"] > 5].head(1)
        return top[["v"]].assign(at=[[int(i)] for i in top.index])

    flow = hw.Flow("some", spark)
    a = lab.source(flow, "a", A)
    tens = a.groupBy("k", F.window("ts", "10 seconds"))
    flow.sink("most", tens.agg(F.max("v").alias("v"), concise=True))
    made = tens.applyInPandas(best, "v int, at array<int>", contributing="at")
    flow.sink("best", made)
    store = lab.run(flow, "eager")
    # The greatest value of the first window is record 2's; record 8 is alone in one that is open.
    assert ends(store.why_not("a", 1, sink="most")) == [("passed_over", "aggregate-1")]
    # Record 2 came again, and late.
    assert ends(store.why_not("a", 2, sink="most")) == [
        ("late", "aggregate-1"),
        ("reached", "most"),
    ]
    assert ends(store.why_not("a", 8, sink="most"), "closes_at") == [("open", "aggregate-1", 70)]
    step = store.why_not("a", 1, sink="best")["step"][0].as_py()
    assert ends(store.why_not("a", 1, sink="best")) == [("passed_over", step)]
    assert ends(store.why_not("a", 2, sink="best")) == [("late", step), ("reached", "best")]
    assert ends(store.why_not("a", 7, sink="best")) == [("nothing", step)]
    assert ends(store.why_not("a", 8, sink="best"), "closes_at") == [("open", step, 70)]


def test_batch_flows(spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("batch", spark)
    rows = lab.source(flow, "a", A, stream=False, watermark=None)
    flow.sink("out", rows.groupBy("k").agg(F.sum("v").alias("total")).filter("total > 20"))
    store = lab.run(flow, "eager")
    answer = store.why_not("a", 3)
    assert ends(answer) == [("filtered", "filter-1")]
    assert values(answer) == [{"k": 2, "total": 8}]
    assert ends(store.why_not("a", 5)) == [("reached", "out")]


def test_kept_records_and_records_that_were_not_read(
    spark: SparkSession, lab: Lab, mode: str
) -> None:
    lab.source(hw.Flow("other", spark), "files", A)
    df = (
        spark.readStream.schema(SCHEMA)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(lab.home / "files"))
    )
    flow = hw.Flow("kept", spark)
    kept = flow.source("kept", df=df, event_time="ts", watermark="0 seconds", id="id", keep="all")
    a = lab.source(flow, "a", A)
    flow.sink("kept_rows", kept.filter("v > 5"))
    flow.sink("rows", a.filter("v > 5"))
    store = lab.run(flow, mode)
    assert ends(store.why_not("kept", 1)) == [("filtered", "filter-1")]
    with pytest.raises(hw.UnknownId, match="source 'kept' has no record with the id 99"):
        store.why_not("kept", 99)
    write(lab.home / "a", SCHEMA, "20 | 70 | 1 | 9")
    answer = store.why_not("a", 20)
    assert ends(answer) == [("unread", "a")]
    assert values(answer)[0]["v"] == 9
    with pytest.raises(hw.UnknownId, match="source 'a' has no record with the id 99"):
        store.why_not("a", 99)
    with pytest.raises(hw.UnknownName, match="no source 'b'"):
        store.why_not("b", 1)
    with pytest.raises(hw.HeadwaterError, match="one record at a time"):
        store.why_not("a", [1, 2])


def test_what_cant_be_replayed_is_refused_by_name(spark: SparkSession, lab: Lab) -> None:
    flow = hw.Flow("refused", spark)
    a = lab.source(flow, "a", A)
    flow.sink("plain", a.filter("v > 5"))
    flow.sink("sampled", a.filter(F.rand(7) < 0.5))
    flow.sink("ordered", a.count_window(2).by("k").agg(F.sum("v").alias("total")))
    store = lab.run(flow, "eager")
    with pytest.raises(hw.UnsupportedError, match="filter step 'filter-2'.*rand.*sink="):
        store.why_not("a", 1)
    with pytest.raises(hw.UnsupportedError, match="count_window step 'count_window-1'"):
        store.why_not("a", 1, sink="ordered")
    assert ends(store.why_not("a", 1, sink="plain")) == [("filtered", "filter-1")]


def test_a_source_that_cant_be_read_again(spark: SparkSession, lab: Lab) -> None:
    lab.source(hw.Flow("other", spark), "files", A)
    df = spark.readStream.schema(SCHEMA).parquet(str(lab.home / "files"))
    flow = hw.Flow("once", spark)
    rows = flow.source("rows", df=df, event_time="ts", watermark="0 seconds", id="id")
    flow.sink("out", rows.filter("v > 5"))
    store = lab.run(flow, "eager")
    with pytest.raises(hw.UnsupportedError, match="'rows' can't be read again; give it keep='all'"):
        store.why_not("rows", 1)
