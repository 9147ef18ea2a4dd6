"""Running one SELECT, and nothing but a SELECT, on a connection of its own."""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING

import duckdb

from headwater.errors import QueryTimeout, StoreError
from headwater.store import timing
from headwater.store.failures import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa


# For large answers relations are better, and there they are used.
warnings.filterwarnings("ignore", "Arrow output on a DB-API result", UserWarning)


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
        require_time()
        statements = duckdb.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise QueryFailed("only one SELECT can be asked of a store")
        with timing.watched(cursor):
            if writable:
                cursor.execute("BEGIN TRANSACTION READ ONLY")
            if params:
                # Mostly a look-up of a few rows: a relation would be planned twice for them.
                return cursor.execute(statements[0], list(params)).to_arrow_table()
            return cursor.sql(sql).to_arrow_table()
    except (duckdb.ConnectionException, duckdb.InterruptException) as error:
        require_time()
        raise Closed from error
    except duckdb.Error as error:
        raise QueryFailed(one_line(error)) from error
    finally:
        with contextlib.suppress(duckdb.Error):
            cursor.close()


def require_time() -> None:
    """Raise `QueryTimeout` when the time that was given for queries is over."""
    left = timing.left()
    if left is not None and left <= 0:
        raise QueryTimeout(
            "the query took too long; ask for less: fewer results, a shorter time, a condition"
        )
