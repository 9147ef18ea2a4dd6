"""Running one SELECT, and nothing but a SELECT, on a connection of its own."""

from __future__ import annotations

import atexit
import contextlib
import threading
import warnings
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import duckdb
import pyarrow as pa

from headwater.errors import QueryTimeout, StoreError
from headwater.store import timing
from headwater.store.failures import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

# For large answers relations are better, and there they are used.
warnings.filterwarnings("ignore", "Arrow output on a DB-API result", UserWarning)


_FEW = 64
"""So many rows are put together here faster than DuckDB makes them Arrow."""
_TEXTS = 256
"""Texts of queries that are remembered as parsed."""
_local = threading.local()


class QueryFailed(StoreError):
    """The SQL of a query could not be run."""


class Closed(Exception):
    """The database was closed meanwhile: ask whoever has it now."""


def select(
    cursor: duckdb.DuckDBPyConnection,
    sql: str,
    params: Sequence[object] = (),
    *,
    writable: bool = True,
) -> pa.Table:
    """The rows of one SELECT, run in a read-only transaction; closes the cursor.

    A database that is not `writable` needs no such transaction.
    """
    try:
        return asked(cursor, sql, params, writable=writable)
    finally:
        with contextlib.suppress(duckdb.Error):
            cursor.close()


def asked(
    cursor: duckdb.DuckDBPyConnection,
    sql: str,
    params: Sequence[object] = (),
    *,
    writable: bool = False,
) -> pa.Table:
    """The rows of one SELECT; the cursor stays open."""
    try:
        require_time()
        query = _query(sql)
        with timing.watched(cursor):
            if writable:
                cursor.execute("BEGIN TRANSACTION READ ONLY")
            if params:
                # Mostly a look-up of a few rows: a relation would be planned twice for them.
                return query.rows(cursor.execute(query.statement, list(params)))
            return cursor.sql(sql).to_arrow_table()
    except (duckdb.ConnectionException, duckdb.InterruptException) as error:
        require_time()
        raise Closed from error
    except duckdb.Error as error:
        raise QueryFailed(one_line(error)) from error


class _Query:
    """One SELECT as parsed, and what is known of its rows once it has been asked."""

    def __init__(self, statement: duckdb.Statement) -> None:
        self.statement = statement
        self._kinds: list[Any] = []
        self._schema: pa.Schema | None = None

    def rows(self, result: duckdb.DuckDBPyConnection) -> pa.Table:
        """The rows of its result.

        To have rows as Arrow, DuckDB asks itself once more, which takes as long as a look-up.
        """
        kinds = [column[:2] for column in result.description or ()]
        if self._schema is None or kinds != self._kinds:
            table: pa.Table = result.to_arrow_table()
            plain = all(_is_plain(field.type) for field in table.schema)
            self._kinds, self._schema = kinds, table.schema if plain else None
            return table
        few = result.fetchmany(_FEW)
        columns = zip(*few, strict=True) if few else [()] * len(self._schema)
        arrays = [pa.array(c, f.type) for c, f in zip(columns, self._schema, strict=True)]
        table = pa.Table.from_arrays(arrays, schema=self._schema)
        if len(few) < _FEW:
            return table
        rest: pa.Table = result.to_arrow_table()
        return pa.concat_tables([table, rest.cast(self._schema)])


class _Known(dict[str, _Query]):
    """The queries that a thread has parsed."""

    def __missing__(self, sql: str) -> _Query:
        query = _parsed(sql)
        if len(self) >= _TEXTS:
            self.clear()
        self[sql] = query
        return query

    __hash__ = object.__hash__  # type: ignore[assignment]  # by itself, not by what it holds


_all_known: WeakSet[_Known] = WeakSet()


def _query(sql: str) -> _Query:
    """The query of a text; each thread has parsed ones of its own."""
    try:
        known: _Known = _local.known
    except AttributeError:
        known = _local.known = _Known()
        _all_known.add(known)
    return known[sql]


@atexit.register
def _forget() -> None:
    # What a thread still holds when the interpreter ends, DuckDB reports as leaked.
    for known in list(_all_known):
        known.clear()


def _parsed(sql: str) -> _Query:
    statements = duckdb.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise QueryFailed("only one SELECT can be asked of a store")
    return _Query(statements[0])


def _is_plain(kind: pa.DataType) -> bool:
    """Whether Python's values are the column's, all of them."""
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_boolean(kind)
        or types.is_string(kind)
        or types.is_floating(kind)
    )


def require_time() -> None:
    """Raise `QueryTimeout` when the time that was given for queries is over."""
    left = timing.left()
    if left is not None and left <= 0:
        raise QueryTimeout(
            "the query took too long; ask for less: fewer results, a shorter time, a condition"
        )
