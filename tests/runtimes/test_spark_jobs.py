"""Spark steps on the session of the runtime's process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.runtimes.lab import done, events, job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_spark_job_for_each_event(spark: SparkSession, tmp_path: Path) -> None:
    made = job(spark="tests.runtimes.functions:with_spark", schema="s bigint, n bigint")
    _, told = done(tmp_path, made, events(10, 100), 60, session=lambda: spark)
    assert told.values == {
        "forecast@1/e10": [{"s": 45, "n": 10}],
        "forecast@1/e100": [{"s": 4950, "n": 100}],
    }


def test_one_that_never_ends_is_cancelled(spark: SparkSession, tmp_path: Path) -> None:
    made = job(spark="tests.runtimes.functions:endless", timeout=2.0, retries=0)
    _, told = done(tmp_path, made, events(1), 60, session=lambda: spark)
    assert "did not end within 2 s" in (told.failed["forecast@1/e1"].reason or "")
    assert spark.range(3).count() == 3


@pytest.mark.long
def test_without_a_session_it_has_its_own(tmp_path: Path) -> None:
    made = job(spark="tests.runtimes.functions:with_spark", folder=str(Path.cwd()))
    _, told = done(tmp_path, made, events(10), 120)
    assert told.values == {"forecast@1/e10": [{"s": 45, "n": 10}]}
