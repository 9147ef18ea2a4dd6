"""The log as a folder of Parquet files, which Spark's file source reads as a stream.

A file is named by the number of its first event. It is written elsewhere, made safe and then
renamed, under the stream's lock: it is seen whole or not at all, and always after those before it.
Spark takes files in the order of their modification times, of which it knows the milliseconds, so
each file's is at least one later than that of the file before.
"""

from __future__ import annotations

import os
import time
import uuid
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from headwater.streams import parquet_files
from headwater.streams.declaration import load
from headwater.streams.errors import StreamError, StreamRemoved
from headwater.streams.files import locked, sync_folder, write_whole
from headwater.streams.index import Commit, Index, recent
from headwater.streams.log import Batch, Count, Counted, Receipt
from headwater.streams.log import fresh as fresh_of
from headwater.streams.positions import Position

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from headwater.streams.declaration import Declaration
    from headwater.streams.log import Entry

_STALE = 3_600.0
"""Seconds after which an unfinished file is taken to be of a process that was killed."""


class ParquetLog:
    """The events of one stream in files of its folder."""

    def __init__(self, folder: Path, declaration: Declaration) -> None:
        self._folder, self._declaration = folder, declaration
        self._options = parquet_files.Options(declaration.name, declaration.options)
        self._index = Index(folder / "_index", self._start, self._found)
        self._checked = False

    # --- writing

    def append(self, entries: Sequence[Entry]) -> list[Receipt]:
        """Add entries in this order as one file; those whose key is known add nothing."""
        try:
            return self._append(entries)
        except OSError as error:
            raise StreamError(
                f"stream {self._declaration.name!r} can't be written to {self._folder}: "
                f"{error.strerror or error}"
            ) from error

    def _append(self, entries: Sequence[Entry]) -> list[Receipt]:
        self._index.refresh()
        fresh = fresh_of(entries, self._index.knows)
        hidden = self._write(fresh)
        try:
            with self._locked():
                if load(self._folder, self._declaration).stopped:
                    raise StreamError(
                        f"stream {self._declaration.name!r} is stopped; resume it to publish"
                    )
                self._repair()
                again = fresh_of(fresh, self._index.knows)
                if len(again) < len(fresh):  # another process was faster with one of the keys
                    hidden.unlink(missing_ok=True)
                    fresh, hidden = again, self._write(again)
                start = self._index.end
                if fresh:
                    self._commit(hidden, fresh)
        finally:
            hidden.unlink(missing_ok=True)
        if self._options.sync:
            # Also without a new file: what came under the same key may be of a moment ago.
            sync_folder(self._folder)
        return _receipts(entries, fresh, start)

    def _write(self, entries: Sequence[Entry]) -> Path:
        """Write a file of the entries where no reader looks."""
        writing = self._folder / "_writing"
        hidden = writing / f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        if entries:
            try:
                parquet_files.write(hidden, entries, self._options)
            except FileNotFoundError:
                load(self._folder, self._declaration)  # says that the stream was removed
                raise
        return hidden

    def _commit(self, hidden: Path, entries: Sequence[Entry]) -> None:
        offset = self._index.end
        at = max(_now(), self._index.last_at + 1)
        os.utime(hidden, ns=(at * 1_000_000, at * 1_000_000))
        hidden.rename(self._file(offset))
        count = sum(entry.table.num_rows for entry in entries)
        keys = tuple(entry.key for entry in entries if entry.key is not None)
        self._index.record(Commit(offset, count, at, keys))

    def _repair(self) -> None:
        """Bring the index up to the files; at first also tidy up after others."""
        self._index.repair()
        if self._checked:
            return
        self._checked = True
        index = self._index
        if index.end > self._start() and not self._file(index.offsets[-1]).exists():
            index.restart()  # it outlasted a power cut that its last files did not
        for left in (self._folder / "_writing").iterdir():
            try:
                if time.time() - left.stat().st_mtime > _STALE:
                    left.unlink()
            except FileNotFoundError:
                continue

    def expire(self, before: Position) -> int:
        """Delete the files that lie wholly before a position."""
        with self._locked():
            load(self._folder, self._declaration)
            self._repair()
            start, until = self._start(), self._index.end
            if int(before) < until:
                until = self._index.offsets[self._index.holding(int(before))]
            if until <= start:
                return 0
            # Readers are told before the files go.
            write_whole(self._folder / "_start", str(until).encode())
            for file in self.files(Position.of(start), Position.of(until)):
                file.unlink(missing_ok=True)
            return until - start

    # --- reading

    def number(self, writer: str) -> int | None:
        """The last number of a writer that counts."""
        self._index.refresh()
        number = self._index.number(writer, -1)
        return None if number < 0 else number

    def bounds(self) -> tuple[Position, Position]:
        """The first position still there, and the end."""
        last, start = self._index.last(), self._start()
        return Position.of(start), Position.of(last.end if last else start)

    def at(self, moment: int) -> Position:
        """The position of the first event published at a time or later."""
        self._index.refresh()
        return Position.of(max(self._start(), self._index.first_since(moment)))

    def after(self, files: Sequence[str]) -> Position:
        """The position after these files, by their names or paths: what Spark says it has read."""
        self._index.refresh()
        end = 0
        for file in files:
            number = int(os.path.basename(file).removesuffix(".parquet"))
            end = max(end, self._index.commit(self._index.holding(number)).end)
        return Position.of(end)

    def files(self, start: Position, end: Position) -> list[Path]:
        """The files that hold the events from a position to another."""
        first, last = int(start), int(end)
        offsets = self._index.offsets
        if first >= last or not offsets:
            return []
        until = self._index.holding(last - 1) + 1
        return [self._file(offset) for offset in offsets[self._index.holding(first) : until]]

    def read(self, start: Position, end: Position | None = None) -> Iterator[Batch]:
        """The events from a position to another, a batch for each file."""
        self._index.refresh()
        at = int(start)
        until = self._index.end if end is None else min(int(end), self._index.end)
        while at < until:
            commit = self._index.commit(self._index.holding(at))
            stop = min(commit.end, until)
            table = self._table(commit.offset).slice(at - commit.offset, stop - at)
            yield Batch(Position.of(at), Position.of(stop), commit.at, table)
            at = stop

    def last(self) -> Batch | None:
        """The last event, alone."""
        commit = self._index.last()
        if commit is None or commit.end <= self._start():
            return None
        table = self._table(commit.offset, last=True)
        return Batch(Position.of(commit.end - 1), Position.of(commit.end), commit.at, table)

    def recent(self, since: int) -> list[Counted]:
        """What was published since a time, by the index alone."""
        commits = recent(self._folder / "_index", since)
        return [Counted(commit.at, commit.events) for commit in commits if commit.at >= since]

    def count(self, start: Position, end: Position) -> Count:
        """How many events lie between two positions: here they number them."""
        return Count(start.until(end))

    def size(self) -> int:
        """The bytes of the files."""
        with os.scandir(self._folder) as found:
            return sum(entry.stat().st_size for entry in found if entry.name.endswith(".parquet"))

    def _table(self, offset: int, *, last: bool = False) -> pa.Table:
        try:
            return parquet_files.read(self._file(offset), self._declaration.arrow, last=last)
        except FileNotFoundError:
            load(self._folder, self._declaration)
            start = self._start()
            raise StreamError(
                f"the events of stream {self._declaration.name!r} before position {start} have "
                f"expired; read from {start} on"
            ) from None

    def _file(self, offset: int) -> Path:
        return self._folder / f"{offset:020d}.parquet"

    def _found(self, offset: int) -> Commit | None:
        return parquet_files.commit_of(self._file(offset), offset)

    def _start(self) -> int:
        try:
            return int((self._folder / "_start").read_bytes())
        except FileNotFoundError:
            return 0

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with ExitStack() as held:
            try:
                held.enter_context(locked(self._folder / "_lock"))
            except FileNotFoundError:
                raise StreamRemoved(
                    f"stream {self._declaration.name!r} in {self._folder.parent} was removed"
                ) from None
            yield


def _now() -> int:
    return time.time_ns() // 1_000_000


def _receipts(entries: Sequence[Entry], fresh: Sequence[Entry], start: int) -> list[Receipt]:
    added = {id(entry) for entry in fresh}
    receipts = []
    for entry in entries:
        end = start + (entry.table.num_rows if id(entry) in added else 0)
        receipts.append(Receipt(Position.of(start), Position.of(end)))
        start = end
    return receipts
