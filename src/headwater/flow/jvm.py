"""Spark's JVM, for the few modules that look into it."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from headwater.errors import FlowError


def active_session() -> SparkSession:
    """The session whose parser and classes are used."""
    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if session is None:
        raise FlowError("no SparkSession: make a headwater.Flow before its expressions")
    return session


def spark_jvm() -> Any:
    """The JVM's classes by name."""
    return active_session()._jvm


def sequence(values: Any) -> list[Any]:
    """A Scala sequence as a list."""
    return [values.apply(i) for i in range(values.size())]


def strings(values: Any) -> tuple[str, ...]:
    """A Scala sequence of strings."""
    return tuple(str(v) for v in sequence(values))


def scala_seq(values: list[Any]) -> Any:
    """A list as a Scala sequence."""
    return spark_jvm().PythonUtils.toSeq(values)


def scala_object(package: Any, name: str) -> Any:
    """A Scala singleton object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")
