"""`flow.sql`: the steps are those of the methods; what has none is refused by its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from tests.support.streams import Lab

SCHEMA = "id bigint, ts timestamp, k int, v int, xs array<int>"
RECORD = "1 | 0 | 1 | 5 | 7 8"
NEAR = "r.k = s.k AND r.ts BETWEEN s.ts - INTERVAL 1 MINUTE AND s.ts"

Made = Callable[[hw.Frame, hw.Frame], hw.Frame]


def sources(flow: hw.Flow, lab: Lab) -> tuple[hw.Frame, hw.Frame]:
    return lab.source(flow, "a", RECORD, SCHEMA), lab.source(flow, "b", RECORD, SCHEMA)


@pytest.fixture
def a(flow: hw.Flow, lab: Lab) -> hw.Frame:
    return sources(flow, lab)[0]


@pytest.fixture(scope="module")
def shared(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> hw.Frame:
    """The source a of a flow in which only wrong queries are asked."""
    return sources(hw.Flow("test", spark), Lab(tmp_path_factory.mktemp("sql")))[0]


def steps(frame: hw.Frame) -> list[str]:
    """The steps of a frame as text, without the places in the code."""
    text = frame.flow.describe(frame._node)
    return [re.sub(r"  \[[\w.]+:\d+\].*", "", line) for line in text.splitlines()[1:]]


def in_window(*columns: str) -> Made:
    """Aggregates by k and a window of ten minutes."""
    keys = ("k", "window(ts, '10 minutes')")
    return lambda a, b: a.groupBy(*map(F.expr, keys)).agg(*map(F.expr, columns))


@pytest.mark.parametrize(
    ("sql", "methods"),
    [
        # --- rows ---
        ("SELECT * FROM a WHERE v > 3", lambda a, b: a.filter("v > 3")),
        ("from a select id, v + 1 as w", lambda a, b: a.selectExpr("id", "v + 1 AS w")),
        ("SELECT r.id FROM a AS r", lambda a, b: a.alias("r").select("r.id")),
        ("SELECT A.ID FROM a", lambda a, b: a.alias("a").selectExpr("a.ID")),
        ("SELECT *, v * 2 AS w FROM a", lambda a, b: a.selectExpr("*", "v * 2 AS w")),
        ("SELECT r.* FROM a r", lambda a, b: a.alias("r").select("r.*")),
        ("SELECT * EXCEPT (xs, TS) FROM a", lambda a, b: a.select("id", "k", "v")),
        ("SELECT `k` `the key` FROM `a`", lambda a, b: a.selectExpr("k AS `the key`")),
        ("SELECT DISTINCT k, v FROM a", lambda a, b: a.select("k", "v").distinct()),
        ("SELECT DISTINCT * FROM a", lambda a, b: a.dropDuplicates()),
        (
            "SELECT CASE WHEN v IS NOT NULL THEN 'it\\'s' ELSE '\\\\d' END AS c FROM a -- done",
            lambda a, b: a.selectExpr(
                "CASE WHEN v IS NOT NULL THEN 'it\\'s' ELSE '\\\\d' END AS c"
            ),
        ),
        (
            "SELECT transform(xs, x -> x + v)[0] AS t, to_char(v, '99') AS c, 1.5BD AS d FROM a",
            lambda a, b: a.selectExpr(
                "transform(xs, x -> x + v)[0] AS t", "to_char(v, '99') AS c", "1.5BD AS d"
            ),
        ),
        # --- one row to many ---
        (
            "SELECT id, explode(xs) AS x FROM a",
            lambda a, b: a.select("id", F.explode("xs").alias("x")),
        ),
        (
            "SELECT id, t.x FROM a LATERAL VIEW OUTER explode(a.xs) t AS x WHERE x > 1",
            lambda a, b: (
                a.alias("a")
                .selectExpr("*", "explode_outer(a.xs) AS x")
                .filter("x > 1")
                .select("id", "x")
            ),
        ),
        (
            "SELECT * FROM a LATERAL VIEW posexplode(xs) t",
            lambda a, b: a.selectExpr("*", "posexplode(xs) AS (pos, col)"),
        ),
        # --- several queries ---
        (
            "SELECT k FROM a UNION ALL (SELECT v FROM b)",
            lambda a, b: a.select("k").union(b.select("v")),
        ),
        (
            "SELECT k FROM (SELECT k, v FROM a WHERE v > 1) WHERE v > 2",
            lambda a, b: a.filter("v > 1").select("k", "v").filter("v > 2").select("k"),
        ),
        (
            "WITH c AS (SELECT k, v FROM a), d(x, y) AS (SELECT * FROM c) SELECT y FROM d",
            lambda a, b: a.select("k", "v").selectExpr("k AS x", "v AS y").select("y"),
        ),
        ("WITH a AS (SELECT k FROM a) SELECT * FROM a", lambda a, b: a.select("k")),
        # --- joins ---
        (
            f"SELECT r.id, s.v FROM a r JOIN b s ON {NEAR}",
            lambda a, b: a.alias("r").join(b.alias("s"), F.expr(NEAR)).select("r.id", "s.v"),
        ),
        (
            f"SELECT R.id FROM a AS r LEFT OUTER JOIN (SELECT k, ts FROM b) AS s ON {NEAR}",
            lambda a, b: (
                a.alias("r")
                .join(b.select("k", "ts").alias("s"), F.expr(NEAR), "left")
                .select("r.id")
            ),
        ),
        (
            "SELECT * FROM a INNER JOIN b USING (K, ts)",
            lambda a, b: a.alias("a").join(b.alias("b"), ["k", "ts"]),
        ),
        # --- groups: what the groupBy makes is what the list asks for ---
        (
            "SELECT k, window, count(*) AS n FROM a GROUP BY k, window(ts, '10 minutes')",
            in_window("count(*) AS n"),
        ),
        (
            "SELECT a.k, Window(ts, '10 minutes'), count(*) n FROM a GROUP BY 1, 2 HAVING N > 3",
            lambda a, b: (
                a.alias("a")
                .groupBy("a.k", F.expr("window(ts, '10 minutes')"))
                .agg(F.expr("count(*) AS n"))
                .filter("n > 3")
            ),
        ),
        (
            """
            SELECT session_window(ts, '5 minutes') AS w, k % 2 AS odd, max(v) FROM a
            GROUP BY w, odd HAVING w.start > now()
            """,
            lambda a, b: (
                a.groupBy(F.expr("session_window(ts, '5 minutes') AS w"), F.expr("k % 2 AS odd"))
                .agg(F.expr("max(v)"))
                .filter("w.start > now()")
            ),
        ),
        (
            "SELECT k, round(avg(v), 1) AS m, sum(v) / count(*) AS s FROM a GROUP BY ALL",
            lambda a, b: a.groupBy("k").agg(
                F.expr("round(avg(v), 1) AS m"), F.expr("sum(v) / count(*) AS s")
            ),
        ),
        (
            "SELECT count(*) FILTER (WHERE v > 1) AS n, any(v = 1) AS one FROM a",
            lambda a, b: a.agg(
                F.expr("count(*) FILTER (WHERE v > 1) AS n"), F.expr("any(v = 1) AS one")
            ),
        ),
        # --- groups: something is computed afterwards ---
        (
            "SELECT window.end, k FROM a GROUP BY k, window(ts, '10 minutes') HAVING max(v) > 3",
            lambda a, b: (
                in_window("max(v) AS _sql_1")(a, b)
                .filter("_sql_1 > 3")
                .selectExpr("window.end", "k")
            ),
        ),
        (
            "SELECT k + count(*) AS n, 'x' AS c, count(*) AS m FROM a GROUP BY k HAVING m < max(k)",
            lambda a, b: (
                a.groupBy("k")
                .agg(F.expr("count(*) AS m"), F.expr("max(k) AS _sql_1"))
                .filter("m < _sql_1")
                .selectExpr("k + m AS n", "'x' AS c", "m")
            ),
        ),
        (
            "SELECT sum(v) AS k FROM a GROUP BY k HAVING k > 1",
            lambda a, b: (
                a.groupBy("k")
                .agg(F.expr("sum(v) AS _sql_1"))
                .filter("k > 1")
                .selectExpr("_sql_1 AS k")
            ),
        ),
        (
            "SELECT r.k, s.k AS other FROM a r JOIN b s USING (ts) GROUP BY r.k, s.k, ts",
            lambda a, b: (
                a.alias("r")
                .join(b.alias("s"), ["ts"])
                .groupBy("r.k", F.expr("s.k AS other"), "ts")
                .agg(F.expr("count(*) AS _sql_1"))
                .select("k", "other")
            ),
        ),
        (
            """
            SELECT timestampdiff(SECOND, window.start, max(ts)) AS d FROM a
            GROUP BY window(ts, '1 minute')
            """,
            lambda a, b: (
                a.groupBy(F.expr("window(ts, '1 minute')"))
                .agg(F.expr("max(ts) AS _sql_1"))
                .selectExpr("timestampdiff(SECOND, window.start, _sql_1) AS d")
            ),
        ),
    ],
    ids=lambda value: " ".join(value.split()) if isinstance(value, str) else "",
)
def test_a_query_is_the_steps_of_the_methods(
    spark: SparkSession, lab: Lab, sql: str, methods: Made
) -> None:
    one, other = hw.Flow("test", spark), hw.Flow("test", spark)
    sources(one, lab)
    asked, made = one.sql(sql), methods(*sources(other, lab))
    assert steps(asked) == steps(made)
    assert asked._node == made._node
    assert asked.schema == made.schema


ROWS = """
SELECT * FROM VALUES
    (1, timestamp'2025-01-01 00:00:00', 1, 5, array(7, 8), 'ab1', named_struct('f', 1, 'g', 2)),
    (2, timestamp'2025-01-01 00:04:00', 1, 6, array(), 'cd', named_struct('f', 2, 'g', 2)),
    (3, timestamp'2025-01-01 00:11:00', 2, 7, null, "it's", named_struct('f', 1, 'g', 3)),
    (4, timestamp'2025-01-01 00:12:00', 2, null, array(9), null, null)
