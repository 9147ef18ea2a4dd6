"""Fixtures for random flows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark without compiling its plans: for a few rows that takes far longer than running."""
    settings_ = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    for name, value in settings_.items():
        spark.conf.set(name, value)
    yield spark
    for name in settings_:
        spark.conf.unset(name)
