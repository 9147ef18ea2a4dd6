"""Flows on a cluster of two workers: exact, and still exact when one of them is lost."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater.bench.cluster import cluster
from tests.restart import job
from tests.restart.test_restart import Job, check, check_live

pytestmark = pytest.mark.spark


@pytest.mark.long
@pytest.mark.parametrize("live", [True, False], ids=["live", "not live"])
@pytest.mark.parametrize("lake", [True, False], ids=["lake", "file"])
def test_a_flow_on_two_workers(spark: SparkSession, tmp_path: Path, lake: bool, live: bool) -> None:
    job.generate(tmp_path, sources=2, files=4, seed=11)
    for marker, wanted in ((job.LAKE, lake), (job.LIVE, live)):
        if wanted:
            (tmp_path / marker).touch()
    with cluster(tmp_path / "cluster") as made:
        assert Job(tmp_path, made.address).run() == 0
    (check_live if live else check)(spark, tmp_path, late=False)


@pytest.mark.long
@pytest.mark.parametrize("lake", [True, False], ids=["lake", "file"])
def test_killed_on_two_workers(spark: SparkSession, tmp_path: Path, lake: bool) -> None:
    job.generate(tmp_path, sources=2, files=6, seed=13)
    if lake:
        (tmp_path / job.LAKE).touch()
    with cluster(tmp_path / "cluster") as made:
        killed = Job(tmp_path, made.address)
        for n, point in enumerate(("before", "inside", "after")):
            assert killed.run(point, n + 1) == -signal.SIGKILL
        assert killed.run() == 0
    check(spark, tmp_path)


def test_a_worker_that_is_lost(spark: SparkSession, tmp_path: Path) -> None:
    job.generate(tmp_path, sources=2, files=6, seed=12)
    (tmp_path / job.LAKE).touch()
    (tmp_path / job.LIVE).touch()
    with cluster(tmp_path / "cluster") as made:
        running = Job(tmp_path, made.address)
        with subprocess.Popen(
            [sys.executable, "-m", "tests.restart.job", str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=running.environment,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "batch 0\n"
            made.kill(0)
            _, errors = process.communicate(timeout=300)
            assert process.returncode == 0, errors[-3000:]
    assert check_live(spark, tmp_path).labels
