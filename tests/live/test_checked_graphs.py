"""Live graphs of flows in which a record is easily taken for past too early or too late."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from headwater.testing import Input, read_checkpoint
from headwater.testing.graph_checking import Checked, check_graph
from headwater.testing.graph_reach import Expiry
from tests.support.oracle import _rows
from tests.support.streams import Lab

pytestmark = pytest.mark.spark

READINGS = """
1 | 1 | 1 | 10
2 | 4 | 1 | 20
--
3 | 11 | 1 | 30
--
4 | 13 | 1 | 40
--
5 | 30 | 1 | 50
--
6 | 60 | 1 | 50
--
7 | 61 | 2 | 1
"""


def checked(
    flow: hw.Flow,
    lab: Lab,
    *,
    expiry: Expiry = "tight",
    finish: bool = False,
    lake: bool = False,
) -> Checked:
    """What the checker says of a run with a live graph."""
    path = lab.home / "store"
    store = f"delta:{path}" if lake else str(path)
    run = flow.start(store=store, capture="eager", available_now=True, live=True, expiry=expiry)
    run.wait()
    if finish:
        run.finish()
    recorded = read_checkpoint(path / "checkpoints" / flow.name)
    files = {name: recorded.of(lab.home / name) for name in flow.sources}
    batches = [
        {name: [row for file in found[i] for row in _rows(file)] for name, found in files.items()}
        for i in range(len(recorded.watermarks))
    ]
    return check_graph(
        hw.open(store).follow(wait=False),
        list(flow.sinks.values()),
        Input(batches, recorded.watermarks, {}),
        expiry=expiry,
        finished=finish,
    )


def by_time(frame: hw.Frame, window: str = "window") -> hw.Frame:
    """The rows of a window aggregate with their own time instead of the window."""
    return frame.select(F.window_time(window).alias("ts"), "k", "v")


def in_windows(frame: hw.Frame, *window: str) -> hw.Frame:
    return frame.groupBy("k", F.window("ts", *window)).agg(F.sum("v").alias("v"))


def in_sessions(frame: hw.Frame, gap: str, time: str = "ts") -> hw.Frame:
    return frame.groupBy("k", F.session_window(time, gap)).agg(F.sum("v").alias("v"))


def window_then_session(a: hw.Frame, b: hw.Frame) -> hw.Frame:
    return in_sessions(by_time(in_windows(a, "10 seconds")), "3 seconds")


def sliding_then_session(a: hw.Frame, b: hw.Frame) -> hw.Frame:
    return in_sessions(by_time(in_windows(a, "10 seconds", "5 seconds")), "3 seconds")


def join_then_session(a: hw.Frame, b: hw.Frame) -> hw.Frame:
    right = b.filter("id > 2").selectExpr("ts as other", "k as key")
    near = F.expr("k = key and other between ts - interval 2 seconds and ts + interval 6 seconds")
    return in_sessions(a.join(right, near, "left_outer").select("ts", "k", "v"), "3 seconds")


def session_then_window_then_session(a: hw.Frame, b: hw.Frame) -> hw.Frame:
    sessions = by_time(in_sessions(a, "3 seconds"), "session_window")
    return in_sessions(by_time(in_windows(sessions, "20 seconds")), "5 seconds")


def session_then_session(a: hw.Frame, b: hw.Frame) -> hw.Frame:
    return in_sessions(by_time(in_sessions(a, "3 seconds"), "session_window"), "9 seconds")


def session_over_windows(a: hw.Frame, b: hw.Frame) -> hw.Frame:
    return in_sessions(in_windows(a, "10 seconds"), "3 seconds", time="window")


def windows_of_sessions_again(a: hw.Frame, b: hw.Frame) -> hw.Frame:
    sessions = by_time(in_sessions(a, "3 seconds"), "session_window")
    return in_windows(sessions, "10 seconds").groupBy("k", "window").agg(F.sum("v").alias("v"))


def sessions_by_zero(a: hw.Frame, b: hw.Frame) -> hw.Frame:
    # 0.0 and -0.0 are one key.
    signed = a.withColumn("zero", F.expr("0.0D * if(id % 2 = 0, -1, 1)"))
    return signed.groupBy("zero", F.session_window("ts", "8 seconds")).agg(F.sum("v").alias("v"))


def union_with_a_computed_time(a: hw.Frame, b: hw.Frame) -> hw.Frame:
    later = b.withColumn("ts", F.expr("ts + interval 30 seconds"))
    return in_windows(a.union(later), "10 seconds")


def group_by_time(a: hw.Frame, b: hw.Frame) -> hw.Frame:
    return a.groupBy("k", "ts").agg(F.sum("v").alias("v"))


def join_by_time(a: hw.Frame, b: hw.Frame) -> hw.Frame:
    return a.join(b.selectExpr("ts as other", "id as there"), F.expr("ts = other"), "inner")


def join_then_windows(a: hw.Frame, b: hw.Frame) -> hw.Frame:
    right = b.selectExpr("ts as other", "k as key")
    near = F.expr("k = key and other between ts - interval 2 seconds and ts + interval 6 seconds")
    joined = a.join(right, near, "left_outer").select("ts", "k", "v")
    return in_windows(joined, "10 seconds", "5 seconds")


SHAPES = [
    window_then_session,
    sliding_then_session,
    join_then_session,
    session_then_window_then_session,
    session_then_session,
    session_over_windows,
    windows_of_sessions_again,
    sessions_by_zero,
    union_with_a_computed_time,
    group_by_time,
    join_by_time,
    join_then_windows,
]


LONG = pytest.mark.long


@pytest.mark.parametrize(
    ("number", "lake"),
    [
        (0, False),
        (1, True),
        (2, False),
        pytest.param(0, True, marks=LONG),
        pytest.param(1, False, marks=LONG),
        pytest.param(2, True, marks=LONG),
    ],
)
def test_graph_of_many(
    number: int, lake: bool, interpreted: SparkSession, flow: hw.Flow, lab: Lab
) -> None:
    a, b = lab.source(flow, "a", READINGS), lab.source(flow, "b", READINGS)
    for shape in SHAPES[number::3]:
        flow.sink(shape.__name__, shape(a, b))
    # Every record has its vertex at once, and only then becomes past.
    flow.sink("first", a)
    flow.sink("second", b)
    found = checked(flow, lab, lake=lake)
    assert not found.violations, found
    assert found.records > 4


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_graph_of_one(
    shape: Callable[[hw.Frame, hw.Frame], hw.Frame],
    interpreted: SparkSession,
    flow: hw.Flow,
    lab: Lab,
) -> None:
    flow.sink("out", shape(lab.source(flow, "a", READINGS), lab.source(flow, "b", READINGS)))
    found = checked(flow, lab)
    assert not found.violations, found
    assert found.records > 4


@pytest.mark.parametrize(
    ("shape", "lake"),
    [
        (window_then_session, True),
        pytest.param(sliding_then_session, True, marks=LONG),
        pytest.param(join_then_windows, True, marks=LONG),
        pytest.param(window_then_session, False, marks=LONG),
        pytest.param(sliding_then_session, False, marks=LONG),
        pytest.param(join_then_windows, False, marks=LONG),
    ],
)
def test_finished(
    shape: Callable[[hw.Frame, hw.Frame], hw.Frame],
    lake: bool,
    interpreted: SparkSession,
    flow: hw.Flow,
    lab: Lab,
) -> None:
    flow.sink("out", shape(lab.source(flow, "a", READINGS), lab.source(flow, "b", READINGS)))
    found = checked(flow, lab, finish=True, lake=lake)
    assert not found.violations, found
    assert found.alive == 0


def test_many_records_in_open_sessions(interpreted: SparkSession, flow: hw.Flow, lab: Lab) -> None:
    many = "\n".join(f"{i} | {i % 8} | {i % 7} | 1" for i in range(1, 1500))
    rest = "5000 | 100 | 1 | 1\n--\n5001 | 130 | 1 | 1\n--\n5002 | 131 | 1 | 1"
    flow.sink("out", in_sessions(lab.source(flow, "a", f"{many}\n--\n{rest}"), "3 seconds"))
    found = checked(flow, lab)
    assert not found.violations, found
    assert found.labels >= 1499
