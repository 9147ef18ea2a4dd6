"""Functions that the tests' flows call."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc


def add(batch: pa.RecordBatch, by: int, table: list[int] | None = None) -> pa.Table:
    """Each value and a number."""
    return pa.table({"sum": pc.add(batch["v"], by + sum(table or []))})


def add_pandas(frame: pd.DataFrame, by: int = 1) -> pd.DataFrame:
    """The same of pandas."""
    return pd.DataFrame({"sum": frame["v"] + by})


def repeat(row: Any) -> list[dict[str, int]]:
    """A row as often as its number says."""
    return [{"copy": copy} for copy in range(row.n % 3)]


def load(size: int) -> list[int]:
    """A static table."""
    return list(range(size))


def square(event: dict[str, Any]) -> dict[str, int]:
    """A service that refuses some."""
    if event["n"] % 5 == 4:
        raise ValueError("not this one")
    return {"square": event["n"] ** 2}


def work(event: dict[str, Any], table: list[int]) -> dict[str, Any]:
    """A job."""
    if event["n"] == 12:
        raise ValueError("twelve")
    return {"n": event["n"], "made": event["v"] + len(table)}


def batch_work(events: list[dict[str, Any]]) -> dict[str, Any]:
    """A job for several events."""
    return {"total": sum(event["n"] for event in events)}


def broken_at_ten(batch: pa.RecordBatch) -> pa.Table:
    """A function that can't do one of the events."""
    if 10 in batch["n"].to_pylist():
        raise ValueError("ten is too much")
    return pa.table({"sum": batch["v"]})


def mended(batch: pa.RecordBatch) -> pa.Table:
    """The same, that can."""
    return pa.table({"sum": batch["v"]})
