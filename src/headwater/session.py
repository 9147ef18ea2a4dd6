"""The Spark session that flows run in: the user's own, or one made here with sensible settings."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

from headwater.errors import HeadwaterError
from headwater.spark_errors import one_line


def adopt_or_start() -> SparkSession:
    """The active session, or a local one."""
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
