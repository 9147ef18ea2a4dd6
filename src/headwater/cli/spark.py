"""Spark as the commands start it: one session, and its JVM's chatter in a file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.query import Store


_LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@contextmanager
def session(log: Path | None = None, light: bool = False) -> Iterator[SparkSession]:
    """A Spark session whose JVM writes its warnings to `log` instead of over a progress bar.

    A `light` one is for work in which the JVM has little part, as it is short or done in Python:
    it does without the thorough compilation that only pays where the JVM works for long. A session
    that runs already is used, and left running.
    """
    from pyspark.sql import SparkSession

    from headwater.session import adopt_or_start

    if (active := SparkSession.getActiveSession()) is not None:
        yield active
        return
    with _stderr_to(log), _java_options(_LIGHT if light else ""):
        started = adopt_or_start()
    try:
        yield started
    finally:
        stop(started)


@contextmanager
def replaying(store: Store, *, always: bool = False) -> Iterator[None]:
    """A session for a store whose answers may need a replay; none where they do not."""
    if always or store.replays:
        with session(light=True):
            yield
    else:
        yield


def stop(started: SparkSession) -> None:
    """Ends a session, and lets go of the functions that Spark was given to call."""
    from py4j.protocol import Py4JError

    from headwater.session import let_go

    with suppress(Py4JError, OSError):  # a signal to all processes may have ended Spark already
        started.stop()
    let_go()


@contextmanager
def _java_options(options: str) -> Iterator[None]:
    """Adds options for a JVM that starts meanwhile."""
    name = "JDK_JAVA_OPTIONS"
    before = os.environ.get(name)
    os.environ[name] = f"{before or ''} {options}".strip()
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@contextmanager
def _stderr_to(log: Path | None) -> Iterator[None]:
    """Sends this process's stderr to a file while a child process that will keep it starts."""
    if log is None:
        file, name = tempfile.mkstemp(prefix="headwater-spark-", suffix=".log")
        Path(name).unlink()  # The JVM writes on into the nameless file; nothing is left behind.
    else:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    kept = os.dup(2)
    try:
        os.dup2(file, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(file)
