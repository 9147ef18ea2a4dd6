"""map, service, applyInPandas and concise: what is wrong is refused on the line that wrote it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from headwater.capture.binding import fingerprint
from headwater.flow import nodes
from headwater.flow.functions import taken
from headwater.flow.reach_rules import longest_wait
from tests.support.streams import Lab

URL = "http://127.0.0.1:9/x"


@pytest.fixture
def a(flow: hw.Flow, lab: Lab) -> hw.Frame:
    return lab.source(flow, "a", "1 | 0 | 1 | 5")


def same(rows: Any) -> Any:
    return rows


def keyed(key: Any, rows: Any) -> Any:
    return rows


def three(a: Any, b: Any, c: Any) -> Any:
    return a


def windowed(a: hw.Frame) -> Any:
    return a.groupBy("k", F.window("ts", "10 seconds"))


@pytest.mark.parametrize(
    ("attempt", "says"),
    [
        (lambda a: a.map(5, "x int"), "map takes a function of a batch, not int"),
        (lambda a: a.map(same, "x in"), "schema 'x in' at"),
        (lambda a: a.map(same, "x int, X int"), "map: the schema has two columns called 'x'"),
        (lambda a: a.map(same, "x int", keep=["y"]), "map: keep names 'y', which step 'a' lacks"),
        (lambda a: a.map(same, "ts int", keep=["ts"]), r"map: \['ts'\] are both kept and in"),
        (
            lambda a: a.map(same, "x int", batches="rows"),
            "map: batches='rows' is neither 'arrow' nor 'pandas'",
        ),
        (
            lambda a: windowed(a).applyInPandas("f", "x int"),
            "applyInPandas takes a function of a group, not str",
        ),
        (
            lambda a: windowed(a).applyInPandas(three, "x int"),
            "applyInPandas takes a function of a frame, .*; this one takes 3 arguments",
        ),
        (
            lambda a: windowed(a).applyInPandas(same, "x int", "of"),
            "applyInPandas: contributing names 'of', which the schema lacks",
        ),
        (
            lambda a: windowed(a).applyInPandas(same, "x int, of string", "of"),
            "applyInPandas: 'of' must be array<int>, the positions of rows, not string",
        ),
        (
            lambda a: windowed(a).applyInPandas(same, "of array<int>", "of"),
            "applyInPandas: the schema has no column for results",
        ),
        (
            lambda a: windowed(a).applyInPandas(same, "x int", keep=["v"]),
            "applyInPandas: keep names 'v', which the groups' key lacks",
        ),
        (
            lambda a: a.groupBy("k").cogroup(a),
            r"groupBy\(…\).cogroup is not supported: .* avg or applyInPandas",
        ),
        (
            lambda a: windowed(a).agg(F.max("v"), F.count("*"), concise=True),
            r"agg: concise=True is for min and max alone, and count\(\*\) is neither",
        ),
        (
            lambda a: windowed(a).agg(F.max("v") + 1, concise=True),
            "concise=True is for min and max alone",
        ),
        (lambda a: a.mapInPandas(same, "x int"), r"Frame.mapInPandas is not .*: map\(fn, schema\)"),
        (lambda a: a.failures, r"Frame.failures is not supported .*: service\(…\).failures"),
    ],
)
def test_what_functions_may_not_be(a: hw.Frame, attempt: Any, says: str) -> None:
    with pytest.raises(hw.FlowError, match=says):
        attempt(a)


def needs(event: Any, *, factor: int) -> Any:
    return {"x": factor}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"target": 5}, "service takes a URL or a function of an event, not int"),
        ({"target": "ftp://x/y"}, "service: 'ftp://x/y' is no URL with http or https"),
        ({"target": "http:///y"}, "is no URL with http or https"),
        ({"target": "http://me:secret@x/y"}, "service: a URL with a user's name or password"),
        ({"response": "V int"}, "service: 'V' is in the response and a column of step 'a'"),
        ({"response": "x"}, "schema 'x' at"),
        ({"request": "v"}, r"service: request takes a list of column names: \['v'\]"),
        ({"request": ["w"]}, "service: request names 'w', which step 'a' lacks; it has id, ts"),
        ({"request": []}, "service: the request has no columns"),
        ({"request": {"w": "v +"}}, "service: Spark can't parse 'v .'"),
        ({"request": {"w": "nope"}}, r"service at test_functions.py:\d+: .*nope"),
        ({"static": {"v": 1}}, r"service: \['v'\] are both in the request and static"),
        ({"static": {"s": object()}}, "service: static can't be written as JSON"),
        ({"target": needs}, "service: needs can't be called as fn.event, ..static.: missing"),
        ({"target": same, "static": {"s": 1}}, "same can't be called as .* 's'"),
        ({"concurrency": 0}, "service: concurrency=0 must be a whole number from 1 on"),
        ({"retries": -1}, "service: retries=-1 must be a whole number from 0 on"),
        ({"retries": 1.5}, "service: retries=1.5 must be a whole number"),
        ({"timeout": 0}, "service: timeout=0 must be a number of seconds"),
        ({"backoff": float("inf")}, "service: backoff=inf must be a number of seconds"),
    ],
)
def test_what_services_may_not_be(a: hw.Frame, changes: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {"target": URL, "response": "x int", **changes}
    with pytest.raises(hw.FlowError, match=says):
        a.service(given.pop("target"), **given)


def test_the_frames_of_a_service(flow: hw.Flow, a: hw.Frame) -> None:
    answered = a.withColumn("service", F.lit(1)).service(
        needs, request=["id", "v"], response="x int", static={"factor": 2}
    )
    assert answered.columns == ["id", "ts", "k", "v", "service", "x"]
    assert answered.failures is answered.failures
    named = answered.named("scores")
    assert named.step == "scores"
    assert named.failures is answered.failures
    # References to earlier steps hold on both frames.
    assert named.filter(a.v > 1).columns == named.columns
    assert answered.failures.filter(a.v > 1).columns == [
        *a.columns,
        "service",
        "reason",
        "attempts",
    ]
    text = flow.describe(named._node, answered.failures._node)
    assert "service-1" in text
    assert "needs(id, v; factor) -> x" in text
    clash = a.withColumnRenamed("v", "reason").service(same, response="x int")
    with pytest.raises(hw.FlowError, match="failures have a column 'reason', and so has step"):
        _ = clash.failures


def test_secrets_in_a_url_are_not_shown(flow: hw.Flow, a: hw.Frame) -> None:
    a.service("https://api.example:8443/v1/score?key=hush", response="x int")
    assert "POST https://api.example:8443/v1/score (id, ts, k, v) -> x" in flow.describe()
    assert "hush" not in flow.describe()


def test_a_service_is_not_said_to_run_for_each_sink(flow: hw.Flow, a: hw.Frame) -> None:
    answered = a.service(same, response="x int")
    flow.sink("good", answered)
    flow.sink("bad", answered.failures)
    (line,) = [line for line in flow.describe().splitlines() if " service <-" in line]
    assert "times" not in line


def arrow(rows: pa.RecordBatch) -> Any:
    return rows


def table(rows: pa.Table) -> Any:
    return rows


def test_a_function_says_what_it_takes() -> None:
    assert [taken(fn, None) for fn in (same, arrow, table, partial(arrow))] == [
        "pandas",
        "batch",
        "table",
        "batch",
    ]
    assert taken(same, "arrow") == "batch"
    assert taken(table, "arrow") == "table"
    assert taken(arrow, "pandas") == "pandas"


def test_the_reach_of_functions(flow: hw.Flow, lab: Lab, a: hw.Frame) -> None:
    def wait(frame: hw.Frame) -> int | None:
        source = flow.sources["a"]
        return longest_wait([nodes.Sink(step="out", inputs=(frame._node,))], source)

    assert wait(a.map(same, "x int")) == 0
    assert wait(a.service(same, response="x int")) == 0
    assert wait(windowed(a).applyInPandas(keyed, "x int")) == 10_000_000
    assert wait(windowed(a).max("v", concise=True)) == 10_000_000
    session = a.groupBy("k", F.session_window("ts", "10 seconds"))
    assert wait(session.applyInPandas(same, "x int")) is None


def test_a_frame_for_pandas_is_no_more_than_its_schema(a: hw.Frame) -> None:
    def doubled(rows: pd.DataFrame) -> pd.DataFrame:
        return rows

    made = a.map(doubled, "x int NOT NULL, y string", keep=("ts",))
    assert made.dtypes == [("ts", "timestamp"), ("x", "int"), ("y", "string")]
    assert "doubled -> x, y, keep ts" in a.flow.describe(made._node)
    whole = windowed(a).applyInPandas(keyed, "x int, of array<int>", "of", keep=["window"])
    assert whole.dtypes[1:] == [("x", "int")]
    assert "keyed -> x, keep window, contributing of" in a.flow.describe(whole._node)


def test_a_changed_function_or_static_input_is_another_flow(spark: SparkSession, lab: Lab) -> None:
    def printed(name: str, fn: Any, factor: int, **grouping: Any) -> dict[str, str]:
        flow = hw.Flow(name, spark)
        a = lab.source(flow, "a", "1 | 0 | 1 | 5")
        flow.sink("m", a.map(fn, "x int"))
        flow.sink("s", a.service(needs, response="x int", static={"factor": factor}))
        flow.sink("g", windowed(a).applyInPandas(fn, "x int"))
        flow.sink("c", windowed(a).max("v", **grouping))
        return fingerprint(flow, dict.fromkeys("mgsc", "ancestors"))

    before = printed("one", lambda rows: rows, 1)
    assert printed("two", lambda rows: rows, 1) == before
    after = printed("three", lambda rows: rows.head(), 2, concise=True)
    assert {step for step in before if before[step] != after[step]} == {
        "map map-1",
        "service service-1",
        "group_function group_function-1",
        "aggregate aggregate-1",
    }
