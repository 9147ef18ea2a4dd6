"""Feeding a query: the events of a stream from one place to another, in a folder of its own.

Spark reads whatever is in a folder. Each query has its own folder per stream, so it begins and ends
where it is told, and keeps what provenance needs after the stream has expired. The files of a
stream are linked into it one after another, and no event is copied; of a stream that is kept
elsewhere, the events are written into files as they come.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headwater.streams.declaration import load
from headwater.streams.errors import LogUnreachable
from headwater.streams.parquet import ParquetLog
from headwater.streams.positions import Position

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from headwater.streams import Batch, Log, Streams


_END = b"headwater.end"
"""In the footer of a file that was written here: the position after it."""
_AGAIN = 2.0
"""Seconds after which a stream that could not be reached is tried again."""


class Feeder:
    """Brings the events of a stream into a query's folder, from a position on."""

    def __init__(self, streams: Streams, stream: str, folder: Path, start: int) -> None:
        log = streams.log(stream)
        self.stream, self.start = stream, start
        self.until: int | None = None
        """Where to end, if anywhere."""
        self.trouble: str | None = None
        """Why the stream can't be read now, if it is to be tried again."""
        self._log, self._tried = log, 0.0
        self._lock = threading.RLock()  # asked by the host, by Spark's batches and by changes
        self._where, self._declared = streams.path(stream), streams.declaration(stream)
        folder.mkdir(parents=True, exist_ok=True)
        self._files: _Links | _Copies
        self._files = _Links(log, folder) if isinstance(log, ParquetLog) else _Copies(log, folder)
        there = sorted(name for name in os.listdir(folder) if name.endswith(".parquet"))
        self._filed = self._files.after(there[-1]) if there else start
        """The position after the last file."""
        self.position = self._filed
        """All before is in the folder."""
        self._end = self.position

    @property
    def end(self) -> int:
        """The end of the stream; where nothing is left that is an event, that of the last file."""
        with self._lock:
            end = self._reached()
            return self._filed if end <= self.position else end

    def feed(self) -> int:
        """Bring what is new; how many events that are. Raises if the stream was removed."""
        with self._lock:
            return self._feed()

    def _feed(self) -> int:
        load(self._where, self._declared)
        if self.trouble is not None and time.monotonic() - self._tried < _AGAIN:
            return 0
        try:
            self._end = int(self._log.bounds()[1])
            end = self._end if self.until is None else min(self.until, self._end)
            fed = 0
            for events, after in self._files.bring(self.position, end):
                self.position, fed = after, fed + events
                self._filed = after if events else self._filed
        except LogUnreachable as error:
            self.trouble, self._tried = str(error), time.monotonic()
            return 0
        self.trouble = None
        return fed

    def after(self, file: str) -> int:
        """The position after a file in the folder."""
        with self._lock:
            return self._files.after(file)

    def _reached(self) -> int:
        """Where the stream ends, or did when it was reached last."""
        if self.trouble is None:
            try:
                self._end = int(self._log.bounds()[1])
            except LogUnreachable as error:
                self.trouble, self._tried = str(error), time.monotonic()
        return self._end


class _Links:
    """The files of a stream, linked."""

    def __init__(self, log: ParquetLog, folder: Path) -> None:
        self._log, self._folder = log, folder

    def bring(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Link the files between two positions: how many events each has, and where it ends."""
        if end <= start:
            return
        self._log.after(())  # takes in what the index has since
        for file in self._log.files(Position.of(start), Position.of(end)):
            _link(file, self._folder / file.name)
            after = self.after(file.name)
            yield after - start, after
            start = after

    def after(self, file: str) -> int:
        return int(self._log.after([file]))


class _Copies:
    """The events of a stream that is not in files, written into files.

    Each is named by the position of its first event, and its events are at consecutive positions.
    """

    def __init__(self, log: Log, folder: Path) -> None:
        self._log, self._folder = log, folder
        self._ends: dict[str, int] = {}
        self._latest = max((f.stat().st_mtime_ns for f in folder.glob("*.parquet")), default=0)

    def bring(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Write the events between two positions: how many each file has, and where it ends."""
        if end <= start:
            return
        for batch in self._log.read(Position.of(start), Position.of(end)):
            start = int(batch.end)
            if batch.table.num_rows:
                self._write(batch)
            yield batch.table.num_rows, start

    def after(self, file: str) -> int:
        if file not in self._ends:
            metadata = pq.read_metadata(self._folder / file).metadata or {}
            self._ends[file] = int(metadata[_END])
        return self._ends[file]

    def _write(self, batch: Batch) -> None:
        """A file that is seen whole or not at all, and by Spark after those before it."""
        name = f"{int(batch.start):020d}.parquet"
        hidden = self._folder / f".{name}"
        with hidden.open("wb") as out:
            with pq.ParquetWriter(out, batch.table.schema, store_schema=False) as writer:
                writer.write_table(batch.table)
                writer.add_key_value_metadata({_END: str(batch.end).encode()})
            out.flush()
            os.fsync(out.fileno())
        # Spark orders files by the milliseconds of their times.
        self._latest = max(time.time_ns(), self._latest + 1_000_000)
        os.utime(hidden, ns=(self._latest, self._latest))
        hidden.rename(self._folder / name)
        self._ends[name] = int(batch.end)


def first_since(streams: Streams, stream: str, start: int, time: str, since: int) -> int:
    """The position of the first file with an event at a time (µs) or later, or the end."""
    log = streams.log(stream)
    end = log.bounds()[1]
    if not isinstance(log, ParquetLog):
        for batch in log.read(Position.of(start), end):
            times = batch.table.column(time)
            if len(times) and (times.null_count == len(times) or _micros_of(times) >= since):
                return int(batch.start)
        return int(end)
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


def _micros_of(times: pa.ChunkedArray) -> int:
    latest = pc.max(times)
    return int(latest.cast(pa.timestamp("us", latest.type.tz)).value)


def _micros(statistics: object) -> int | None:
    latest = getattr(statistics, "max", None)
    if not isinstance(latest, datetime):
        return None
    moment = latest if latest.tzinfo is not None else latest.replace(tzinfo=UTC)
    return (moment - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)
