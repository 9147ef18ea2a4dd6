"""A flow and a lab for each operator's tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headwater as hw
from tests.support.streams import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


@pytest.fixture
def flow(spark: SparkSession) -> hw.Flow:
    return hw.Flow("test", spark)
