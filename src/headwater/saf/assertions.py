"""The assertions table, ready for queries: its keys in DuckDB, everything else beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from headwater.saf.keys import COLUMNS, arrow, key_columns

if TYPE_CHECKING:
    from collections.abc import Iterable

WHAT = "the assertions table"


class Assertions:
    """Recorded events by their keys; an assertion that was recorded twice counts once.

    DuckDB holds the keys and the line that each has in the given table. Ids and contents, of
    whatever type, stay in that table.
    """

    def __init__(self, data: Any) -> None:
        table = arrow(data, WHAT)
        keys = key_columns(table, WHAT)
        self._ids = _optional(table, "assertion_id")
        self._contents = _optional(table, "event_content")
        self._connection = duckdb.connect()
        lines = keys.append_column("line", pa.array(range(table.num_rows), pa.int64()))
        self._connection.register("given", lines)
        # Ordered, so that a query reads only the part of the stream and the time that it needs.
        self._connection.execute(
            f"CREATE TABLE assertions AS SELECT min(line) AS line, {', '.join(COLUMNS)} "
            "FROM given GROUP BY ALL ORDER BY stream_id, timestamp, seqno"
        )
        self._connection.unregister("given")
        self.streams = frozenset(keys["stream_id"].unique().to_pylist())

    def query(self, sql: str, **tables: pa.Table) -> pa.Table:
        """The rows of one SELECT over `assertions` and the given tables."""
        with self._connection.cursor() as cursor:
            for name, table in tables.items():
                cursor.register(name, table)
            return cursor.sql(sql).to_arrow_table()

    def distinct(self, keys: pa.Table) -> pa.Table:
        """The keys, each once, in the order in which they first stand."""
        columns = ", ".join(COLUMNS)
        return self.query(
            f"SELECT {columns} FROM asked GROUP BY ALL ORDER BY min(place)", asked=_placed(keys)
        )

    def lines(self, keys: pa.Table) -> pa.ChunkedArray:
        """The line of each key, null where there is no such assertion."""
        columns = ", ".join(COLUMNS)
        return self.query(
            f"SELECT line FROM asked LEFT JOIN assertions USING ({columns}) ORDER BY place",
            asked=_placed(keys),
        )["line"]

    def ids(self, lines: pa.ChunkedArray) -> pa.ChunkedArray:
        """The assertion ids of lines, null for a null line."""
        return self._ids.take(lines)

    def contents(self, lines: pa.ChunkedArray) -> pa.ChunkedArray:
        """The contents of lines, null where none was recorded."""
        return self._contents.take(lines)

    def made_since(self, stream: int, times: Iterable[int]) -> pa.Table:
        """The events of a stream that events of these times set off, by sequence number."""
        since = pa.table({"since": pa.array(set(times), pa.int64())})
        return self.query(
            f"SELECT since, line, {', '.join(COLUMNS)} FROM assertions "
            f"JOIN asked ON timestamp - delay = since WHERE stream_id = {stream} "
            "ORDER BY since, seqno",
            asked=since,
        )


def _placed(keys: pa.Table) -> pa.Table:
    places = pa.array(range(keys.num_rows), pa.int64())
    return keys.select(COLUMNS).append_column("place", places)


def _optional(table: pa.Table, name: str) -> pa.ChunkedArray:
    if name in table.column_names:
        return table[name]
    return pa.chunked_array([pa.nulls(table.num_rows, pa.int64())])
