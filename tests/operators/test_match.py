"""Patterns: a match's provenance is the events that it matched."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import functions as F

import headwater as hw
from headwater.errors import FlowError
from tests.support.streams import Lab, times_of

A = """
1 | 0 | 1 | 9
2 | 1 | 1 | 3
3 | 2 | 2 | 9
--
4 | 3 | 1 | 2
5 | 4 | 1 | 7
6 | 5 | 2 | 1
--
7 | 20 | 2 | 0
8 | 40 | 1 | 9
"""
FALL = {"A": "v > 8", "B": "v < prev(v)"}
SAID = {"since": "first(ts)", "n": "count(*)", "least": "min(B.v)", "ids": "collect_list(id)"}


def test_matches(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", A)
    flow.sink("falls", a.match("A B+", by="k", define=FALL, measures=SAID))
    # Key 2 has no row that ends its fall: only the watermark does, 10 seconds behind its first.
    flow.sink("short", a.match("A B+", by="k", within="10 seconds", define=FALL, measures=SAID))
    every = a.match("A B", define=FALL, measures={"a": "A.id", "b": "B.id"}, select="next")
    flow.sink("every", every)
    either = a.match(
        "A (B | C)?",
        by="k",
        define={"A": "v > 8", "B": "v < 3", "C": "v >= 3"},
        measures={"who": "classifiers()"},
        after_match="skip to next row",
    )
    flow.sink("either", either)
    told = lab.tell(flow)
    assert told["falls"] == [((1, 0.0, 3, 2, (1, 2, 4)), {"a": {1, 2, 4}})]
    assert told["short"] == [
        ((1, 0.0, 3, 2, (1, 2, 4)), {"a": {1, 2, 4}}),
        ((2, 2.0, 2, 1, (3, 6)), {"a": {3, 6}}),
    ]
    assert told["every"] == [((1, 2), {"a": {1, 2}}), ((3, 4), {"a": {3, 4}})]
    assert told["either"] == [((1, ("A", "C")), {"a": {1, 2}}), ((2, ("A", "B")), {"a": {3, 6}})]


def test_a_match_is_an_event_again(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", A)
    falls = a.match(
        "A B+", by="k", define=FALL, measures={"ts": "max(ts)", "n": "count(B.*)"}, within="1 hour"
    )
    flow.sink("falls", falls)
    flow.sink("windows", falls.groupBy(F.window("ts", "10 seconds")).agg(F.sum("n").alias("n")))
    flow.sink("in_order", falls.count_window(1).agg(F.sum("n").alias("n")))
    told = lab.tell(flow)
    assert told["falls"] == [((1, 3.0, 2), {"a": {1, 2, 4}})]
    assert told["windows"] == [(((0.0, 10.0), 2), {"a": {1, 2, 4}})]
    assert told["in_order"] == [((2,), {"a": {1, 2, 4}})]
    assert times_of(lab.run(flow, "eager"), "falls") == [3.0]


REFUSED = {
    "no end": ({"pattern": "A B*", "define": {"A": "v > 8"}}, "never comes to an end"),
    "nothing": ({"pattern": "A*", "define": {"A": "v > 8"}}, "can match no rows|matches no row"),
    "parentheses": ({"pattern": "(A B"}, r"\("),
    "unknown variable": ({"pattern": "A", "define": {"C": "v > 1"}}, "C"),
    "unknown column": ({"pattern": "A", "define": {"A": "nope > 1"}}, "nope"),
    "a condition that is none": ({"pattern": "A", "define": {"A": "v > "}}, "v >"),
    "no measures": ({"pattern": "A", "define": {"A": "v > 1"}, "measures": {}}, "measures="),
    "skipping": (
        {"pattern": "A", "define": {"A": "v > 1"}, "after_match": "skip it"},
        "skip past last row",
    ),
    "no interval": ({"pattern": "A", "define": {"A": "v > 1"}, "within": "soon"}, "interval"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_patterns_that_make_no_sense_are_refused(case: str, flow: hw.Flow, tmp_path: Path) -> None:
    schema = "id bigint, ts timestamp, k int, v int"
    a = flow.source("a", format="parquet", path=tmp_path, schema=schema, event_time="ts", id="id")
    given, message = REFUSED[case]
    with pytest.raises(FlowError, match=message) as refused:
        a.match(**{"measures": {"n": "count(*)"}, **given})
    assert "\n" not in str(refused.value)


def test_within_needs_times(flow: hw.Flow, tmp_path: Path) -> None:
    a = flow.source("a", format="parquet", path=tmp_path, schema="id bigint, v int", id="id")
    with pytest.raises(FlowError, match="source 'a' has no event_time="):
        a.match("A", define={"A": "v > 1"}, measures={"n": "count(*)"}, within="1 minute")