AS t(id, ts, k, v, xs, t, s)
"""


def test_rows_and_names_of_columns_are_those_of_sparks_own_sql(
    flow: hw.Flow, spark: SparkSession
) -> None:
    """Over sources that do not stream, Spark can be asked the same."""
    rows = spark.sql(ROWS)
    rows.createOrReplaceTempView("rows")
    flow.source("rows", df=rows, event_time="ts", id="id")
    for query in (
        "SELECT ts - INTERVAL 1 HOUR 30 MINUTES, 1 | 2 << 3, v <=> 1, DATE'2025-01-01' FROM rows",
        "SELECT regexp_replace(t, '\\\\d', '#'), 'it\\'s' \"q\", r'\\d', 1L, 1.5BD FROM rows",
        "SELECT s.f, rows.s.g, get(xs, 0), array(1, 2)[1], filter(xs, x -> x > v) FROM rows",
        "SELECT to_char(v, '99'), if(v > 5, 'a', 'b'), v::double, trim(both 'a' FROM t) FROM rows",
        "SELECT k % 2, count(*), round(avg(v), 1) FROM rows GROUP BY k % 2",
        "SELECT count(*), k % 2 + max(v), (k % 2 + 1) * 2 FROM rows GROUP BY k % 2",
        "SELECT s.f, sum(v) / count(*) FROM rows GROUP BY s HAVING s.g = 2 OR max(v) > 6",
        "SELECT window.start, k, max(v) - min(v) FROM rows GROUP BY window(ts, '9 minutes'), k",
        "SELECT k AS v, sum(v) FROM rows GROUP BY k HAVING v > 1",
        "SELECT max(v) AS v FROM rows GROUP BY k HAVING v > 6",
        "SELECT sum(v) AS k FROM rows GROUP BY k HAVING k > 1",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v), first(v) IGNORE NULLS FROM rows",
        "SELECT k FROM rows GROUP BY k",
        "SELECT a.k, b.k, count(*) FROM rows a LEFT JOIN rows b ON a.v < b.v GROUP BY a.k, b.k",
        "SELECT id, x, p FROM rows LATERAL VIEW OUTER posexplode(xs) e AS p, x",
    ):
        asked, expected = flow.sql(query), spark.sql(query)
        assert asked.columns == expected.columns, query
        assert sorted(map(repr, asked._df.collect())) == sorted(map(repr, expected.collect())), (
            query
        )
    spark.catalog.dropTempView("rows")


def test_from_takes_sources_steps_and_frames(
    flow: hw.Flow, a: hw.Frame, spark: SparkSession
) -> None:
    a.filter("v > 1").named("big-ones")
    assert flow.sql("SELECT k FROM `big-ones`", step="keys").step == "keys"
    assert flow.sql("SELECT * FROM KEYS WHERE k > 1").columns == ["k"]
    assert flow.sql("SELECT * FROM b", b=a.select("k")).columns == ["k"]  # hides the source b
    whole = flow.sql("SELECT * FROM a", step="whole")
    assert (whole.step, whole._node.kind, a.step) == ("whole", "project", "a")
    zones = spark.createDataFrame([(1, "one")], "k int, name string")
    named = flow.sql("SELECT a.id, z.name FROM a JOIN zones z USING (k)", zones=zones)
    assert named.columns == ["id", "name"]
    with pytest.raises(hw.UnsupportedError, match="1:15: a DataFrame here .* right after JOIN"):
        flow.sql("SELECT * FROM zones", zones=zones)
    with pytest.raises(hw.FlowError, match="already has a project of that name"):
        flow.sql("SELECT k FROM a", step="keys")
    with pytest.raises(hw.FlowError, match="r= takes a headwater.Frame or a DataFrame, not int"):
        flow.sql("SELECT * FROM r", r=3)  # type: ignore[arg-type]
    with pytest.raises(hw.FlowError, match="r= is step 'a' of flow 'test', not of 'other'"):
        hw.Flow("other", spark).sql("SELECT * FROM r", r=a)


def test_a_with_is_translated_once_and_only_if_used(flow: hw.Flow, a: hw.Frame) -> None:
    made = flow.sql(
        "WITH c AS (SELECT k FROM a), unused AS (SELECT v FROM a) "
        "SELECT * FROM c UNION ALL SELECT * FROM c"
    )
    assert [n.step for n in made._node.upstream()] == ["a", "project-1", "union-1"]
    assert sorted(flow._steps) == ["a", "b", "project-1", "union-1"]


def test_the_steps_shown_in_the_docs_are_those_of_its_query(flow: hw.Flow) -> None:
    page = (Path(__file__).parents[2] / "docs" / "sql.md").read_text()
    storms = "scan bigint, at timestamp, station string, cells int"
    flow.source("storms", df=flow.spark.createDataFrame([], storms), event_time="at", id="scan")
    (query,) = re.findall(r'flow\.sql\("""(.*?)"""\)', page, re.DOTALL)
    (shown,) = re.findall(r"```text\n(  storms .*?)```", page, re.DOTALL)
    assert steps(flow.sink("strong", flow.sql(query))) == shown.splitlines()


NESTED = "join with it, or name its rows in WITH"
LEVELS = "a GROUP BY for each level"


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT k FROM a ORDER BY k", "1:17: ORDER BY is not supported: .* sort the answer"),
        ("SELECT k\nFROM a\n  ORDER  BY k", "3:3: ORDER BY"),
        ("SELECT k FROM a UNION ALL SELECT k FROM b ORDER BY 1", "1:43: ORDER BY"),
        (
            "SELECT * FROM (SELECT k FROM a LIMIT 3)",
            "1:32: LIMIT is not supported: .* no first rows",
        ),
        ("SELECT k FROM a OFFSET 3", "1:17: OFFSET"),
        ("SELECT k FROM a SORT BY k", "1:17: SORT BY"),
        ("SELECT k FROM a CLUSTER BY k", "1:17: CLUSTER BY .* leave it out"),
        ("SELECT k FROM a DISTRIBUTE BY k", "1:17: DISTRIBUTE BY"),
        ("SELECT /*+ BROADCAST(b) */ * FROM a", "a hint is not supported: leave it out"),
        ("SELECT count(DISTINCT k) FROM a", r"1:14: DISTINCT in an aggregate .*collect_set"),
        ("SELECT sum(v) OVER (PARTITION BY k) FROM a", r"1:8: a window function \(OVER\)"),
        ("SELECT k FROM a WINDOW w AS (PARTITION BY k)", "1:17: WINDOW"),
        ("SELECT k FROM a QUALIFY v = 1", "1:17: QUALIFY"),
        ("SELECT k FROM a WHERE v IN (SELECT v FROM b)", rf"1:25: IN \(SELECT …\) .* {NESTED}"),
        ("SELECT k FROM a WHERE EXISTS (SELECT 1 FROM b)", rf"1:23: EXISTS .* {NESTED}"),
        (
            "SELECT k FROM a WHERE v > (SELECT max(v) FROM b)",
            rf"1:28: a subquery as a value .* {NESTED}",
        ),
        ("SELECT (SELECT max(v) FROM b) AS m FROM a", "1:9: a subquery as a value"),
        ("SELECT * FROM a r RIGHT JOIN b s ON r.k = s.k", "1:19: RIGHT JOIN .* swap the sides"),
        ("SELECT * FROM a r FULL OUTER JOIN b s ON r.k = s.k", "1:19: FULL JOIN"),
        ("SELECT * FROM a CROSS JOIN b", "1:17: CROSS JOIN"),
        ("SELECT * FROM a, b", "1:16: CROSS JOIN, or a comma in FROM, is not"),
        ("SELECT * FROM a LEFT SEMI JOIN b USING (k)", "1:17: LEFT SEMI JOIN"),
        ("SELECT * FROM a LEFT ANTI JOIN b USING (k)", "1:17: LEFT ANTI JOIN .* IS NULL"),
        ("SELECT * FROM a NATURAL JOIN b", r"1:17: NATURAL JOIN .* USING"),
        ("SELECT * FROM a JOIN b", "1:17: JOIN without ON or USING"),
        ("SELECT * FROM (a JOIN b USING (k))", "a join in parentheses"),
        ("SELECT k FROM a UNION SELECT k FROM b", "1:17: UNION without ALL .* SELECT DISTINCT"),
        ("SELECT k FROM a INTERSECT SELECT k FROM b", "1:17: INTERSECT"),
        ("SELECT k FROM a EXCEPT ALL SELECT k FROM b", "1:17: EXCEPT .* LEFT JOIN"),
        ("SELECT k FROM a MINUS SELECT k FROM b", "1:17: EXCEPT"),
        ("SELECT k, count(*) FROM a GROUP BY ROLLUP (k)", f"1:36: ROLLUP .* {LEVELS}"),
        ("SELECT k, count(*) FROM a GROUP BY k WITH CUBE", f"CUBE .* {LEVELS}"),
        ("SELECT k FROM a GROUP BY GROUPING SETS ((k), ())", f"1:26: GROUPING SETS .* {LEVELS}"),
        ("SELECT * FROM a PIVOT (sum(v) FOR k IN (1))", "1:17: PIVOT or UNPIVOT"),
        ("SELECT * FROM a LATERAL VIEW inline(xs) t", "1:30: LATERAL VIEW inline .* posexplode"),
        ("SELECT * FROM a JOIN LATERAL (SELECT 1) ON true", "1:22: LATERAL is not supported"),
        ("SELECT DISTINCT ON (k) v FROM a", r"1:8: DISTINCT ON .*dropDuplicates\(\[…\]\)"),
        ("SELECT * FROM VALUES (1) AS t(x)", "1:15: VALUES .* flow.source"),
        ("SELECT * FROM range(10)", "1:15: a function in FROM"),
        ("SELECT 1", "1:1: SELECT without FROM"),
        ("SELECT * FROM a TABLESAMPLE (10 PERCENT)", "1:17: TABLESAMPLE .* hash"),
        ("SELECT * FROM a VERSION AS OF 3", "1:17: VERSION AS OF"),
        ("WITH RECURSIVE c AS (SELECT k FROM a) SELECT * FROM c", "1:1: WITH RECURSIVE"),
        ("SELECT * FROM a WHERE v = :x", "1:27: a parameter .* write the value"),
        ("SELECT window(ts, '1 minute') FROM a", r"1:8: window\(…\) outside GROUP BY"),
        ("SELECT k FROM a WHERE session_window(ts, '1 minute').end > ts", "1:23: session_window"),
        ("SELECT *, count(*) FROM a GROUP BY k", r"1:8: \* beside groups"),
        ("SELECT explode(xs) FROM a GROUP BY xs", "1:8: explode beside groups"),
        (
            "INSERT INTO t SELECT * FROM a",
            "1:1: INSERT is not supported: a query begins with SELECT",
        ),
        ("CREATE TABLE t AS SELECT * FROM a", "1:1: CREATE"),
        ("WITH c AS (SELECT 1) DELETE FROM a", "DELETE is not supported|can't parse"),
        ("EXPLAIN SELECT * FROM a", "1:1: EXPLAIN"),
        ("TABLE a", "1:1: TABLE"),
        ("SELECT * FROM a; SELECT * FROM b", "1:16: one query at a time"),
        # What a method refuses, its clause refuses with the same words.
        ("SELECT * FROM a r JOIN b s ON r.k = s.k", "state grows forever"),
        (
            "SELECT count(*) FROM a GROUP BY window(ts, '1 minute'), window(ts, '2 minutes')",
            "two keys named 'window'|takes one window",
        ),
    ],
    ids=lambda value: value if value[0].isupper() else "",
)
def test_what_is_refused(shared: hw.Frame, sql: str, says: str) -> None:
    with pytest.raises(hw.FlowError, match=says) as refused:
        shared.flow.sql(sql)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT k FRM a", r"sql at test_sql.py:\d+, 1:14: can't parse at 'a'"),
        ("SELECT (k FROM a", r"1:11: can't parse at 'FROM': Expecting \)"),
        ("SELECT k\nFROM a WHERE", "2:8: can't parse at 'WHERE': something is missing"),
        ("SELECT 'k FROM a", "can't parse: ' at 1:8 is never closed"),
        ("SELECT count(*) FROM a GROUP BY", r"sql at test_sql.py:\d+: .*line 1"),
        ("  -- nothing", "the text is empty"),
        (3, "sql takes the text of a query, not int"),
        ("SELECT * FROM c", "1:15: there are no rows called 'c'; FROM can name reports, a, b$"),
        (
            "SELECT * FROM reprots",
            "no rows called 'reprots'; did you mean 'reports'. FROM can name reports, a, b$",
        ),
        ("SELECT * FROM a JOIN a ON 1 = 1", "1:22: two tables are called 'a'; give one an alias"),
        ("SELECT c.k FROM a AS b", "1:8: FROM has no table 'c'; it has b"),
        ("SELECT nope FROM a", r"project at test_sql.py:\d+: .*nope"),
        ("SELECT k FROM a WHERE nope(v)", r"filter at test_sql.py:\d+: .*nope"),
        ("SELECT v, count(*) FROM a GROUP BY k", "1:8: v is neither in GROUP BY nor inside an agg"),
        ("SELECT k FROM a HAVING k > 1", "1:24: k is neither in GROUP BY"),
        ("SELECT k FROM a GROUP BY 2", "1:26: GROUP BY 2: the list has 1 items"),
        ("SELECT count(*) FROM a GROUP BY 1", r"1:8: GROUP BY holds an aggregate, count\(\*\)"),
        ("SELECT * EXCEPT (w) FROM a", "1:18: EXCEPT names 'w', which is not there"),
        ("SELECT * FROM a AS t(x, y)", "2 names for 5 columns: id, ts, k, v, xs"),
        ("SELECT * FROM a LATERAL VIEW explode(xs) t AS v", "makes a column 'v', which is there"),
        ("SELECT k FROM a UNION ALL SELECT k, v FROM a", r"union at test_sql.py:\d+: "),
    ],
    ids=lambda value: value if isinstance(value, str) and value[0] in "S " else "",
)
def test_what_is_wrong_is_said_with_its_place(shared: hw.Frame, sql: str, says: str) -> None:
    with pytest.raises(hw.FlowError, match=says) as refused:
        shared.flow.sql(sql, reports=shared)
    assert not isinstance(refused.value, hw.UnsupportedError)
    assert "\n" not in str(refused.value)
