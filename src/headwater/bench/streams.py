"""Streams for the benchmarks: pure functions of their size, as Parquet files in time order."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

Ints: TypeAlias = npt.NDArray[np.int64]

START = 1_735_689_600
"""The first record's time, in seconds since the epoch: 2025-01-01T00:00:00Z."""

TUPLES = "id bigint, ts timestamp, key int, value bigint, pick int"
"""Ariadne's input: small numeric columns; `pick` is uniform over 0 ... 99, to select by."""

READINGS = "id bigint, ts timestamp, sensor int, temperature int"

KEYED = "id bigint, ts timestamp, k int, v int"
"""Events of so many keys: each key has about one a second."""

EVENTS = "id bigint, ts timestamp, payload binary"

SENSORS = 4
"""Sensors of each stream of readings."""


def tuples(folder: Path, records: int, per_second: int, files: int) -> Path:
    """Writes tuples of which so many have a time within the same second, evenly spaced."""

    def columns(ids: Ints) -> dict[str, pa.Array]:
        noise = _noise(ids)
        return {
            "ts": _times(ids, per_second),
            "key": pa.array((noise >> 16) % 64, pa.int32()),
            "value": pa.array((noise >> 24) % 10_000),
            "pick": pa.array((noise >> 40) % 100, pa.int32()),
        }

    return _write(folder, records, files, columns)


def readings(folder: Path, records: int, files: int, first_sensor: int) -> Path:
    """Writes a reading of each of `SENSORS` sensors per second; now and then one is hot."""

    def columns(ids: Ints) -> dict[str, pa.Array]:
        second, sensor = np.divmod(ids, SENSORS)
        noise = _noise(ids * 2 * SENSORS + first_sensor)
        outlier = noise % 50 == 0
        warm = np.where(second % 60 < 20, 85, 20) + (noise >> 16) % 20
        return {
            "ts": _times(second, 1),
            "sensor": pa.array(sensor + first_sensor, pa.int32()),
            "temperature": pa.array(np.where(outlier, 400, warm), pa.int32()),
        }

    return _write(folder, records, files, columns)


def keyed(
    folder: Path,
    records: int,
    keys: int,
    files: int,
    first: int = 0,
    per_second: int | None = None,
) -> Path:
    """Writes events of so many keys, in random order of the keys.

    Unless told how many fall into a second, each key has about one.
    """

    def columns(ids: Ints) -> dict[str, pa.Array]:
        noise = _noise(ids + first)
        return {
            "ts": _times(ids, per_second or keys),
            "k": pa.array((noise >> 16) % keys, pa.int32()),
            "v": pa.array((noise >> 40) % 1_000, pa.int32()),
        }

    return _write(folder, records, files, columns)


def events(folder: Path, records: int, payload: int, files: int) -> Path:
    """Writes events with so many bytes of content that no compression can shorten."""

    def columns(ids: Ints) -> dict[str, pa.Array]:
        return {"ts": _times(ids, 1_000), "payload": contents(ids, payload)}

    return _write(folder, records, files, columns)


def contents(ids: Ints, payload: int, step: int = 0) -> pa.Array:
    """The contents of these events after so many steps, each of which rotates them by a byte."""
    first = int(ids[0]) if len(ids) else 0
    random = np.random.default_rng((7, first)).bytes(len(ids) * payload)
    rows = np.frombuffer(random, np.uint8).reshape(len(ids), payload)
    turned = np.roll(rows, -step, axis=1).tobytes()
    return pa.Array.from_buffers(pa.binary(payload), len(ids), [None, pa.py_buffer(turned)]).cast(
        pa.binary()
    )


def _noise(ids: Ints) -> Ints:
    """A number for each id that looks random (splitmix64), without its sign."""
    with np.errstate(over="ignore"):
        bits = ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(7)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits = (bits ^ (bits >> np.uint64(31))) >> np.uint64(1)
    return bits.astype(np.int64)


def _times(ids: Ints, per_second: int) -> pa.Array:
    micros = START * 1_000_000 + ids * 1_000_000 // per_second
    return pa.array(micros.astype("datetime64[us]"), pa.timestamp("us", tz="UTC"))


def _write(
    folder: Path, records: int, files: int, columns: Callable[[Ints], Mapping[str, pa.Array]]
) -> Path:
    """Writes the records' columns by id; Spark reads files by modification time: a second apart."""
    folder.mkdir(parents=True)
    bounds = np.linspace(0, records, min(files, records) + 1).astype(np.int64)
    for number, (low, high) in enumerate(itertools.pairwise(bounds)):
        ids = np.arange(low, high, dtype=np.int64)
        target = folder / f"part-{number:05d}.parquet"
        pq.write_table(pa.table({"id": pa.array(ids), **columns(ids)}), target)
        os.utime(target, (START + number, START + number))
    return folder
