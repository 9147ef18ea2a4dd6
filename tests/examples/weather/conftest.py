"""Two hours of scans, made once."""

from __future__ import annotations

from collections.abc import Iterator
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
def calm(interpreted: SparkSession) -> Iterator[SparkSession]:
    """Spark for many queries at once: if each looks for files all the time, none gets far."""
    polling = "spark.sql.streaming.pollingDelay"
    interpreted.conf.set(polling, "100ms")
    yield interpreted
    interpreted.conf.unset(polling)
