"""What is measured of a deployment: counts of each node, and whether it keeps up."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headwater.compose import Composition
from headwater.compose.kinds import Filter
from headwater.deploy.monitoring.accounts import load
from headwater.deploy.monitoring.counting import Counter
from tests.deploy.fakes import FakeDeployment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.deploy import Deployment, Host


def progress(batch: int, worked: bool = True, **rows: int) -> dict[str, Any]:
    """What Spark says of a batch, or while it waits for one."""
    took = {"addBatch": 300, "triggerExecution": 400} if worked else {"triggerExecution": 2}
    observed = {name.replace("_", "#"): {"rows": number} for name, number in rows.items()}
    return {"batchId": batch, "durationMs": took, "observedMetrics": observed}


def test_a_batch_counts_once_and_one_that_builds_up_state_not_at_all() -> None:
    counter = Counter(lambda batch: batch < 1)
    for told in (
        progress(0, even_1=50),
        progress(1, worked=False),  # waiting, under the number of the batch to come
        progress(1, even_1=5, even_2=5, odd_1=4),  # observed in two lowerings
        progress(1, even_1=5),  # told again
        progress(2, odd_1=3),
    ):
        counter.add(told)
    assert counter.counts.out == {"even": 5, "odd": 7}
    assert (counter.counts.compute, counter.counts.framework) == pytest.approx((0.6, 0.2))
    assert counter.length == pytest.approx(0.4)


def test_a_job_that_is_fed_too_fast_grows(tmp_path: Path) -> None:
    told = FakeDeployment(tmp_path, takes=2).run(120, service=2)
    unit, (radar, solve, solved) = told["units"][0], told["nodes"]
    assert (solve["verdict"], unit["verdict"]) == ("growing", "growing")
    assert solve["slope"] == pytest.approx(0.5, rel=0.1)
    assert solve["exhaustion"] > 0, "of the room that is left on the disk"
    assert (solve["in"], solve["done"], solve["in_transit"]) == (119, 59, 60)
    assert (solve["service"], solve["efficiency"], solve["cardinality"]) == (2.0, 0.75, 1.0)
    assert solve["rate_in"] == pytest.approx(1.0, rel=0.01)
    assert solve["rate_out"] == pytest.approx(0.5, rel=0.01)
    assert solve["forecast"]["outlook"] == "unsustainable", "as its file declares"
    assert (radar["kind"], radar["unit"], solved["in"]) == ("source", None, 59)


def test_a_job_that_keeps_up_is_healthy_beside_what_was_expected(tmp_path: Path) -> None:
    deployment = FakeDeployment(tmp_path, takes=0.5)
    solve = deployment.run(120, service=0.5)["nodes"][1]
    assert solve["verdict"] == "healthy"
    # One slot, half of it busy: M/M/1 has one event in transit, and so has Little's law.
    assert solve["forecast"]["in_transit"] == pytest.approx(1.0)
    assert solve["expected"] == pytest.approx(1.0, rel=0.1)
    assert solve["exhaustion"] is None


def test_what_is_measured_is_written_down(tmp_path: Path) -> None:
    deployment = FakeDeployment(tmp_path, takes=2)
    told = deployment.run(70, service=2)
    folder = deployment.files.folder
    assert json.loads((folder / "status.json").read_bytes()) == told
    lengths = [second - second // 2 for second in range(70)]
    assert deployment.watch.history()["nodes"] == {"solve": lengths}
    written = json.loads((folder / "history.json").read_bytes())["nodes"]["solve"]
    assert written == lengths[: len(written)]
    assert written
    account = load(deployment.files.unit_folder("solve@1"))
    assert (account.totals.taken, account.nodes["solved"].out) == (69, 34)
    (folder / "units" / "solve@1" / "measured.json").write_text('{"nodes": 1}')
    assert load(deployment.files.unit_folder("solve@1")).totals.taken == 0, "not there is nothing"


# --- a real one -------------------------------------------------------------------------------

FLOW = """
flow: counted
nodes:
  nums: {source: {stream: nums, schema: "n bigint, at timestamp", event_time: at, watermark: 0 seconds, id: n}}
  even: {filter: {from: nums, where: "n % 2 = 0"}}
  sums: {aggregate: {from: even, window: {time: 10 seconds}, columns: {total: "sum(n)"}}}
  evens: {sink: {from: even, stream: evens}}
  tens: {filter: {from: nums, where: "n % 10 = 0"}}
  scaled: {function: {from: tens, call: "calls:scale", schema: "s bigint", keep: [n, at]}}
  late: {filter: {from: scaled, where: "n >= 10"}}
  solve: {job: {from: late, call: "calls:solve", schema: "s bigint", slots: 2, retries: 0}}
  solved: {sink: {from: solve, stream: solved}}
  lost: {sink: {from: solve.failures, stream: lost}}
