"""Two hours of scans, made once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headwater import streams
from headwater.examples.weather import generate
from headwater.examples.weather.sky import Sky
from headwater.streams import Streams


@pytest.fixture(scope="session")
def scans() -> pa.Table:
    """The scans of all stations over an hour and a half."""
    return pa.concat_tables(generate.sweeps(18))


@pytest.fixture(scope="session")
def sky() -> Sky:
    """The truth behind them."""
    return generate.sky_of(18)


@pytest.fixture
def registry(tmp_path: Path) -> Streams:
    """An empty streams folder."""
    return streams.open(tmp_path / "streams")


@pytest.fixture
def calm(interpreted: SparkSession) -> SparkSession:
    """Spark for many small queries at once."""
    return interpreted
