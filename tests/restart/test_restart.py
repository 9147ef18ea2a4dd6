"""`kill -9` and start again: no result, edge or record is lost or doubled.

`make test` kills at each point of a batch once, and again where a store or a step of another kind
may be at work; `make test-all` twenty times and more, at random points and moments.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headwater as hw
from headwater.examples import NAMES, load
from headwater.testing.graph_checking import Checked, check_graph
from tests.random_flows.comparing import compare
from tests.random_flows.running import on_lake, recorded_input, stored
from tests.restart import job
from tests.support import MASTER, amount, full
from tests.support.streams import tell

POINTS = ("before", "inside", "after")


class Job:
    """The job in a process group of its own, so that a kill takes its JVM along."""

    def __init__(self, home: Path, master: str | None = None) -> None:
        self.home = home
        self.environment = {**os.environ, **({MASTER: master} if master else {})}
        self.kills = 0

    def last_batch(self) -> int:
        commits = self.home / "checkpoint" / "commits"
        names = os.listdir(commits) if commits.exists() else []
        return max((int(n) for n in names if n.isdigit()), default=-1)

    def run(self, *arguments: object, seconds: float | None = None) -> int:
        """Run to the end, or kill it some time after its first batch; gives the exit code."""
        command = [sys.executable, "-m", "tests.restart.job", str(self.home), *map(str, arguments)]
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=self.environment,
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            if seconds is not None and process.stdout.readline():
                time.sleep(seconds)
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            _, errors = process.communicate(timeout=300)
            assert process.returncode in (0, -signal.SIGKILL), errors[-3000:]
            assert "leaked" not in errors, errors[-3000:]
            self.kills += process.returncode != 0
            return process.returncode


def check(spark: SparkSession, home: Path, late: bool = True) -> hw.Store:
    """The store against the interpreter on the batches and watermarks that Spark recorded."""
    flow = job.flow(spark, home)
    given = recorded_input(flow, home / "checkpoint", home)
    seen = 0
    for name, sink in flow.sinks.items():
        with on_lake(at=job.store_of(home).startswith("delta:")):
            actual = stored(home, name, traced=True)
        compared = compare(sink, given, actual)
        assert not compared.text, compared.text
        seen += compared.counters.late_rows + compared.counters.late_windows
    assert seen or not late, "late records must occur for this to mean anything"
    store = hw.open(job.store_of(home))
    batches = store.batches()["batch"].to_pylist()
    assert batches == list(range(len(given.watermarks))), "each batch once, none missing"
    return store


def test_killed_at_each_point_of_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    job.generate(tmp_path, sources=2, files=amount(5, 8), seed=3)
    killed = Job(tmp_path)
    for n, point in enumerate(POINTS):
        assert killed.run(point, amount(1, 2) * n + 1) == -signal.SIGKILL
    assert killed.run() == 0
    assert killed.kills == len(POINTS)
    check(spark, tmp_path)


def test_a_lake_killed_at_each_point_of_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    job.generate(tmp_path, sources=2, files=amount(6, 8), seed=4)
    (tmp_path / job.LAKE).touch()
    (tmp_path / job.LIVE).touch()
    killed = Job(tmp_path)
    # Before anything is written a lake is as any store, and killed so in the test above.
    points = (*(["before"] if full() else []), "noted", "inside", "after")
    for n, point in enumerate(points):
        assert killed.run(point, n + 1) == -signal.SIGKILL
    assert killed.run() == 0
    assert killed.kills == len(points)
    checked = check_live(spark, tmp_path)
    assert checked.labels > 20
    assert checked.alive


def test_what_waits_for_rows_is_killed_too(spark: SparkSession, tmp_path: Path) -> None:
    # Each start of these steps takes long: a few batches have to do.
    job.generate(tmp_path, sources=2, files=amount(4, 5), seed=5)
    (tmp_path / job.IN_ORDER).touch()
    killed = Job(tmp_path)
    for n, point in enumerate(POINTS[1 : amount(2, 3)]):
        assert killed.run(point, n + 1) == -signal.SIGKILL
    assert killed.run() == 0
    store = check(spark, tmp_path, late=False)
    for sink in job.flow(spark, tmp_path).sinks:
        assert store.results(sink).num_rows, f"{sink} must have results for this to mean anything"


def test_the_live_graph_survives(spark: SparkSession, tmp_path: Path) -> None:
    job.generate(tmp_path, sources=2, files=amount(6, 8), seed=7)
    (tmp_path / job.LIVE).touch()
    killed = Job(tmp_path)
    for n, point in enumerate(POINTS[1 : amount(2, 3)]):
        assert killed.run(point, 3 * n + 2) == -signal.SIGKILL
    assert killed.run() == 0
    checked = check_live(spark, tmp_path)
    assert checked.labels > 20
    assert checked.alive
    assert checked.shared


def check_live(spark: SparkSession, home: Path, late: bool = True) -> Checked:
    """The same for the graph, as the checker finds it."""
    store = check(spark, home, late)
    flow = job.flow(spark, home)
    given = recorded_input(flow, home / "checkpoint", home)
    checked = check_graph(store.follow(wait=False), list(flow.sinks.values()), given)
    assert not checked.violations, "\n".join(checked.violations[:10])
    return checked


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_the_live_graph_of_an_example_survives(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    example = load(name)
    example.generate(
        tmp_path / example.SOURCE, 1_500 if name != "object_annotation" else 300, files=5
    )
    (tmp_path / job.LIVE).touch()
    (tmp_path / job.EXAMPLE).write_text(name)
    killed = Job(tmp_path)
    for n, point in enumerate(POINTS[1:]):
        assert killed.run(point, 2 * n + 1) == -signal.SIGKILL
    assert killed.run() == 0
    assert check_live(spark, tmp_path, late=False).records > 10


@pytest.mark.long
@pytest.mark.parametrize("sources", [1, 2])
def test_killed_again_and_again(spark: SparkSession, tmp_path: Path, sources: int) -> None:
    kills = amount(sample=2, all=11)
    files = kills * 2
    job.generate(tmp_path, sources, files, seed=sources)
    chance = random.Random(sources)
    killed = Job(tmp_path)
    while killed.kills < kills and killed.last_batch() < files - 2:
        if chance.random() < 0.7:
            killed.run(chance.choice(POINTS), killed.last_batch() + chance.randint(1, 2))
        else:
            killed.run(seconds=chance.uniform(0, 2.0))
    assert killed.kills >= 10, "two such runs kill twenty times at the least"
    assert killed.run() == 0
    store = check(spark, tmp_path)
    if sources == 1:
        # With one watermark nothing but the kills differs from a run that was left alone.
        alone = tmp_path / "alone"
        flow = job.flow(spark, tmp_path)
        flow.start(store=str(alone), capture="eager", available_now=True).wait()
        for sink in flow.sinks:
            assert tell(store, sink) == tell(hw.open(str(alone)), sink)
