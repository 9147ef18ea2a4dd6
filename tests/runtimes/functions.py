"""Functions that steps of tests call, in processes of their own: nothing slow is imported here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def double(event: dict[str, Any], factor: int = 2) -> dict[str, Any]:
    """A function as a step calls it."""
    print("what it prints is no output")
    return {"n": event["n"] * factor, "pid": os.getpid()}


def total(events: list[dict[str, Any]]) -> dict[str, int]:
    """Of a window."""
    return {"sum": sum(event["n"] for event in events)}


def prepare(event: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Two rows, and a mark in a file for each time that it ran."""
    _mark("prepare")
    yield {"x": event["n"]}
    yield {"x": event["n"] + 1}


def simulate(event: dict[str, Any], prepare: list[dict[str, Any]], scale: int = 1) -> Any:
    """Of what `prepare` made."""
    _mark("simulate")
    return {"y": scale * sum(row["x"] for row in prepare)}


def report(event: dict[str, Any], simulate: list[dict[str, Any]], scale: int = 1) -> Any:
    """The last step."""
    _mark("report")
    if os.environ.get("HEADWATER_TEST_FAIL") == "report":
        raise ValueError("no paper")
    return {"n": event["n"], "y": simulate[0]["y"]}


def with_spark(spark: Any, event: dict[str, Any]) -> Any:
    """A batch job on a session."""
    return spark.range(event["n"]).selectExpr("sum(id) as s", "count(*) as n")


def _mark(step: str) -> None:
    with Path(os.environ["HEADWATER_FOLDER"], f"ran-{step}").open("a") as file:
        file.write("x")


def endless(spark: Any, event: dict[str, Any]) -> Any:
    """Spark works on this for hours."""
    spark.range(10**15, numPartitions=2).selectExpr("sum(sqrt(id))").collect()
