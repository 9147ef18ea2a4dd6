"""The index of a log of files: which file holds which events, and the keys they came with.

A line for each commit, appended after the file has its name. It saves listing a folder of many
files and reading their footers. What a killed process did not write down is found again: the name
of a file is the number of its first event, so the file after the last one of the index is known.
"""

from __future__ import annotations

import json
import os
from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.streams.log import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

_TAIL = 1 << 16
"""Bytes of the index that are enough to tell of the last seconds, mostly."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A file of the log: its first event's number, its events, when it came, under what keys."""

    offset: int
    events: int
    at: int
    keys: tuple[Key, ...] = ()

    @property
    def end(self) -> int:
        """The number of the event after its last."""
        return self.offset + self.events

    def line(self) -> bytes:
        """As a line of the index."""
        keys = [[key.text, key.number] for key in self.keys]
        told = [self.offset, self.events, self.at, *([keys] if keys else [])]
        return json.dumps(told, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Commit | None:
        """A line of the index; None if it is damaged."""
        try:
            if line.count(b"[") == 1 and line.endswith(b"]\n"):  # without keys, as most are
                offset, events, at = map(int, line[1:-2].split(b","))
                return cls(offset, events, at)
            offset, events, at, *keys = json.loads(line)
            named = tuple(Key(text, number) for text, number in (keys[0] if keys else ()))
        except (ValueError, TypeError):
            return None
        return cls(offset, events, at, named)


class Index:
    """The commits of a log, as far as this object has looked."""

    def __init__(
        self, path: Path, start: Callable[[], int], found: Callable[[int], Commit | None]
    ) -> None:
        self._path = path
        self._start = start
        """Tells the number of the first event that has not expired."""
        self._found = found
        """Reads the commit that begins at a number from its file, if there is one."""
        self._clear()

    def _clear(self) -> None:
        self._read = 0
        self.offsets = array("q")
        self.ats = array("q")
        self.end = 0
        self._unwritten: list[Commit] = []
        """Found by their files, as the index has no line of them yet."""
        self._keys: set[str] = set()
        self._numbers: dict[str, int] = {}

    @property
    def last_at(self) -> int:
        """When the last commit came; 0 without one."""
        return self.ats[-1] if self.ats else 0

    def refresh(self) -> None:
        """Take in what has come since."""
        self._take()

    def repair(self) -> None:
        """Take in what has come since, and write down what is missing; under the log's lock."""
        self._take()
        self._write()

    def restart(self) -> None:
        """Forget the index, to make it anew from the files; under the log's lock."""
        self._path.unlink(missing_ok=True)
        self._clear()
        self.repair()

    def record(self, commit: Commit) -> None:
        """Write down a commit whose file has its name; under the log's lock, after `repair`."""
        self._add(commit)
        self._unwritten.append(commit)
        self._write()

    def knows(self, key: Key) -> bool:
        """Whether something was published under a key."""
        if key.number is None:
            return key.text in self._keys
        return self.number(key.text, -1) >= key.number

    def number(self, writer: str, default: int) -> int:
        """The last number of a writer."""
        return self._numbers.get(writer, default)

    def last(self) -> Commit | None:
        """The last commit of all, read from the end of the index if it was not read yet."""
        if self.offsets:
            self.refresh()
            return self.commit(len(self.offsets) - 1)
        known = recent(self._path, 1 << 62)
        last = known[-1] if known else None
        while found := self._found(last.end if last else self._start()):
            last = found
        return last

    def holding(self, number: int) -> int:
        """The place in `offsets` of the commit that holds an event, or would be next."""
        return max(0, bisect_right(self.offsets, number) - 1)

    def first_since(self, moment: int) -> int:
        """The number of the first event of a time or later."""
        place = bisect_left(self.ats, moment)
        return self.offsets[place] if place < len(self.offsets) else self.end

    def commit(self, place: int) -> Commit:
        """A commit by its place in `offsets`, without its keys."""
        following = self.offsets[place + 1] if place + 1 < len(self.offsets) else self.end
        return Commit(self.offsets[place], following - self.offsets[place], self.ats[place])

    def _take(self) -> None:
        """Take in new lines, then files that have none."""
        for commit in self._lines():
            self._add(commit)
            if self._unwritten:
                self._unwritten = [u for u in self._unwritten if u.offset > commit.offset]
        if not self.offsets:
            self.end = self._start()
        while found := self._found(self.end):
            self._add(found)
            self._unwritten.append(found)

    def _lines(self) -> Iterable[Commit]:
        try:
            with self._path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < self._read:
                    self._clear()  # the index was deleted and is being made anew
                file.seek(self._read)
                data = file.read()
        except FileNotFoundError:
            return
        for line in data.splitlines(keepends=True):
            commit = Commit.from_line(line) if line.endswith(b"\n") else None
            if commit is None:
                return
            self._read += len(line)
            yield commit

    def _add(self, commit: Commit) -> None:
        if commit.offset < self.end or not commit.events:
            return  # read from its file already
        self.offsets.append(commit.offset)
        self.ats.append(commit.at)
        self.end = commit.end
        for key in commit.keys:
            if key.number is None:
                self._keys.add(key.text)
            else:
                self._numbers[key.text] = max(key.number, self.number(key.text, -1))

    def _write(self) -> None:
        """Write down what has no line yet, over a line that was cut off if there is one."""
        data = b"".join(commit.line() for commit in self._unwritten)
        if self._path.exists() and self._path.stat().st_size > self._read:
            os.truncate(self._path, self._read)
        if data:
            with self._path.open("ab") as file:
                file.write(data)
            self._read += len(data)
            self._unwritten = []


def recent(path: Path, since: int) -> list[Commit]:
    """The commits since a time and at least the last one, from the end of the index only."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            length = _TAIL
            while True:
                file.seek(max(0, size - length))
                lines = file.read(length).splitlines(keepends=True)
                whole = lines if length >= size else lines[1:]
                commits = [Commit.from_line(line) for line in whole if line.endswith(b"\n")]
                known = [commit for commit in commits if commit is not None]
                if length >= size or (known and known[0].at < since):
                    return [c for c in known if c.at >= since] or known[-1:]
                length *= 8
    except FileNotFoundError:
        return []
