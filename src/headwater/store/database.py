"""Opening a store's DuckDB file: for its one writer, or read-only."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import duckdb

from headwater.errors import StoreError
from headwater.store import schema

if TYPE_CHECKING:
    from pathlib import Path


MEMORY = "HEADWATER_STORE_MEMORY"
"""The environment variable that bounds what a store holds in memory."""
THREADS = "HEADWATER_STORE_THREADS"
"""The one that says how many threads work on one query."""
_BLOCK = 64 << 10
"""Bytes of a block of a store that is made; DuckDB's own choice is four times as much."""


def database_path(store: Path) -> Path:
    """The DuckDB file of the store in directory `store`."""
    return store / schema.DATABASE


def connect(store: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    """A connection to the store's database, checked to be one; DuckDB's own errors pass through."""
    connection = duckdb.connect(str(database_path(store)), read_only=read_only, config=_settings())
    try:
        connection.execute("SET GLOBAL TimeZone = 'UTC'")
        if not read_only and _is_empty(connection):
            schema.create(connection)
        _check(connection, store)
    except BaseException:
        connection.close()
        raise
    return connection


def _settings() -> dict[str, str | bool | int | float | list[str]]:
    # No query, and so no predicate of a user, reaches a file beside the database. A read-only
    # opening replays the log, so the log stays short. Of each block the least and the largest
    # value are known: smaller ones let a look-up pass over more.
    return {
        "enable_external_access": "false",
        "memory_limit": _memory(),
        "checkpoint_threshold": "64MB",
        "default_block_size": _BLOCK,
        **_threads(),
    }


def _threads() -> dict[str, str | bool | int | float | list[str]]:
    """How many threads answer one query: as told in the environment, else as many as there are."""
    told = os.environ.get(THREADS)
    if told is None:
        return {}
    if re.fullmatch(r"[1-9][0-9]{0,3}", told) is None:
        raise StoreError(f"{THREADS}={told!r} is not a number of threads; write it like 2")
    return {"threads": int(told)}


def _memory() -> str:
    """What DuckDB may hold: as told in the environment, else little, as Spark wants most of it."""
    told = os.environ.get(MEMORY)
    if told is None:
        quarter = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
        return f"{min(quarter, 4 << 30) >> 20}MiB"
    if re.fullmatch(r"[1-9][0-9]*\s*[MG]i?B", told) is None:
        raise StoreError(f"{MEMORY}={told!r} is not a size; write it like 512MiB or 2GB")
    return told


def _is_empty(connection: duckdb.DuckDBPyConnection) -> bool:
    return connection.execute("SELECT count(*) FROM duckdb_tables()").fetchall() == [(0,)]


def _check(connection: duckdb.DuckDBPyConnection, store: Path) -> None:
    try:
        rows = connection.execute("SELECT value FROM meta WHERE key = 'format'").fetchall()
    except (duckdb.CatalogException, duckdb.BinderException) as error:
        raise _foreign(store) from error
    if not rows:
        raise _foreign(store)
    [(version,)] = rows
    if version != str(schema.FORMAT):
        raise StoreError(
            f"the store {store} has format {version}, this Headwater reads format {schema.FORMAT}; "
            "use the version of Headwater that wrote it, or another store"
        )


def _foreign(store: Path) -> StoreError:
    return StoreError(
        f"{database_path(store)} is a DuckDB database but not a Headwater store; "
        "use another directory"
    )
