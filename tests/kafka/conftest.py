"""A broker for all tests of a process, and the test session's Spark with the connector."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.kafka.topics import Topics
from tests.support.kafka import Broker, broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker of this process."""
    with broker(tmp_path_factory.mktemp("kafka") / "broker") as running:
        yield running


@pytest.fixture
def topics(kafka: Broker, spark: SparkSession, tmp_path: Path) -> Topics:
    """Topics of one test, for flows of the session."""
    # The session is shared with other tests, so the connector comes to it as it runs.
    jvm = spark._jvm
    assert jvm is not None
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for jar in kafka.jars.split(","):
        loader.addURL(jvm.java.io.File(jar).toURI().toURL())
    return Topics(kafka.servers, tmp_path)
