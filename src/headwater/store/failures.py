"""What went wrong with a store, in one line: what, where, what to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

_ADVICE = (
    (
        r"Conflicting lock is held in .*?\(PID (\d+)",
        (
            "the store {path} is in use by another process (PID {0}); wait for it to end, "
            "or use another store"
        ),
    ),
    (
        r"Could not set lock",
        "the store {path} is in use by another process; wait for it to end, or use another store",
    ),
    (
        r"No space left|disk (?:is )?full|File too large|max_temp_directory_size",
        (
            "the disk of the store {path} is full; free some space and run again "
            "(nothing of this batch was written)"
        ),
    ),
    (
        r"not a valid DuckDB|not a DuckDB|serialized with|version number|corrupt",
        "{path} is not a Headwater store, or its database is damaged; use another directory",
    ),
    (
        r"Permission denied|Read-only file system|Operation not permitted|read-only mode",
        "can't write to the store {path}; make the directory writable or use another one",
    ),
    (
        r"Not a directory|No such file|File exists|Invalid argument",
        "can't make or open a store at {path}; give a path where a directory can be made",
    ),
    (
        r"Connection already closed|connection closed",
        "the store {path} is closed; open it again",
    ),
    (
        r"database has been invalidated",
        "the store {path} was closed by an earlier error; open it again",
    ),
)


def one_line(error: BaseException) -> str:
    """An error's message without line breaks and without DuckDB's drawing of the place."""
    text = re.split(r"\n\s*\n|\nLINE \d+:", str(error), maxsplit=1)[0]
    return " ".join(text.split())


def is_locked(error: BaseException) -> bool:
    """Whether another process holds the lock of the database."""
    return "Could not set lock" in str(error)


def explained(error: BaseException, path: Path | str, doing: str) -> StoreError:
    """The StoreError to raise from a failure while `doing` something with the store at `path`."""
    if isinstance(error, StoreError):
        return error
    text = str(error)
    for pattern, message in _ADVICE:
        if found := re.search(pattern, text, re.IGNORECASE):
            return StoreError(message.format(*found.groups(), path=path))
    return StoreError(f"{doing} failed in the store {path}: {one_line(error)}")
