"""What the live graph holds while a stream runs that is far larger than memory may be.

The graph alone, in a process of its own: batches are made one after the other, so whatever grows is
the graph's, the store's or DuckDB's.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.bench.graphs import SOURCE, Feeder, Shape
from headwater.bench.meter import status
from headwater.bench.report import MIB, Row, Table
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

    from headwater.bench.harness import Progress

CAP = 128
"""MiB that DuckDB may use."""
TIMES = 10
"""The graph of the stream has so many times the bytes of the cap."""
SAMPLES = 24
SHAPE = Shape(50, 25)
GROWTH = 1.1
"""Memory counts as constant while its last quarter is within this of its second."""

# A row of each relation, uncompressed.
_VERTEX, _LABEL, _EDGE = 26, 18, 28

COLUMNS = {
    "records": ",",
    "seconds": ",.1f",
    "RSS MiB": ",.0f",
    "DuckDB MiB": ",.0f",
    "disk MiB": ",.0f",
    "alive": ",",
    "pending": ",",
    "edges": ",",
}


def records_for(cap: int, times: float = TIMES, shape: Shape = SHAPE) -> int:
    """Records whose graph has so many times the bytes of a cap in MiB.

    >>> records_for(72, times=1, shape=Shape(10, 0))
    1048576
    """
    each = _VERTEX + _LABEL + _EDGE * shape.size / shape.slide
    return int(times * cap * MIB / each)


def tables(
    *,
    cap: int = CAP,
    times: float = TIMES,
    shape: Shape = SHAPE,
    samples: int = SAMPLES,
    folder: Path | None = None,
    progress: Progress = lambda doing, done, total: None,
) -> Iterator[Table]:
    """One table: the curve of memory, and of what the graph holds, over the stream."""
    records = records_for(cap, times, shape)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="headwater-bench-", dir=folder) as name:
        for row in _measured(Path(name), cap, shape, records, samples):
            progress(f"{row['records']:,} of {records:,} records", len(rows), samples)
            rows.append(row)
    progress("done", samples, samples)
    title = (
        f"Memory, the graph alone (no Spark): {records:,} records, whose graph is {times:g} times "
        f"the {cap} MiB that DuckDB may use"
    )
    yield Table(title, COLUMNS, rows, list(notes(rows)))


def notes(rows: list[Row]) -> Iterator[str]:
    """Whether what is held stays the same: the last quarter of the stream against the second."""
    quarter = max(1, len(rows) // 4)
    for name in ("RSS MiB", "alive", "pending"):
        early, late = rows[quarter : 2 * quarter] or rows, rows[-quarter:]
        before, after = (statistics.fmean(row[name] for row in part) for part in (early, late))
        ratio = after / before if before else 1.0
        stays = "constant" if ratio <= GROWTH else "it grows"
        yield f"{name}: last quarter {ratio:.2f} times the second; {stays} (≤ {GROWTH})"
    yield f"at most {max(row['RSS MiB'] for row in rows):,.0f} MiB after a batch"


def _measured(folder: Path, cap: int, shape: Shape, records: int, samples: int) -> Iterator[Row]:
    """The rows of a run in another process, as they come."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(there, folder, cap, shape, records, samples))
    process.start()
    there.close()
    try:
        while True:
            try:
                yield here.recv()
            except EOFError:
                break
        process.join()
    finally:
        here.close()
        if process.is_alive():
            process.terminate()
            process.join()
    if process.exitcode != 0:
        raise HeadwaterError(f"the run with a cap of {cap} MiB ended with {process.exitcode}")


def _run(to: Connection, folder: Path, cap: int, shape: Shape, records: int, samples: int) -> None:
    began = time.perf_counter()
    with Feeder(shape, folder / "store", "tight") as feeder, feeder.writer.cursor() as cursor:
        cursor.execute(f"SET GLOBAL memory_limit = '{cap}MiB'")
        assert feeder.graph is not None
        source = feeder.graph.sources[SOURCE]
        seen = sent = 0
        most: dict[str, int] = {}
        for made in shape.batches():
            feeder.take(made)
            seen += len(made.ids)
            now = {
                "RSS MiB": status(os.getpid(), "VmRSS"),
                "DuckDB MiB": _one(cursor, "SELECT sum(memory_usage_bytes) FROM duckdb_memory()"),
                "alive": len(source.alive.ids),
                "pending": len(source.pending),
            }
            # Of the batches since the last sample, the most.
            most = {name: max(value, most.get(name, 0)) for name, value in now.items()}
            if seen < (sent + 1) * records / samples:
                continue
            size = sum(f.stat().st_size for f in (folder / "store").iterdir() if f.is_file())
            row = {
                "records": seen,
                "edges": feeder.fed.edges,
                "seconds": round(time.perf_counter() - began, 2),
                "disk MiB": round(size / MIB, 1),
                **{n: round(v / MIB, 1) if "MiB" in n else v for n, v in most.items()},
            }
            to.send(row)
            sent, most = sent + 1, {}
            if sent == samples:
                return


def _one(cursor: Any, sql: str) -> int:
    return int(cursor.execute(sql).fetchone()[0])
