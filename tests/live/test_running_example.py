"""Ananke's running example (its Figures 1, 3 and 4): cars that stay in an area, and fast ones.

Cars report their place every five minutes. One query finds those with three reports in an area
within fifteen minutes, the other those that drive at more than 110 km/h. The figures' own reports
are not in the paper's text: these have the same shape. All times are minutes.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from headwater.query.graph import Graph
from tests.support.streams import T0, Lab

pytestmark = pytest.mark.spark

SCHEMA = "id bigint, ts timestamp, car int, x int"
CELL = 5
"""Kilometres: a car that covers two cells in five minutes drives at 120 km/h."""

# Car 1 drives fast, car 2 stays in the area, which is cells 0 to 3, and car 3 is somewhere else.
REPORTS = "\n--\n".join(
    [
        *(f"{2 * n + 1} | {300 * n} | 1 | {2 * n + 4}\n{2 * n + 2} | {300 * n} | 2 | {n % 2}"
          for n in range(5)),
        "11 | 2400 | 3 | 50",
    ]
)  # fmt: skip

Told = dict[Any, float | None]


def queries(flow: hw.Flow, lab: Lab) -> None:
    """Both queries of Figure 3, over one source."""
    reports = lab.source(flow, "reports", REPORTS, SCHEMA)
    window = F.window("ts", "15 minutes", "5 minutes")
    visits = reports.filter("x <= 3").groupBy("car", window).agg(F.count("*").alias("n"))
    flow.sink("visits", visits.filter("n > 2"))
    ends = reports.groupBy("car", window).agg(
        (F.max("x") - F.min("x")).alias("cells"), F.min("ts").alias("a"), F.max("ts").alias("z")
    )
    hours = "(unix_seconds(z) - unix_seconds(a)) / 3600"
    flow.sink("speeding", ends.filter(f"z > a and cells * {CELL} / ({hours}) > 110"))


def minutes(value: Any) -> float | None:
    return None if value is None else (value - T0).total_seconds() / 60


def records(rows: Any) -> Told:
    """By record: the watermark at which its vertex, or its label, was delivered."""
    return {
        row["id"]: minutes(row["delivered"]) for row in rows.to_pylist() if row["kind"] == "source"
    }


def sets(graph: Graph) -> list[tuple[str, float | None, list[int]]]:
    """Each result by its sink and the watermark at which it was delivered, with its records."""
    found: dict[tuple[str, int], tuple[float | None, list[int]]] = {}
    for edge in graph.edges.to_pylist():
        key = edge["sink"], edge["result_id"]
        at, ids = found.setdefault(key, (minutes(edge["delivered"]), []))
        assert at == minutes(edge["delivered"])
        ids.append(edge["source_id"])
    return sorted((sink, at, sorted(ids)) for (sink, _), (at, ids) in found.items())


def test_the_graph_grows_and_records_expire(
    interpreted: SparkSession, flow: hw.Flow, lab: Lab
) -> None:
    queries(flow, lab)
    store = lab.run(flow, "eager", live=True)
    whole = store.graph()
    assert sets(whole) == [
        ("speeding", 10, [1, 3]),  # the window from -5 to 10 has two reports of car 1
        ("speeding", 15, [1, 3, 5]),
        ("speeding", 20, [3, 5, 7]),
        ("speeding", 40, [5, 7, 9]),
        ("speeding", 40, [7, 9]),
        ("visits", 15, [2, 4, 6]),
        ("visits", 20, [4, 6, 8]),
        ("visits", 40, [6, 8, 10]),
    ]
    # A record is a vertex once, with its first result, however many windows and queries it is in.
    assert whole.vertices.num_rows == 10 + 8
    fast, staying = {1: 10, 3: 10, 5: 15, 7: 20, 9: 40}, {2: 15, 4: 15, 6: 15, 8: 20, 10: 40}
    assert records(whole.vertices) == fast | staying
    # The report of minute 0 is in windows up to the one that ends at 15, that of 5 up to 20.
    assert records(whole.labels) == {1: 15, 2: 15, 3: 20, 4: 20} | dict.fromkeys(range(5, 11), 40)

    # Figure 4: the graph at two moments, and what was delivered in between.
    before, after = (store.graph(at=T0 + timedelta(minutes=at)) for at in (16, 22))
    assert sets(before) == [each for each in sets(whole) if each[1] in (10, 15)]
    assert [each for each in sets(after) if each not in sets(before)] == [
        ("speeding", 20, [3, 5, 7]),
        ("visits", 20, [4, 6, 8]),
    ]
    assert records(after.vertices).keys() - records(before.vertices).keys() == {7, 8}
    assert records(before.labels).keys() == {1, 2}
    assert records(after.labels).keys() == {1, 2, 3, 4}
    (between,) = [c for c in store.follow(wait=False) if minutes(c.watermark) == 20]
    assert between.edges.num_rows == 6


@pytest.mark.long
def test_by_anankes_own_rule(interpreted: SparkSession, flow: hw.Flow, lab: Lab) -> None:
    """U is fifteen minutes: labels wait until the watermark is more than that after a record."""
    queries(flow, lab)
    labels = records(lab.run(flow, "eager", live=True, expiry="ananke").graph().labels)
    assert labels == {1: 20, 2: 20} | dict.fromkeys(range(3, 11), 40)
