"""Running one SELECT, and nothing but a SELECT, on a connection of its own."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import duckdb

from headwater.errors import StoreError
from headwater.store.failures import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa


class QueryFailed(StoreError):
    """The SQL of a query could not be run."""


class Closed(Exception):
    """The database was closed meanwhile: ask whoever has it now."""


def select(cursor: duckdb.DuckDBPyConnection, sql: str, params: Sequence[object] = ()) -> pa.Table:
    """The rows of one SELECT, run in a read-only transaction; closes the cursor."""
    try:
        statements = duckdb.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise QueryFailed("only one SELECT can be asked of a store")
        cursor.execute("BEGIN TRANSACTION READ ONLY")
        relation = cursor.sql(sql, params=list(params))
        return relation.to_arrow_table()
    except (duckdb.ConnectionException, duckdb.InterruptException) as error:
        raise Closed from error
    except duckdb.Error as error:
        raise QueryFailed(one_line(error)) from error
    finally:
        with contextlib.suppress(duckdb.Error):
            cursor.close()
