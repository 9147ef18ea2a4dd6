"""A lake's beginning and its one writer: tables made once, a lock that one process holds."""

from __future__ import annotations

import contextlib
import fcntl
from typing import IO, TYPE_CHECKING

from headwater.errors import StoreError
from headwater.store.lake.place import OWN, Place
from headwater.store.lake.tables import (
    CATALOG,
    CHANGED,
    GROWING,
    LARGE,
    SETS,
    Table,
    columns_of,
    in_memory,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


class LakeBusy(StoreError):
    """Another process writes to the lake."""


def make_tables(place: Place) -> None:
    """Make the tables of a lake, all but `meta`, by which it is known to be one."""
    for name in (*GROWING, *LARGE, *CHANGED, SETS, *CATALOG[1:]):
        Table(place, name, columns_of(name)).make()


def make(place: Place) -> None:
    """Make a lake where there is none."""
    make_tables(place)
    meta = Table(place, "meta", columns_of("meta"))
    if meta.exists:
        return
    with in_memory() as memory:
        meta.replace(memory.sql("SELECT * FROM meta").to_arrow_table())


@contextlib.contextmanager
def holding(place: Place) -> Iterator[None]:
    """Keep others from writing meanwhile."""
    held = hold(place)
    try:
        yield
    finally:
        if held is not None:
            held.close()


def hold(place: Place) -> IO[bytes] | None:
    """Keep other processes from writing; of a lake elsewhere, its users see to that."""
    if not place.is_local:
        return None
    folder = place.path / OWN
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = (folder / "writer").open("ab")
    except OSError as error:
        raise StoreError(f"the lake {place} can't be written: {error.strerror}") from error
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        held.close()
        raise LakeBusy(
            f"another process writes to the lake {place}; run its flows there, or wait for it"
        ) from error
    return held
