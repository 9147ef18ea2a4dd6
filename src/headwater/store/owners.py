"""Who may open a store's file here and now: its owner, its local readers, a writer that waits.

DuckDB lets one process write a file, or several read it; and within one process only one kind of
opening. So a reader lets go of the file when a writer, in this process or another, asks for it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from headwater.store.embedded import EmbeddedWriter

WANTED = "writer.waiting"
_PATIENCE = 5.0


class Holder(Protocol):
    """Something that holds a store's file open and can let go of it."""

    def let_go(self) -> None:
        """Close the file; it is opened again when needed."""


IDLE = "headwater-idle"
_doors: dict[Path, threading.RLock] = {}
_owners: dict[Path, EmbeddedWriter] = {}
_holders: dict[Path, WeakSet[Holder]] = {}


def door(store: Path) -> threading.RLock:
    """What a thread of this process holds while it opens, reads or closes the store's file."""
    return _doors.setdefault(store, threading.RLock())


def find(store: Path) -> EmbeddedWriter | None:
    """The writer that owns the store, when it lives in this process."""
    return _owners.get(store)


def add(store: Path, writer: EmbeddedWriter) -> None:
    """Note that this process owns the store."""
    _owners[store] = writer


def remove(store: Path) -> None:
    """Note that this process no longer owns the store."""
    _owners.pop(store, None)


def hold(store: Path, holder: Holder) -> None:
    """Note that `holder` may hold the store's file open."""
    _holders.setdefault(store, WeakSet()).add(holder)


def let_go(store: Path) -> None:
    """Make every local reader of this process close the store's file."""
    with door(store):
        for holder in list(_holders.get(store, ())):
            holder.let_go()


@atexit.register
def _leave() -> None:
    # An owner that just ends would leave its note and an unsorted log; and a thread that still
    # holds a connection when the interpreter ends makes DuckDB complain on the terminal.
    for writer in list(_owners.values()):
        writer.abandon()
    for store in list(_holders):
        let_go(store)
    for thread in threading.enumerate():
        if thread.name == IDLE and isinstance(thread, threading.Timer):
            thread.cancel()
            thread.join()


@contextlib.contextmanager
def wanted(store: Path) -> Iterator[Callable[[], None]]:
    """A call that tells readers in other processes that a writer waits for the file."""
    note = store / WANTED

    def ask() -> None:
        with contextlib.suppress(OSError):
            note.touch()

    try:
        yield ask
    finally:
        with contextlib.suppress(OSError):
            note.unlink()


def is_wanted(store: Path) -> bool:
    """Whether a writer waits for the file; a note that nobody renews means nothing."""
    try:
        return time.time() - os.stat(f"{store}/{WANTED}").st_mtime < _PATIENCE
    except OSError:
        return False
