"""Small flows, batches and tables that the tests of the store and of its queries share."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.store import (
    Batch,
    FlowRegistration,
    ResultSet,
    SinkRegistration,
    SourceRegistration,
)

ROOT = Path(__file__).parents[2]
TIME = pa.timestamp("us", tz="UTC")
SETS = pa.list_(pa.int64())
BY_TID = {"kind": "column", "columns": ["tid"], "types": ["bigint"]}
REPORT = pa.schema([("tid", pa.int64()), ("speed", pa.int32())])
STOPPED = pa.schema([("vid", pa.string()), ("n", pa.int64())])


def at(second: int) -> datetime:
    """A moment of the tests' one day."""
    return datetime(2024, 5, 1, tzinfo=UTC) + timedelta(seconds=second)


def source(
    name: str = "reports", columns: pa.Schema = REPORT, **definition: Any
) -> SourceRegistration:
    """A source that keeps all records, unless told otherwise."""
    given = {"name": name, "kind": "stream", "keep": "all", "id": BY_TID, **definition}
    return SourceRegistration(name, given, columns)


def sink(
    name: str = "stopped", columns: pa.Schema = STOPPED, **definition: Any
) -> SinkRegistration:
    """A sink of stopped vehicles."""
    return SinkRegistration(name, {"name": name, **definition}, columns)


def flow(
    *parts: SourceRegistration | SinkRegistration, name: str = "traffic", query_id: str = "q"
) -> FlowRegistration:
    """A flow of the given sources and sinks; of `reports` and `stopped` if none are given."""
    parts = parts or (source(), sink())
    sources = tuple(part for part in parts if isinstance(part, SourceRegistration))
    sinks = tuple(part for part in parts if isinstance(part, SinkRegistration))
    return FlowRegistration(name, "eager", query_id, "cp", "f1", {"flow": name}, sources, sinks)


def stopped(
    *rows: tuple[int, int, str, int, Iterable[int] | None],
    unique: bool = False,
    origin: str = "reports",
) -> ResultSet:
    """Results from (id, second, vid, n, record ids)."""
    ids, seconds, vids, ns, sets = zip(*rows, strict=True) if rows else ((),) * 5
    table = pa.table(
        {
            "__hw_id": pa.array(ids, pa.int64()),
            "__hw_time": pa.array([at(second) for second in seconds], TIME),
            "vid": pa.array(vids, pa.string()),
            "n": pa.array(ns, pa.int64()),
        }
    )
    lists = [None if one is None else list(one) for one in sets]
    return ResultSet(table, {origin: pa.chunked_array([pa.array(lists, SETS)])}, unique)


def reports(*rows: tuple[int, int, int]) -> pa.Table:
    """Records from (tid, second, speed); the speed is the content."""
    tids, seconds, speeds = zip(*rows, strict=True) if rows else ((),) * 3
    return pa.table(
        {
            "__hw_id": pa.array(tids, pa.int64()),
            "__hw_time": pa.array([at(second) for second in seconds], TIME),
            "__hw_content": pa.array(speeds, pa.int64()),
            "tid": pa.array(tids, pa.int64()),
            "speed": pa.array(speeds, pa.int32()),
        }
    )


def batch(
    number: int,
    results: ResultSet | Mapping[str, ResultSet] | None = None,
    records: pa.Table | None = None,
    query_id: str = "q",
    **more: Any,
) -> Batch:
    """A batch of `stopped` results (or of the given sinks) and `reports` records."""
    if isinstance(results, ResultSet):
        results = {"stopped": results}
    kept = {} if records is None else {"reports": records}
    return Batch(query_id, number, at(number), results or {}, kept, **more)


def rows(table: pa.Table, *columns: str) -> list[tuple[Any, ...]]:
    """A table as tuples, of some columns if given."""
    table = table.select(columns) if columns else table
    return [tuple(row.values()) for row in table.to_pylist()]


def python(script: str, *args: object) -> subprocess.Popen[str]:
    """Another process that runs `script`, its output read line by line."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def output(script: str, *args: object) -> str:
    """What another process prints; it must succeed, and complain of nothing."""
    process = python(script, *args)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert not err, err
    return out.strip()
