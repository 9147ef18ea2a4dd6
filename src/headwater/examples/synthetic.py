"""A synthetic flow: results that come from so many records, so many of them shared with the next.

Each key has one record a second. A window over `size` seconds has `size` records of a key, and
shares `overlap` percent of them with the key's next window. What size and overlap cost can so be
measured without anything else changing, as in Ananke's Figure 16; more keys are more work at once.

The records don't depend on size and overlap: flows of any size and overlap can run over one folder.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     [file.name for file in generate(folder, results=100, size=10, overlap=50, files=2)]
['records-00000.parquet', 'records-00001.parquet']
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.errors import HeadwaterError
from headwater.examples import stream
from headwater.examples.stream import SECOND, START, TIMESTAMP

if TYPE_CHECKING:
    import os
    from collections.abc import Collection
    from pathlib import Path

    from headwater import Flow, Frame
    from headwater.examples.stream import Ints

SCHEMA = "id bigint, ts timestamp, key int, value bigint"
"""The records' columns, for Spark."""

SOURCE = "records"
SINKS = ("windows",)

SIZE = 50
OVERLAP = 25
KEYS = 8

_ARROW = pa.schema(
    [("id", pa.int64()), ("ts", TIMESTAMP), ("key", pa.int32()), ("value", pa.int64())]
)


def generate(
    path: str | os.PathLike[str],
    records: int = 60_000,
    *,
    results: int | None = None,
    size: int = SIZE,
    overlap: int = OVERLAP,
    keys: int = KEYS,
    files: int = 32,
    seed: int = 7,
    disorder: int = 0,
) -> list[Path]:
    """Writes `records` records of `keys` keys into the folder `path` as `files` files.

    With `results`, as many records as it takes for at least so many results of the flow with this
    `size` and `overlap`, and for less than one more for each key; `records` then has no meaning.
    With `disorder` a record arrives up to that many seconds after its time (a watermark of as many
    seconds keeps every record, but the last windows then stay open).
    """
    if keys < 1:
        raise HeadwaterError(f"keys={keys} is not a number of keys")
    if results is not None:
        records = records_for(results, size, overlap, keys)
    stream.require(SOURCE, records, files, disorder)
    made = _Keys(keys, seed)
    times = made.times(np.arange(records, dtype=np.int64))
    order = stream.arrivals(times, disorder, seed)
    return stream.write(path, SOURCE, order, files, made.records)


def records_for(results: int, size: int = SIZE, overlap: int = OVERLAP, keys: int = KEYS) -> int:
    """How many records it takes for so many results, rounded up to as many for each key.

    The last record begins the second in which the last window is complete.

    >>> records_for(results=2, size=10, overlap=50, keys=1)
    16
    """
    if results < 1:
        raise HeadwaterError(f"results={results} is not a number of results")
    windows = -(-results // keys)
    return keys * (size + (windows - 1) * slide(size, overlap)) + 1


def slide(size: int, overlap: int) -> int:
    """The seconds from window to window: `size` without the share that is in both.

    >>> slide(50, 25), slide(100, 90)
    (38, 10)
    """
    if size < 1:
        raise HeadwaterError(f"size={size} is not a number of records")
    if not 0 <= overlap < 100:
        raise HeadwaterError(f"overlap={overlap} is not a percentage from 0 to 99")
    return max(1, size - size * overlap // 100)


def sinks(
    flow: Flow,
    path: str | os.PathLike[str],
    *,
    size: int = SIZE,
    overlap: int = OVERLAP,
    only: Collection[str] = SINKS,
    watermark: str = "0 seconds",
    **source: Any,
) -> None:
    """Adds the records in a folder, and a sink of windows over `size` records of a key.

    Two windows of a key in a row share `overlap` percent of their records, rounded down to a whole
    number of records.
    """
    step = slide(size, overlap)
    records = stream.source(flow, SOURCE, path, SCHEMA, {"watermark": watermark, **source})
    stream.add(flow, {"windows": lambda: _windows(records, size, step)}, only)


def _windows(records: Frame, size: int, step: int) -> Frame:
    """A row for each key and whole window; the first one begins with the stream."""
    from pyspark.sql import functions as F

    begin = f"{START % step} seconds"
    return (
        records.groupBy("key", F.window("ts", f"{size} seconds", f"{step} seconds", begin))
        .agg(F.count("*").alias("n"), F.sum("value").alias("total"))
        .filter(f"n = {size}")
    )


@dataclass(frozen=True, slots=True)
class _Keys:
    """A record of each key in every second."""

    keys: int
    seed: int

    def times(self, ids: Ints) -> Ints:
        """The records' times in microseconds since START: never falling with the id."""
        second, key = np.divmod(ids, self.keys)
        micros: Ints = second * SECOND + key * SECOND // self.keys
        return micros

    def records(self, ids: Ints) -> pa.Table:
        """The records with these ids."""
        columns = {
            "id": ids,
            "ts": self.times(ids),
            "key": ids % self.keys,
            "value": stream.noise(ids, self.seed) % 10_000,
        }
        return stream.table(columns, _ARROW)
