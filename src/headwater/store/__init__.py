"""The store: what flows wrote, in one DuckDB file, for one writer and any number of readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.store.batch import (
    Batch,
    Committed,
    FlowRegistration,
    ResultSet,
    SinkRegistration,
    SourceRegistration,
)
from headwater.store.embedded import EmbeddedWriter
from headwater.store.reader import Reader, StoreReader

if TYPE_CHECKING:
    import os

    from headwater.flow.flow import Flow
    from headwater.query import Store
    from headwater.store.reader import OpenReader

__all__ = [
    "Batch",
    "Committed",
    "EmbeddedWriter",
    "FlowRegistration",
    "Reader",
    "ResultSet",
    "SinkRegistration",
    "SourceRegistration",
    "StoreReader",
    "open",
]


def open(path: str | os.PathLike[str], flow: Flow | None = None) -> Store:  # noqa: A001
    """The store at `path`, for queries.

    `flow` is what replays run, where the copy in the store can't be used: after an upgrade of
    Spark, or when a function of the flow is in a module that is not there.
    """
    from headwater.query import Store

    return Store(open_reader(path), flow)


def open_reader(path: str | os.PathLike[str]) -> OpenReader:
    """What reads the store at `path`: a file, or a lake."""
    from headwater.store.lake.place import is_lake
    from headwater.store.lake.reader import LakeReader

    return LakeReader(path) if is_lake(path) else StoreReader(path)
