"""explode and flat_map: every row made of a record comes from that record, under its own id."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Row
from pyspark.sql import functions as F

import headwater as hw
from tests.support.streams import Lab

SCHEMA = "id bigint, ts timestamp, xs array<int>"
RECORDS = """
1 | 0 | 7 8
2 | 1 | -
--
3 | 2 | 9 9
"""


def pairs(row: Row) -> Iterator[dict[str, int]]:
    for n, x in enumerate(row.xs or []):
        yield {"n": n, "x": x * 10}


def test_explode(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", RECORDS, SCHEMA)
    flow.sink("inner", a.select("id", F.explode("xs").alias("x")))
    flow.sink("outer", a.withColumn("xs", F.explode_outer("xs")).select("id", "xs"))
    flow.sink("pos", a.selectExpr("posexplode(xs) as (at, x)", "id"))
    of = [((1, 7), {"a": {1}}), ((1, 8), {"a": {1}}), ((3, 9), {"a": {3}}), ((3, 9), {"a": {3}})]
    assert lab.tell(flow) == {
        "inner": of,
        "outer": [*of[:2], ((2, None), {"a": {2}}), *of[2:]],
        "pos": [
            ((0, 7, 1), {"a": {1}}),
            ((0, 9, 3), {"a": {3}}),
            ((1, 8, 1), {"a": {1}}),
            ((1, 9, 3), {"a": {3}}),
        ],
    }


def test_flat_map(flow: hw.Flow, lab: Lab) -> None:
    a = lab.source(flow, "a", RECORDS, SCHEMA)
    made = a.flat_map(pairs, "n int, x int", keep=["ts"])
    flow.sink("rows", made.drop("ts"))
    flow.sink("sums", made.groupBy(F.window("ts", "2 seconds")).agg(F.sum("x").alias("x")))
    assert lab.tell(flow) == {
        "rows": [
            ((0, 70), {"a": {1}}),
            ((0, 90), {"a": {3}}),
            ((1, 80), {"a": {1}}),
            ((1, 90), {"a": {3}}),
        ],
        "sums": [(((0.0, 2.0), 150), {"a": {1}})],
    }
