"""The files of a job's directory, in the order in which they were found, written down as such.

A position in the input is a place in this list and a byte, so that a batch that runs again reads
the same bytes, however many files have come since.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.reduce.ranges import How, Range, how_to_read

if TYPE_CHECKING:
    from collections.abc import Iterator

_QUIET = 5.0
"""Seconds after which a file whose last line has no end is taken as it is."""


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """All entries before `entry` are read, and of that one all before `byte`."""

    entry: int = 0
    byte: int = 0


class Listing:
    """The files found so far. What a file has grown by since is one more entry."""

    def __init__(self, directory: str, log: str) -> None:
        self._directory = directory
        self._log = Path(log)
        self._entries: list[Range] = []
        self._known: dict[str, int] = {}
        if self._log.exists():
            # A line without an end was being written when the process was killed: no position
            # points there yet, and the file is found again.
            lines = self._log.read_text().split("\n")
            for line in lines[:-1]:
                self._add(Range(*json.loads(line)))
            if lines[-1]:
                self._log.write_text("".join(f"{line}\n" for line in lines[:-1]))

    def look(self, *, now: bool = False) -> None:
        """Find new files and write them down, oldest first.

        A file that may be in the making is left for later, unless all must be taken `now`: it has
        changed a moment ago, and no end of a line says that it is whole so far.
        """
        found = []
        for entry in _files(self._directory):
            try:
                there = entry.stat()
            except FileNotFoundError:
                continue  # gone again
            known = self._known.get(entry.path, 0)
            if there.st_size > known:
                found.append((there.st_mtime, entry.path, known, there.st_size))
        new = []
        for changed, path, known, size in sorted(found):
            how, whole = _looked_at(path, size)
            fresh = time.time() - changed < _QUIET
            if (how == "lines" or not known) and (now or whole or not fresh):
                new.append(Range(path, known, size, how))
        if not new:
            return
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("a") as file:
            for part in new:
                file.write(json.dumps([part.path, part.start, part.end, part.how]) + "\n")
                self._add(part)
            file.flush()
            os.fsync(file.fileno())

    @property
    def end(self) -> Position:
        """The position after all that was found."""
        return Position(len(self._entries))

    def after(self, start: Position, most: int, end: Position) -> Position:
        """The position about so many bytes after another, at least one step, `end` at the most."""
        entry, byte = start.entry, start.byte
        while most > 0 and entry < end.entry:
            part = self._entries[entry]
            left = part.end - part.start - byte
            if part.how == "lines" and left > most:
                return min(Position(entry, byte + most), end)
            entry, byte, most = entry + 1, 0, most - left
        return min(Position(entry, byte), end)

    def between(self, start: Position, end: Position) -> Iterator[Range]:
        """The bytes between two positions, in order."""
        for n in range(start.entry, min(end.entry + 1, len(self._entries))):
            part = self._entries[n]
            first = part.start + (start.byte if n == start.entry else 0)
            last = part.start + end.byte if n == end.entry else part.end
            if first < last:
                yield Range(part.path, first, last, part.how)

    def _add(self, part: Range) -> None:
        self._entries.append(part)
        self._known[part.path] = part.end


def _files(place: str) -> Iterator[os.DirEntry[str]]:
    """The files of a directory and of those in it; a file is all there is of itself."""
    if os.path.isfile(place):
        with os.scandir(os.path.dirname(place) or ".") as there:
            yield from (entry for entry in there if entry.name == os.path.basename(place))
        return
    with os.scandir(place) as there:
        for entry in there:
            if entry.name.startswith((".", "_")):
                continue  # as Spark has it: something that is not there yet
            if entry.is_dir():
                yield from _files(entry.path)
            elif entry.is_file():
                yield entry


def _looked_at(path: str, size: int) -> tuple[How, bool]:
    """How to read a file, and whether all of it so far is surely whole."""
    try:
        how = how_to_read(path)
        if how != "lines":
            return how, False
        with open(path, "rb") as file:
            file.seek(size - 1)
            return how, file.read(1) == b"\n"
    except OSError:
        return "lines", True  # reading it will say what is wrong
