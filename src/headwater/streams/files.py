"""Files that appear whole, and locks that end with their process."""

from __future__ import annotations

import fcntl
import json
import os
import time
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def write_whole(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Write a file that readers see complete or not at all; with `sync`, after a power cut too."""
    hidden = path.with_name(f".{path.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}")
    try:
        with hidden.open("wb") as out:
            out.write(data)
            out.flush()
            if sync:
                os.fsync(out.fileno())
        hidden.replace(path)
    finally:
        hidden.unlink(missing_ok=True)
    if sync:
        sync_folder(path.parent)


def write_json(path: Path, value: Any, *, sync: bool = True) -> None:
    """Write a value as JSON, whole."""
    data = json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n"
    write_whole(path, data, sync=sync)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder outlast a power cut."""
    number = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a file's lock, against other threads and processes; a killed holder frees it."""
    while True:
        # Opened anew each time: the lock belongs to the opening, so that threads exclude each
        # other too, and a forked child holds nothing of its parent's.
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(number, fcntl.LOCK_EX)
            if _is_at(number, path):  # not one whose folder was renamed while this waited
                yield
                return
        finally:
            os.close(number)


def _is_at(number: int, path: Path) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    return there.st_ino == os.fstat(number).st_ino


class Held:
    """A lock that is held until it is closed, or its process ends."""

    def __init__(self, number: int) -> None:
        self._number: int | None = number

    def close(self) -> None:
        """Free the lock."""
        number, self._number = self._number, None
        if number is not None:
            os.close(number)


def try_hold(path: Path, *, shared: bool = False) -> Held | None:
    """Take a lock at once, or tell that somebody else has it."""
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(number, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        return None
    return Held(number)


def hold(path: Path, patience: float, *, shared: bool = False) -> Held | None:
    """Take a lock that somebody may only be looking at: for so many seconds it is tried again."""
    until = time.monotonic() + patience
    while (held := try_hold(path, shared=shared)) is None and time.monotonic() <= until:
        time.sleep(0.01)
    return held


def is_held(path: Path) -> bool:
    """Whether somebody has a lock at this moment."""
    if not path.exists():
        return False
    held = try_hold(path)
    if held is None:
        return True
    held.close()
    return False
