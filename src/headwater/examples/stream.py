"""What the examples share: records by id, in the order of their arrival, as files; sources, sinks.

>>> import numpy as np
>>> times = np.arange(5) * 1_000_000
>>> sorted(arrivals(times, disorder=3, seed=7).tolist())
[0, 1, 2, 3, 4]
>>> noise(np.arange(3), seed=7) % 100
array([ 2, 43,  2])
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from headwater import Flow, Frame

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]

START = 1_735_689_600
"""The first record's time, in seconds since the epoch: 2025-01-01T00:00:00Z."""

SECOND = 1_000_000
"""In microseconds, as all times of records."""

TIMESTAMP = pa.timestamp("us", tz="UTC")


def require(name: str, records: int, files: int, disorder: float = 0, **shares: float) -> None:
    """Refuses parameters of which no stream can be made."""
    if records < 1 or not 1 <= files <= records:
        raise HeadwaterError(
            f"can't write {records} {name} to {files} files: there must be at least one in each"
        )
    for parameter, share in shares.items():
        if not 0 <= share <= 1:
            raise HeadwaterError(f"{parameter}={share} is not a share between 0 and 1")
    if disorder < 0:
        raise HeadwaterError(f"disorder={disorder} is not a number of seconds")


def arrivals(times: Ints, disorder: float, seed: int) -> Ints:
    """The ids in the order in which they arrive, up to so many seconds after their times."""
    if disorder == 0:
        return np.arange(len(times), dtype=np.int64)
    delay = np.random.default_rng((seed, 1)).uniform(0, disorder * SECOND, len(times))
    return np.argsort(times + delay, kind="stable")


def noise(ids: Ints, seed: int) -> Ints:
    """A number for each id that looks random (splitmix64), never negative."""
    with np.errstate(over="ignore"):
        bits = ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits = (bits ^ (bits >> np.uint64(31))) >> np.uint64(1)
    return bits.astype(np.int64)


def table(columns: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """The columns of a table; the event time is given in microseconds since START."""
    return pa.table([_column(columns[field.name], field.type) for field in schema], schema=schema)


def _column(values: Any, type: Any) -> Any:
    if isinstance(values, pa.Array):
        return values
    if pa.types.is_timestamp(type):
        return pa.array((START * SECOND + values).astype("datetime64[us]"), type)
    return pa.array(values.astype(type.to_pandas_dtype()))


def write(
    path: str | os.PathLike[str],
    name: str,
    ids: Ints,
    files: int,
    records: Callable[[Ints], pa.Table],
    format: str = "parquet",
) -> list[Path]:
    """Writes the records with these ids, in this order, into a new folder.

    Spark reads files in the order of their modification times, so these are a second apart.
    """
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise HeadwaterError(f"{folder} is not empty: generate {name} into a new folder")
    bounds = np.linspace(0, len(ids), files + 1).astype(np.int64)
    written = []
    for number in range(files):
        target = folder / f"{name}-{number:05d}.{format}"
        _write(records(ids[bounds[number] : bounds[number + 1]]), target, format, START + number)
        written.append(target)
    return written


def _write(records: pa.Table, target: Path, format: str, mtime: int) -> None:
    """Writes a file under a name that Spark overlooks, then renames it: it appears complete."""
    hidden = target.with_name(f".{target.name}.writing")
    if format == "parquet":
        import pyarrow.parquet

        pyarrow.parquet.write_table(records, hidden)
    else:
        import pyarrow.csv

        seconds = records.column("ts").cast(pa.timestamp("s", tz="UTC"))
        records = records.set_column(1, "ts", seconds)
        pyarrow.csv.write_csv(
            records, hidden, pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
        )
    os.utime(hidden, (mtime, mtime))
    hidden.replace(target)


def source(
    flow: Flow,
    name: str,
    path: str | os.PathLike[str],
    schema: str,
    more: Mapping[str, Any],
) -> Frame:
    """The source over a generated folder; the schema's first column is the id."""
    settings = {
        "format": "parquet",
        "path": os.fspath(path),
        "schema": schema,
        "event_time": "ts",
        "id": schema.split()[0],
    }
    return flow.source(name, **{**settings, **more})


def add(flow: Flow, frames: Mapping[str, Callable[[], Frame]], only: Collection[str]) -> None:
    """Adds the sinks that are asked for, and no step that only others need."""
    unknown = [name for name in only if name not in frames]
    if unknown:
        raise HeadwaterError(f"there is no sink {unknown[0]!r}: there are {', '.join(frames)}")
    for name, frame in frames.items():
        if name in only:
            flow.sink(name, frame())
