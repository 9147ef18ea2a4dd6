"""The Spark session that flows run in: the user's own, or one made here with sensible settings."""

from __future__ import annotations

import atexit
import os
import sys
from functools import cache

from pyspark import SparkContext
from pyspark.sql import SparkSession

from headwater.errors import HeadwaterError
from headwater.spark_errors import one_line


def adopt_or_start() -> SparkSession:
    """The active session, or a local one."""
    let_go_at_exit()
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    # Without this, workers start whichever python is first on the PATH, without our packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    cores = os.cpu_count() or 1
    try:
        session: SparkSession = (
            SparkSession.builder.master(os.environ.get("SPARK_MASTER", "local[*]"))
            .appName("headwater")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.memory", "4g")
            .config("spark.log.level", "ERROR")
            .config("spark.sql.shuffle.partitions", str(max(2, cores)))
            .config("spark.sql.session.timeZone", "UTC")
            .getOrCreate()
        )
    except Exception as error:
        raise HeadwaterError(
            f"Spark did not start ({one_line(error)}); `headwater doctor` says what is missing"
        ) from error
    return session


def let_go() -> None:
    """Forget the functions that Spark was given to call; no run goes on after this.

    Py4J would keep these, and what they reach, beyond the interpreter's end; DuckDB then reports
    itself as leaked, in a hundred lines.
    """
    gateway = SparkContext._gateway
    if gateway is not None:
        gateway.gateway_property.pool.clear()


@cache
def let_go_at_exit() -> None:
    """Have that done when the interpreter ends."""
    atexit.register(let_go)
