"""A job's directory as a streaming source of Spark's, read in byte ranges by its workers.

Spark's own file sources take a file as a whole, in one batch and as rows. Here a batch is so many
bytes, of one file or of many, and a task reads its range in one go.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)

from headwater.reduce.intake import ROWS, Intake
from headwater.reduce.listing import Listing, Position
from headwater.reduce.ranges import MOST, Range

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

_LEAST = 1 << 20
"""Bytes below which another task is not worth its start."""


class Part(InputPartition):
    """Ranges for one task, with their numbers among all of the batch."""

    def __init__(self, numbered: list[tuple[int, Range]]) -> None:
        self.numbered = numbered


class Files(DataSource):
    """The source; its options say where, and how elements become blocks."""

    @classmethod
    def name(cls) -> str:
        """What Spark calls it."""
        return "headwater-prov"

    def schema(self) -> str:
        """The rows that local reducers get."""
        return ROWS

    def streamReader(self, schema: object) -> DataSourceStreamReader:
        """The reader of a query."""
        return _FilesReader(self.options)


def options(directory: str, log: str, intake: Intake, most: int, tasks: int) -> dict[str, str]:
    """The options of the source: batches of so many bytes at most, for so many tasks at a time."""
    return {
        "path": directory,
        "log": log,
        "intake": json.dumps(asdict(intake)),
        "bytes": str(most),
        "tasks": str(tasks),
    }


def numbered_ranges(
    listing: Listing, start: Position, end: Position, tasks: int
) -> list[tuple[int, Range]]:
    """The ranges of a batch, numbered in order, none larger than a task's share."""
    whole = list(listing.between(start, end))
    total = sum(part.end - part.start for part in whole)
    most = min(MOST, max(_LEAST, -(-total // tasks)))
    return list(enumerate(piece for part in whole for piece in part.pieces(most)))


def shared(ranges: list[tuple[int, Range]], tasks: int) -> Iterator[list[tuple[int, Range]]]:
    """Ranges that follow each other, for one task each: small ones share a task."""
    total = sum(part.end - part.start for _, part in ranges)
    most = min(MOST, max(_LEAST, -(-total // tasks)))
    some: list[tuple[int, Range]] = []
    size = 0
    for number, part in ranges:
        length = part.end - part.start
        if some and size + length > most:
            yield some
            some, size = [], 0
        some.append((number, part))
        size += length
    if some:
        yield some


class _FilesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Any) -> None:
        self._directory, self._log = options["path"], options["log"]
        self._most = int(options["bytes"])
        self._tasks = int(options["tasks"])
        given = json.loads(options["intake"])
        self._intake = Intake(**{**given, "keys": tuple(given["keys"])})
        self._listing: Listing | None = None
        self._last: Position | None = None

    def initialOffset(self) -> dict[str, int]:
        return asdict(Position())

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxBytes(self._most)

    def prepareForTriggerAvailableNow(self) -> None:
        self._files().look(now=True)
        self._last = self._files().end

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        files = self._files()
        if self._last is None:
            files.look()
        most = self._most
        match limit:
            case ReadMaxBytes():
                most = limit.max_bytes
            case ReadAllAvailable():
                most = 1 << 62
        return asdict(files.after(Position(**start), most, self._last or files.end))

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        first, last = Position(**start), Position(**end)
        ranges = numbered_ranges(self._files(), first, last, self._tasks)
        return [Part(some) for some in shared(ranges, self._tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Part)
        return self._intake.ranges(partition.numbered)

    def _files(self) -> Listing:
        if self._listing is None:
            self._listing = Listing(self._directory, self._log)
        return self._listing