"""
CALLS = """
def scale(rows):
    return rows[["n"]].rename(columns={"n": "s"})

def solve(event):
    if event["n"] == 20:
        raise ValueError("twenty")
    return {"s": event["s"]}
"""
START = datetime(2026, 1, 1, tzinfo=UTC)


def publish(host: Host, start: int, end: int) -> None:
    for first in range(start, end, 20):
        host.streams.publish(
            "nums",
            [{"n": n, "at": START + timedelta(seconds=n)} for n in range(first, first + 20)],
        )


def drained(host: Host, deployment: Deployment, windows: int) -> dict[str, tuple[int, int]]:
    """In and out of each node, when all has gone through and so many windows are closed."""
    assert host.drain(120)
    until = time.monotonic() + 60
    while True:  # windows close in a batch of their own, which nothing waits for
        nodes = {row["node"]: row for row in deployment.status()["nodes"]}
        if nodes["sums"]["out"] >= windows or time.monotonic() > until:
            assert all(row["in_transit"] == 0 for row in nodes.values())
            return {name: (row["in"], row["out"]) for name, row in nodes.items()}
        time.sleep(0.1)


@pytest.mark.spark
def test_counts_of_every_node_are_exact_after_a_change_and_a_restart_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    from headwater.deploy import Host

    (tmp_path / "calls.py").write_text(CALLS)
    flow = Composition.parse(FLOW)
    with Host(tmp_path / "flows", streams=tmp_path / "streams", spark=spark) as host:
        deployment = host.deploy(flow, folder=str(tmp_path))
        publish(host, 0, 40)
        assert drained(host, deployment, windows=3) == {
            "nums": (40, 40),
            "even": (40, 20),
            "sums": (20, 3),
            "evens": (20, 20),
            "tens": (40, 4),
            "scaled": (4, 4),
            "late": (4, 3),
            "solve": (3, 2),
            "solved": (2, 2),
            "lost": (1, 1),
        }
        # The new unit first builds its windows up again: what it reads for that was counted.
        changed = flow.replace("even", Filter(inputs="nums", where="n % 4 = 0"))
        host.deploy(changed, folder=str(tmp_path))
        publish(host, 40, 60)
        after = drained(host, deployment, windows=5)
        expected = {"nums": (60, 60), "even": (60, 25), "sums": (25, 5), "tens": (60, 6)}
        assert after == {**after, **expected, "late": (6, 5), "solve": (5, 4)}
        for stream in ("evens", "solved", "lost"):
            assert after[stream][1] == len(host.streams.table(stream))
        told = deployment.status()
        rows = {row["node"]: row for row in told["nodes"]}
        assert rows["even"]["cardinality"] == 0.25, "of the version that runs"
        assert [unit["state"] for unit in told["units"]] == ["running"] * len(told["units"])
        assert 0 < rows["even"]["efficiency"] < 1
        assert rows["even"]["service"] > 0
    with Host(tmp_path / "flows", streams=tmp_path / "streams", spark=spark) as host:
        again = host.status()["counted"]["nodes"]
        assert {row["node"]: (row["in"], row["out"]) for row in again} == after
