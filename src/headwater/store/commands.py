"""Changes of a store from any process: made by its owner, or here where it has none."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from headwater.errors import StoreError
from headwater.store import owners
from headwater.store.embedded import EmbeddedWriter
from headwater.store.failures import is_locked
from headwater.store.lake.place import OWN, lake_at
from headwater.store.select import Closed
from headwater.store.serving import FlightReader, Gone

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.store.lake.place import Place
    from headwater.store.marks import Change

_PATIENCE = 30.0
_MOMENT = 3.0
"""Seconds to wait for the file before looking again whether somebody owns the store by now."""


def apply(store: Path, change: Change) -> int:
    """Mark, unmark or erase records of the store; the answer of the change."""
    if (place := lake_at(store)) is not None:
        return _on_lake(place, change)
    deadline = time.monotonic() + _PATIENCE
    while True:
        if (owner := owners.find(store)) is not None:
            with contextlib.suppress(Closed):
                return owner.apply(change)
        with contextlib.suppress(Gone):
            return _through_owner(store, change)
        try:
            with EmbeddedWriter.open(store, wait=_MOMENT) as writer:
                return writer.apply(change)
        except Closed:
            continue
        except StoreError as error:
            # Another process may have begun to own it meanwhile.
            cause = error.__cause__
            if cause is None or not is_locked(cause) or time.monotonic() >= deadline:
                raise


def _on_lake(place: Place, change: Change) -> int:
    """The same on a lake: by the process that writes it, or here if there is none."""
    from headwater.store.lake.owning import LakeBusy
    from headwater.store.lake.writer import LakeWriter

    deadline = time.monotonic() + _PATIENCE
    while True:
        with contextlib.suppress(Gone):
            if place.is_local and not LakeWriter.is_open(place):
                return _through_owner(place.path / OWN, change)
        try:
            with LakeWriter.open(str(place)) as writer:
                return writer.apply(change)
        except (Closed, LakeBusy):
            if time.monotonic() >= deadline:
                raise
        time.sleep(0.05)


def _through_owner(store: Path, change: Change) -> int:
    with contextlib.closing(FlightReader(store)) as owner:
        return owner.apply(change)
