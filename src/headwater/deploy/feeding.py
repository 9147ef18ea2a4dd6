"""Feeding a query: the files of a stream from one place to another, in a folder of its own.

Spark reads whatever is in a folder. Each query has its own folder per stream, into which the
stream's files are linked one after another: so it begins and ends where it is told, keeps what
provenance needs after the stream has expired, and no event is copied.
"""

from __future__ import annotations

import errno
import os
import shutil
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from headwater.errors import RunError
from headwater.streams.declaration import load
from headwater.streams.parquet import ParquetLog
from headwater.streams.positions import Position

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.streams import Streams


class Feeder:
    """Links the files of a stream into a query's folder, from a position on."""

    def __init__(self, streams: Streams, stream: str, folder: Path, start: int) -> None:
        log = streams.log(stream)
        if not isinstance(log, ParquetLog):
            raise RunError(f"stream {stream!r} is not kept in files; only those can be deployed on")
        self.stream, self.start = stream, start
        self.until: int | None = None
        """Where to end, if anywhere."""
        self._log, self._folder = log, folder
        self._where, self._declared = streams.path(stream), streams.declaration(stream)
        folder.mkdir(parents=True, exist_ok=True)
        there = sorted(name for name in os.listdir(folder) if name.endswith(".parquet"))
        self.position = int(log.after(there[-1:])) if there else start
        """All before is in the folder."""

    @property
    def end(self) -> int:
        """The end of the stream."""
        return int(self._log.bounds()[1])

    def feed(self) -> int:
        """Link what is new; how many events that are. Raises if the stream was removed."""
        load(self._where, self._declared)
        end = self.end if self.until is None else min(self.until, self.end)
        before = self.position
        if end <= before:
            return 0
        self._log.after(())  # takes in what the index has since
        for file in self._log.files(Position.of(before), Position.of(end)):
            _link(file, self._folder / file.name)
            self.position = int(self._log.after([file.name]))
        return self.position - before

    def after(self, file: str) -> int:
        """The position after a file of the stream."""
        return int(self._log.after([file]))


def first_since(streams: Streams, stream: str, start: int, time: str, since: int) -> int:
    """The position of the first file with an event at a time (µs) or later, or the end."""
    log = streams.log(stream)
    assert isinstance(log, ParquetLog)
    end = log.bounds()[1]
    log.after(())  # takes in the index
    for file in log.files(Position.of(start), end):
        latest = _latest(file, time)
        if latest is None or latest >= since:
            return int(file.name.removesuffix(".parquet"))
    return int(end)


def latest_time(folder: Path, time: str) -> int | None:
    """The latest time (µs) of the events in a query's folder."""
    found = [_latest(file, time) for file in folder.glob("*.parquet")]
    return max((each for each in found if each is not None), default=None)


def _latest(file: Path, time: str) -> int | None:
    """The latest time of the events in a file, by its footer; None where that does not tell."""
    metadata = pq.read_metadata(file)
    # Footers number the leaves: a column of arrays has one under another name.
    paths = [metadata.schema.column(each).path for each in range(metadata.num_columns)]
    place = paths.index(time)
    found = [
        _micros(metadata.row_group(group).column(place).statistics)
        for group in range(metadata.num_row_groups)
    ]
    known = [each for each in found if each is not None]
    return max(known) if known and len(known) == len(found) else None


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except FileExistsError:
        return
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK):
            raise
        hidden = target.with_name(f".{target.name}")
        shutil.copy2(source, hidden)  # with its time, by which Spark orders files
        hidden.replace(target)


def _micros(statistics: object) -> int | None:
    latest = getattr(statistics, "max", None)
    if not isinstance(latest, datetime):
        return None
    moment = latest if latest.tzinfo is not None else latest.replace(tzinfo=UTC)
    return (moment - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)
