"""The name under which all calls of one query are known, wherever its tasks run."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import Iterator

_query: ContextVar[str | None] = ContextVar("headwater_query", default=None)

FOLDER = "headwater-service-"


@contextmanager
def one_query() -> Iterator[None]:
    """All that is lowered within belongs to one query."""
    reset = _query.set(_new())
    try:
        yield
    finally:
        _query.reset(reset)


def token() -> str:
    """The query's name, fixed when its plan is made; outside of any query a new one."""
    return _query.get() or _new()


def folder(token: str) -> Path:
    """Where the answers to a query's calls are on this host."""
    return Path(tempfile.gettempdir()) / f"{FOLDER}{token}"


def _new() -> str:
    made = uuid4().hex
    # Only the process that made the plan knows when it is done with it.
    atexit.register(_remove, folder(made), os.getpid())
    return made


def _remove(place: Path, made_by: int) -> None:
    if os.getpid() == made_by:
        shutil.rmtree(place, ignore_errors=True)
