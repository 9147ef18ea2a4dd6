"""Looking for files in a directory: those that are whole, and the one that ends it all."""

from __future__ import annotations

import os
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from headwater.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Container
    from pathlib import Path

SHUTDOWN = "shutdown.txt"
"""A file of this name ends a run, after what came before it."""


@dataclass(frozen=True, slots=True, order=True)
class Seen:
    """A file as it was seen; in the order in which files are taken."""

    modified: int
    """In nanoseconds since 1970."""
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Found:
    """What a look found: files that are whole, files that still grow, and the end if there is."""

    whole: tuple[Seen, ...]
    growing: tuple[Seen, ...]
    shutdown: Seen | None

    @property
    def ends(self) -> bool:
        """Whether nothing more is to come: the end is there, and all before it is whole."""
        return self.shutdown is not None and not any(self._before(each) for each in self.growing)

    @property
    def taken(self) -> tuple[Seen, ...]:
        """The whole files, in order; of those that came after the end, none."""
        return tuple(each for each in self.whole if self._before(each))

    def _before(self, seen: Seen) -> bool:
        return self.shutdown is None or seen.modified <= self.shutdown.modified


def is_ignored(name: str) -> bool:
    """Whether a name is that of a file which is not ready, or not meant.

    >>> [is_ignored(name) for name in ("a.txt", "_SUCCESS", ".a.txt.crc", "a.txt.tmp")]
    [False, True, True, True]
    """
    return name.startswith((".", "_")) or name.endswith(".tmp") or name == SHUTDOWN


class Scanner:
    """Looks at a directory again and again; a file is whole once it stays as it is.

    It is so if it has not been modified for `settle` seconds, or is as it was at a look at least as
    long ago, for files whose times say nothing.
    """

    def __init__(self, folder: Path, pattern: str, settle: float) -> None:
        self._folder, self._pattern, self._settle = folder, pattern, round(settle * 1e9)
        self._watched: dict[str, tuple[Seen, int]] = {}

    def look(self, known: Container[str], now: int) -> Found:
        """The files that are not known yet, at a time in nanoseconds."""
        whole: list[Seen] = []
        growing: list[Seen] = []
        watched = {}
        shutdown = None
        for seen in self._list():
            if seen.name == SHUTDOWN:
                shutdown = seen
            if seen.name in known or is_ignored(seen.name):
                continue
            if not fnmatchcase(seen.name, self._pattern):
                continue
            before, since = self._watched.get(seen.name, (None, now))
            if before != seen:
                since = now
            watched[seen.name] = (seen, since)
            still = max(now - seen.modified, now - since)
            (whole if still >= self._settle else growing).append(seen)
        self._watched = watched
        return Found(tuple(sorted(whole)), tuple(sorted(growing)), shutdown)

    def _list(self) -> list[Seen]:
        try:
            with os.scandir(self._folder) as entries:
                return [seen for entry in entries if (seen := _seen(entry)) is not None]
        except OSError as error:
            raise RunError(
                f"{self._folder} can't be read ({error.strerror}); give a directory of files"
            ) from error


def seen_at(path: Path) -> Seen | None:
    """A file as it is now; None if it is gone."""
    try:
        found = path.stat()
    except OSError:
        return None
    return Seen(found.st_mtime_ns, path.name, found.st_size)


def _seen(entry: os.DirEntry[str]) -> Seen | None:
    """A regular file; what is removed meanwhile is none."""
    try:
        if not entry.is_file():
            return None
        found = entry.stat()
    except FileNotFoundError:
        return None
    return Seen(found.st_mtime_ns, entry.name, found.st_size)
