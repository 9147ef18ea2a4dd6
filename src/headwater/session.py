"""The Spark session that flows run in: the user's own, or one made here with sensible settings."""

from __future__ import annotations

import atexit
import logging
import os
import sys
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from pyspark import SparkContext
from pyspark.sql import SparkSession

from headwater.errors import HeadwaterError
from headwater.spark_errors import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

KAFKA_JARS = "HEADWATER_KAFKA_JARS"

ROCKSDB = {
    # The only state store that stateful processors have.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # A micro-batch writes down what changed, instead of the whole store.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""Settings for queries with stateful processors."""

_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_BY_FILE_SYSTEM = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)


def require_own(spark: SparkSession) -> SparkSession:
    """A session whose JVM is at hand, which flows need; one of Spark Connect is refused."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise HeadwaterError(
            "a flow can't run through Spark Connect, which keeps the driver's JVM from its "
            "clients; run it as an application of the cluster (docs/cluster.md)"
        )
    return spark


def adopt_or_start() -> SparkSession:
    """The active session, or a local one."""
    let_go_at_exit()
    # Spark would print the whole plan as JSON above the one line that a wrong column's error is.
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    # Without this, workers start whichever python is first on the PATH, without our packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    cores = os.cpu_count() or 1
    builder = SparkSession.builder
    if jars := kafka_jars():
        builder = builder.config("spark.jars", jars)
    try:
        session: SparkSession = (
            builder.master(os.environ.get("SPARK_MASTER", "local[*]"))
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


@contextmanager
def settings_of_query(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings that a query takes over at its start; the session gets its own back.

    Checkpoints are local directories. Spark's default way to their files starts a process
    (`readlink`, `chmod`) for nearly each of them, which is much of what a small batch takes; the
    other way needs fewer, and renames as atomically. Whoever chose one keeps it.
    """
    conf = spark.conf
    chosen = dict(settings)
    if conf.get(_FILE_MANAGER, None) is None and _loadable(spark, _BY_FILE_SYSTEM):
        chosen[_FILE_MANAGER] = _BY_FILE_SYSTEM
    before = {name: conf.get(name, None) for name in chosen}
    for name, value in chosen.items():
        conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                conf.unset(name)
            else:
                conf.set(name, old)


def _loadable(spark: SparkSession, name: str) -> bool:
    """Whether this version of Spark has a class."""
    assert spark._jvm is not None
    return bool(spark._jvm.org.apache.spark.util.Utils.classIsLoadable(name))


def kafka_jars() -> str:
    """The jars of Spark's connector to Kafka, from the folder or list in `HEADWATER_KAFKA_JARS`."""
    given = os.environ.get(KAFKA_JARS, "")
    if not given or not os.path.isdir(given):
        return given
    found = sorted(name for name in os.listdir(given) if name.endswith(".jar"))
    if not found:
        raise HeadwaterError(f"{KAFKA_JARS}={given} has no jars; name the connector's folder")
    return ",".join(os.path.join(os.path.abspath(given), name) for name in found)


def jvm_has_ended() -> bool:
    """Whether the JVM that this process started is gone: nothing of Spark can go on without it."""
    process = getattr(SparkContext._gateway, "proc", None)
    return process is not None and process.poll() is not None


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
