"""What the examples' oracles need, in plain Python: records as Spark reads them, and windows.

Times are microseconds after `T0` here, and seconds in what is told (`tests.support.streams`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.streams import T0, Row, Told

SECOND = 1_000_000
Sets = dict[Row, set[int]]
Item = TypeVar("Item")


def records(folder: Path) -> list[dict[str, Any]]:
    """The records of a folder, by modification time of their files; `at` is the event time."""
    files = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime)
    rows = pa.concat_tables([pq.read_table(file) for file in files]).to_pylist()
    return [{**row, "at": (row["ts"] - T0) // timedelta(microseconds=1)} for row in rows]


def around(at: int, size: int, slide: int | None = None) -> Iterator[tuple[int, int]]:
    """The windows (from, to) that a time is in; sizes are in seconds."""
    size, slide = size * SECOND, (slide or size) * SECOND
    begin = at // slide * slide
    while begin + size > at:
        yield begin, begin + size
        begin -= slide


def grouped(
    items: Iterable[Item],
    key: Callable[[Item], Hashable],
    at: Callable[[Item], int],
    size: int,
    slide: int | None = None,
) -> dict[tuple[Any, tuple[int, int]], list[Item]]:
    """The items of each key and window."""
    groups: dict[tuple[Any, tuple[int, int]], list[Item]] = defaultdict(list)
    for item in items:
        for window in around(at(item), size, slide):
            groups[key(item), window].append(item)
    return groups


def seconds(window: tuple[int, int]) -> tuple[float, float]:
    """A window as it is told."""
    return window[0] / SECOND, window[1] / SECOND


def told(source: str, expected: Sets) -> Told:
    """Rows and sets of one source as `tests.support.streams.tell` has them."""
    return sorted(((row, {source: ids}) for row, ids in expected.items()), key=repr)
