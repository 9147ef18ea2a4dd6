"""Count windows: the rows of a window are its provenance; arrival order says which they are."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

import headwater as hw
from headwater.errors import UnsupportedError
from tests.support.streams import Lab, times_of

A = """
1 | 0 | 1 | 5
2 | 9 | 2 | 6
3 | 4 | 1 | -
--
4 | 1 | 1 | 7
4 | 1 | 1 | 7
--
5 | 30 | 2 | 8
6 | 31 | 1 | 9
"""


def test_count_windows(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", A)
    pairs = a.count_window(2, 1).by("k").agg(F.sum("v").alias("sum"), F.count("v").alias("n"))
    flow.sink("pairs", pairs)
    flow.sink("threes", a.count_window(3).agg(F.collect_list("id").alias("ids")))
    # In order of their values: the second batch is sorted among itself, not with the first.
    sorted_ = a.count_window(2, order_by="v")
    flow.sink("sorted", sorted_.agg(F.first("id").alias("first"), F.last("id").alias("last")))
    told = lab.tell(flow)
    assert told["pairs"] == [
        ((1, 14, 2), {"a": {4}}),
        ((1, 16, 2), {"a": {4, 6}}),
        ((1, 5, 1), {"a": {1, 3}}),
        ((1, 7, 1), {"a": {3, 4}}),
        ((2, 14, 2), {"a": {2, 5}}),
    ]
    assert told["threes"] == [(((1, 2, 3),), {"a": {1, 2, 3}}), (((4, 4, 5),), {"a": {4, 5}})]
    assert told["sorted"] == [
        ((2, 4), {"a": {2, 4}}),
        ((3, 1), {"a": {1, 3}}),
        ((4, 5), {"a": {4, 5}}),
    ]


def test_windows_behind_other_steps(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", A)
    kept = a.filter("v > 5").withColumn("double", F.col("v") * 2).select("id", "ts", "double")
    twos = kept.count_window(2).agg(
        F.max("ts").alias("ts"), F.sum("double").alias("sum"), F.min("id").alias("id")
    )
    # What comes out is in order again, and has an event time that windows can be over.
    flow.sink("of_windows", twos.count_window(2).agg(F.sum("sum").alias("sum")))
    flow.sink("by_time", twos.groupBy(F.window("ts", "10 seconds")).agg(F.sum("sum").alias("sum")))
    parts = a.select("id", F.explode(F.array("id", F.col("id") * 10)).alias("part"))
    flow.sink("parts", parts.count_window(3).agg(F.collect_list("part").alias("parts")))
    told = lab.tell(flow)
    assert told["of_windows"] == [((12 + 14 + 14 + 16,), {"a": {2, 4, 5}})]
    assert told["by_time"] == [(((0.0, 10.0), 12 + 14), {"a": {2, 4}})]
    assert told["parts"] == [
        (((1, 10, 2),), {"a": {1, 2}}),
        (((20, 3, 30),), {"a": {2, 3}}),
        (((4, 40, 4),), {"a": {4}}),
        (((40, 5, 50),), {"a": {4, 5}}),
    ]


def test_the_event_time_is_the_latest_of_the_rows(flow: hw.Flow, lab: Lab) -> None:
    windows = lab.source(flow, "a", A).count_window(2).by("k").agg(F.count("*").alias("n"))
    flow.sink("windows", windows)
    assert times_of(lab.run(flow, "eager"), "windows") == [1.0, 4.0, 30.0]


@pytest.mark.parametrize("mode", ["intervals", "ancestors"])
def test_lazy_captures_refuse_it_by_name(flow: hw.Flow, lab: Lab, mode: str) -> None:
    flow.sink("windows", lab.source(flow, "a", A).count_window(2).agg(F.count("*").alias("n")))
    with pytest.raises(UnsupportedError, match="count_window step 'count_window-1' .* before"):
        lab.run(flow, mode)


def test_batch_sources_have_an_order_too(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", A, stream=False, watermark=None, options={})
    flow.sink("threes", a.count_window(3).agg(F.collect_list("id").alias("ids")))
    assert lab.tell(flow)["threes"] == [
        (((1, 2, 3),), {"a": {1, 2, 3}}),
        (((4, 4, 5),), {"a": {4, 5}}),
    ]


def test_every_aggregate_has_the_type_that_spark_gives_it(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", A).selectExpr(
        "id", "ts", "v", "CAST(v AS decimal(8, 2)) AS d", "CAST(v AS float) AS f", "'x' AS s"
    )
    made = [
        *(F.expr(f"{fn}({c})").alias(f"{fn}_{c}") for fn in ("sum", "avg") for c in "vdf"),
        *(F.expr(f"{fn}({c})").alias(f"{fn}_{c}") for fn in ("min", "last") for c in "vdfs"),
        F.max("ts").alias("ts"),
        F.countDistinct("v").alias("distinct"),
        F.size(F.collect_set("v")).alias("size"),
        F.stddev("v").alias("stddev"),
        F.collect_set("s").alias("set"),
    ]
    flow.sink("all", a.count_window(3).agg(*made))
    (first, _), *_ = lab.tell(flow)["all"]
    shown = dict(zip(_names(flow), first, strict=True))
    assert shown["sum_v"] == 11
    assert str(shown["sum_d"]) == "11.00"
    assert shown["avg_v"] == 5.5
    assert str(shown["avg_d"]) == "5.500000"
    assert shown["min_s"] == "x"
    assert shown["last_v"] is None
    assert shown["ts"] == 9.0
    assert (shown["distinct"], shown["size"]) == (2, 2)
    assert shown["stddev"] == pytest.approx(0.7071067811865476)


def _names(flow: hw.Flow) -> list[str]:
    return list(flow._plain.lower(flow.sinks["all"]).columns)
