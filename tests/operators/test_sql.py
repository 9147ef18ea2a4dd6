"""Queries: rows and sets are those of the steps that they become, in every capture mode."""

from __future__ import annotations

from pyspark.sql import SparkSession

import headwater as hw
from tests.support.streams import Lab

RECORDS = """
1 | 0  | 1 | 5
2 | 3  | 1 | 1
3 | 4  | 2 | 2
--
4 | 12 | 1 | 3
5 | 2  | 1 | 9
--
6 | 13 | 1 | 3
7 | 4  | 1 | 100
8 | 6  | 2 | 100
6 | 13 | 1 | 3
--
9 | 60 | 1 | 1
"""
# The watermark is 0 in the first batch, 4 in the second, 12 in the third, 13 in the fourth. No
# record comes after its window of ten seconds has been emitted; the last one's stays open.


def test_groups(flow: hw.Flow, lab: Lab) -> None:
    lab.source(flow, "a", RECORDS)
    queries = {
        "direct": """
            SELECT k, window, count(*) AS n, sum(v) AS v FROM a
            GROUP BY k, window(ts, '10 seconds')""",
        "sliding": """
            SELECT window(ts, '10 seconds', '5 seconds') AS w, k % 2 AS odd, count(*) AS n
            FROM a WHERE k = 2 GROUP BY w, odd""",
        "mixed": """
            SELECT round(avg(v), 1) AS mean, sum(v) / count(*) AS same, k % 2 + count(*) AS more
            FROM a WHERE v < 100
            GROUP BY k % 2, window(ts, '10 seconds')
            HAVING max(v) > 3""",
        "sessions": """
            SELECT session_window.end AS until, k, count(*) AS n FROM a
            GROUP BY k, session_window(ts, '5 seconds')""",
    }
    for name, query in queries.items():
        flow.sink(name, flow.sql(query))
    assert lab.tell(flow) == {
        "direct": [
            ((1, (0.0, 10.0), 4, 115), {"a": {1, 2, 5, 7}}),
            ((1, (10.0, 20.0), 3, 9), {"a": {4, 6}}),
            ((2, (0.0, 10.0), 2, 102), {"a": {3, 8}}),
        ],
        "sliding": [
            (((-5.0, 5.0), 0, 1), {"a": {3}}),
            (((0.0, 10.0), 0, 2), {"a": {3, 8}}),
            (((5.0, 15.0), 0, 1), {"a": {8}}),
        ],
        "mixed": [((5.0, 5.0, 4), {"a": {1, 2, 5}})],
        "sessions": [
            ((11.0, 2, 2), {"a": {3, 8}}),
            ((18.0, 1, 3), {"a": {4, 6}}),
            ((9.0, 1, 4), {"a": {1, 2, 5, 7}}),
        ],
    }


def test_groups_of_groups(flow: hw.Flow, lab: Lab) -> None:
    lab.source(flow, "a", RECORDS)
    flow.sql(
        "SELECT k, window, sum(v) AS v FROM a GROUP BY k, window(ts, '10 seconds')", step="by_key"
    )
    flow.sink("same", flow.sql("SELECT window, max(v) AS v FROM by_key GROUP BY window"))
    flow.sink(
        "longer",
        flow.sql("""
            WITH low AS (SELECT * FROM by_key WHERE v < 110)
            SELECT sum(v) AS v FROM low GROUP BY window(window, '20 seconds')"""),
    )
    assert lab.tell(flow) == {
        "same": [
            (((0.0, 10.0), 115), {"a": {1, 2, 3, 5, 7, 8}}),
            (((10.0, 20.0), 9), {"a": {4, 6}}),
        ],
        "longer": [((111,), {"a": {3, 4, 6, 8}})],
    }


A = """
1 | 0  | 1 | 5
2 | 4  | 2 | 6
--
3 | 10 | 1 | 7
--
4 | 40 | 1 | 8
--
5 | 90 | 9 | 8
"""
B = """
11 | 2  | 1 | 0
--
12 | 11 | 1 | 0
13 | 12 | 1 | 0
--
14 | 41 | 3 | 0
--
15 | 91 | 9 | 0
"""
NEAR = "l.k = r.k AND l.ts BETWEEN r.ts - INTERVAL 3 SECONDS AND r.ts + INTERVAL 3 SECONDS"


def test_joins(flow: hw.Flow, lab: Lab, spark: SparkSession) -> None:
    lab.source(flow, "a", A)
    lab.source(flow, "b", B)
    zones = spark.createDataFrame([(1, "one"), (2, "two")], "k int, name string")
    pairs = f"SELECT l.id, r.id AS other FROM a AS l LEFT JOIN b AS r ON {NEAR} WHERE l.k < 9"
    flow.sink("outer", flow.sql(pairs))
    flow.sink(
        "counts",
        flow.sql(f"""
            SELECT count(*) AS n FROM (SELECT l.ts FROM a l JOIN b r ON {NEAR})
            GROUP BY window(ts, '20 seconds')"""),
    )
    flow.sink("named", flow.sql("SELECT id, name FROM a JOIN zones USING (k)", zones=zones))
    told = lab.tell(flow)
    matched = [
        ((1, 11), {"a": {1}, "b": {11}}),
        ((3, 12), {"a": {3}, "b": {12}}),
        ((3, 13), {"a": {3}, "b": {13}}),
    ]
    alone = [((2, None), {"a": {2}}), ((4, None), {"a": {4}})]
    assert told["outer"] == sorted([*matched, *alone], key=repr)
    assert told["counts"] == [((3,), {"a": {1, 3}, "b": {11, 12, 13}})]
    assert told["named"] == [
        ((1, "one"), {"a": {1}}),
        ((2, "two"), {"a": {2}}),
        ((3, "one"), {"a": {3}}),
        ((4, "one"), {"a": {4}}),
    ]


ARRAYS = """
1 | 0 | 7 8
2 | 1 | -
--
3 | 2 | 9 9
--
4 | 3 | 8
"""


def test_rows_united_exploded_and_distinct(flow: hw.Flow, lab: Lab) -> None:
    lab.source(flow, "a", ARRAYS, "id bigint, ts timestamp, xs array<int>")
    flow.sink("outer", flow.sql("SELECT id, t.x FROM a LATERAL VIEW OUTER explode(xs) t AS x"))
    united = flow.sql(
        """
        WITH each AS (SELECT id, explode(xs) AS x FROM a)
        SELECT 'small' AS size, x FROM each WHERE x < 8
        UNION ALL
        SELECT 'large', x FROM each WHERE x >= 8 AND id < 4
        """,
        step="sizes",
    )
    flow.sink("united", united)
    flow.sink(
        "distinct",
        flow.sql(
            "SELECT DISTINCT x FROM s",
            s=flow.sql("SELECT explode(xs) AS x FROM a WHERE size(xs) = 1 OR id = 1"),
        ),
    )
    told = lab.tell(flow)
    assert told["outer"] == [
        ((1, 7), {"a": {1}}),
        ((1, 8), {"a": {1}}),
        ((2, None), {"a": {2}}),
        ((3, 9), {"a": {3}}),
        ((3, 9), {"a": {3}}),
        ((4, 8), {"a": {4}}),
    ]
    assert told["united"] == [
        (("large", 8), {"a": {1}}),
        (("large", 9), {"a": {3}}),
        (("large", 9), {"a": {3}}),
        (("small", 7), {"a": {1}}),
    ]
    # The 8 of record 4 comes in a later batch than that of record 1.
    assert told["distinct"] == [((7,), {"a": {1}}), ((8,), {"a": {1}})]
