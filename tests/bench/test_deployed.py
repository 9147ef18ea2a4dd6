"""What deployed flows cost: the tables, on small sizes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.bench.deployed import deploying, reusing, runtimes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def quiet(*_: object) -> None:
    """No progress."""


def test_each_runtime_has_its_rates(tmp_path: Path, interpreted: SparkSession) -> None:
    table = runtimes(
        0.6,
        tmp_path,
        quiet,
        rates={"operators": (40,), "jobs": (4,)},
        backlog={"operators": 500, "jobs": 2},
    )
    assert [(row["runtime"], row["published/s"]) for row in table.rows] == [
        ("operators", 40),
        ("operators", None),
        ("jobs", 4),
        ("jobs", None),
    ]
    for row in table.rows:
        assert row["results/s"] > 0
        if row["published/s"]:
            assert 0 < row["latency p50 ms"] <= row["p95 ms"]
    assert list(tmp_path.iterdir()) == [], "nothing is left"


def test_chains_are_deployed_and_changed(tmp_path: Path, interpreted: SparkSession) -> None:
    table = deploying(1, tmp_path, quiet, chains=(1, 6))
    assert [(row["nodes"], row["units"]) for row in table.rows] == [(1, 1), (6, 3)]
    assert all(row["deploy s"] > 0 and row["change s"] > 0 for row in table.rows)


def test_a_static_step_is_run_once(tmp_path: Path, interpreted: SparkSession) -> None:
    table = reusing(1, tmp_path, quiet, events=(30,), seconds=0.1)
    (row,) = table.rows
    assert row["each time s"] >= 30 * 0.1 / 2, "on two cores at best"
    assert row["gain"] == row["each time s"] / row["reused s"] > 1
