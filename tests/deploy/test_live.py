"""Live graphs of deployed flows: through hot changes, and for good once a unit has begun."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import headwater as hw
from headwater.compose.kinds import Aggregate
from headwater.errors import HeadwaterError, RunError
from tests.deploy.support import host_of, ids, parse, publish, rows, settle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FLOW = """
sums: {aggregate: {from: nums, window: {time: 10 seconds}, columns: {total: sum(v), c: count(*)}}}
out: {sink: {from: sums, stream: out}}
"""


def pairs(store: hw.Store, flow: str) -> set[tuple[int, int]]:
    """The edges of a unit's live graph."""
    edges = store.graph(flow=flow).edges
    return set(zip(edges["source_id"].to_pylist(), edges["result_id"].to_pylist(), strict=True))


def traced(store: hw.Store, sink: str) -> set[tuple[int, int]]:
    """The same, asked of each result."""
    found = set()
    for result in store.results(sink)["result_id"].to_pylist():
        found |= {(id_, result) for id_ in store.backward(sink, result)["id"].to_pylist()}
    return found


def test_units_keep_live_graphs_through_a_change(tmp_path: Path, spark: SparkSession) -> None:
    flow = parse("live", FLOW)
    with host_of(tmp_path, spark, live=True) as host:
        deployment = host.deploy(flow)
        publish(host, 0, 35)
        settle(host)
        node = flow["sums"]
        assert isinstance(node, Aggregate)
        other = {**dict(node.columns), "total": "sum(2 * v)"}
        host.deploy(flow.replace("sums", replace(node, columns=other)))
        publish(host, 35, 65)
        settle(host)
        assert ids(deployment) == ["sums@2"]
        store = hw.open(host.store)
        windows = rows(host, "out")
        assert sorted(row["c"] for row in windows) == [10] * len(windows)
        assert len(windows) >= 5, "none is given twice, none is lost"
        for unit in ("live.sums.v1", "live.sums.v2"):
            assert pairs(store, unit) == traced(store, f"{unit}/out")
            shown = store.sample(unit)
            assert shown.edges.num_rows == shown.totals.edges == len(pairs(store, unit))
            past = set(store.expired(f"{unit}/nums")["id"].to_pylist())
            assert past | set(store.alive(f"{unit}/nums")["id"].to_pylist()) >= {
                record for record, _ in pairs(store, unit)
            }
        assert store.forward("live.sums.v2/nums", 36)["final"].to_pylist() == [True]
        assert store.forward("live.sums.v2/nums", 64)["final"].to_pylist() == [False]


def test_a_unit_stays_what_it_began_as(tmp_path: Path, spark: SparkSession) -> None:
    with host_of(tmp_path, spark, live=True) as host:
        host.deploy(parse("live", FLOW))
        publish(host, 0, 15)
        settle(host)
    with host_of(tmp_path, spark) as host:
        publish(host, 15, 35)
        settle(host)
        assert [unit.error for unit in host.deployment("live").units] == [None]
        store = hw.open(host.store)
        assert pairs(store, "live.sums.v1") == traced(store, "live.sums.v1/out")


def test_a_flow_that_is_removed_leaves_its_streams_and_results(
    tmp_path: Path, spark: SparkSession
) -> None:
    with host_of(tmp_path, spark) as host:
        host.deploy(parse("gone", FLOW))
        publish(host, 0, 25)
        settle(host)
        before = rows(host, "out")
        host.remove("gone")
        with pytest.raises(RunError, match="no flow 'gone' is deployed"):
            host.deployment("gone")
        assert host.status() == {}
        assert rows(host, "out") == before
        assert traced(hw.open(host.store), "out")
        assert not host.streams.consumers("nums")
        with pytest.raises(HeadwaterError, match="no flow"):
            host.remove("gone")
        # One of the same name is another: it has another version, and begins anew.
        again = host.deploy(parse("gone", FLOW.replace("stream: out", "stream: other")))
        settle(host)
        assert ids(again) == ["sums@2"]
        assert [row["c"] for row in rows(host, "other")] == [10, 10]
    with host_of(tmp_path, spark) as host:
        assert ids(host.deployment("gone")) == ["sums@2"]
