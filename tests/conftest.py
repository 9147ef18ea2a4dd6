"""Fixtures for every test: one small local Spark session per test process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support import MASTER, full, jvm

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    import headwater as hw
    from tests.support.streams import Lab

# Before anything imports PySpark: workers must run this interpreter, with our packages, and
# everything binds to loopback whatever the machine's host name resolves to.
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
os.environ["TZ"] = "UTC"
jvm.quicken()


LONGEST = (
    *("page", "restart", "live", "random_flows", "operators", "replay", "deploy", "query"),
    *("examples", "weather"),
)
"""Folders whose files take longest: they go first, or a process is left with one at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first; tests marked `long` run only in `make test-all`."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.parent.name, len(places)))
    if full():
        return
    skip = pytest.mark.skip(reason="long: runs in make test-all")
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The test process's only Spark session: `local[2]`, UTC, files in a temporary folder."""
    from pyspark.sql import SparkSession

    from headwater.cli.spark import stop

    home = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master(os.environ.get(MASTER, "local[2]"))
        .appName("headwater-tests")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.executor.memory", "768m")
        # Tests run each plan for seconds at most: thorough compilation costs twice what it saves.
        .config(
            "spark.driver.extraJavaOptions",
            f"-Dderby.system.home={home} -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        )
        .config("spark.executor.extraJavaOptions", jvm.LIGHT)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        .config("spark.local.dir", str(home / "local"))
        # Reports are read by no test; keeping few saves memory over hundreds of queries.
        .config("spark.sql.streaming.numRecentProgressUpdates", "20")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    stop(session)


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


UNCOMPILED = ("live", "examples", "operators", "replay", "lake", "docs", "query")
"""Folders whose tests are about what comes out of many small plans, not about how they run."""


@pytest.fixture(autouse=True)
def _quickly(request: pytest.FixtureRequest) -> None:
    uses = "spark" in request.fixturenames or request.node.get_closest_marker("spark")
    if request.path.parent.name in UNCOMPILED and uses:
        request.getfixturevalue("interpreted")


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A place for a test's streams and stores."""
    from tests.support.streams import Lab

    return Lab(tmp_path)


@pytest.fixture
def flow(spark: SparkSession) -> hw.Flow:
    """A flow with nothing in it."""
    import headwater as hw

    return hw.Flow("test", spark)
