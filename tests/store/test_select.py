"""One SELECT, asked again and again: the rows are the same however they are put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pytest

from headwater.store.select import QueryFailed, select

if TYPE_CHECKING:
    from collections.abc import Iterator

MANY = 200
TYPES = {
    "bigint": "range - 100",
    "ubigint": "18446744073709551615 - range",
    "smallint": "(range - 100)::SMALLINT",
    "hugeint": "range::HUGEINT * 1000000000000000000000",
    "bool": "range % 2 = 0",
    "text": "'é' || range || chr(0)",
    "double": "CASE range % 4 WHEN 0 THEN 'nan' WHEN 1 THEN '-inf' ELSE range / 3 END::DOUBLE",
    "float": "(range / 3)::FLOAT",
    "decimal": "(range / 7)::DECIMAL(18, 6)",
    "timestamp": "TIMESTAMPTZ '0290-01-01' + INTERVAL (range * 40) YEAR",
    "date": "DATE '2026-01-01' + range::INTEGER",
    "list": "[range, NULL]",
    "struct": "{'a': range, 'b': 'x'}",
    "blob": "range::VARCHAR::BLOB",
}


@pytest.fixture
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET GLOBAL TimeZone = 'UTC'")
        columns = ", ".join(
            f"CASE WHEN range % 5 <> 3 THEN {sql} END AS {name}" for name, sql in TYPES.items()
        )
        connection.execute(f"CREATE TABLE t AS SELECT range AS no, {columns} FROM range({MANY})")
        yield connection


@pytest.mark.parametrize("column", TYPES)
@pytest.mark.parametrize("rows", [0, 1, 63, 64, 65, MANY])
def test_rows_are_the_same_at_first_and_again(
    database: duckdb.DuckDBPyConnection, column: str, rows: int
) -> None:
    sql = f"SELECT no, {column} FROM t WHERE no < ? ORDER BY no"
    expected = database.sql(sql.replace("?", str(rows))).to_arrow_table()
    for _ in range(3):
        found = select(database.cursor(), sql, [rows])
        assert found.schema == expected.schema
        assert repr(found.to_pylist()) == repr(expected.to_pylist())  # NaN is like NaN


def test_a_column_that_changed_its_type_is_noticed(database: duckdb.DuckDBPyConnection) -> None:
    sql = "SELECT smallint FROM t WHERE no = ?"
    assert [select(database.cursor(), sql, [1]).schema[0].type for _ in range(2)] == [
        pa.int16(),
        pa.int16(),
    ]
    database.execute("ALTER TABLE t ALTER smallint TYPE VARCHAR")
    assert select(database.cursor(), sql, [1])["smallint"].to_pylist() == ["-99"]


@pytest.mark.parametrize("sql", ["DROP TABLE t", "SELECT 1; SELECT 2", "", "COPY t TO 'x'"])
def test_anything_else_is_refused_every_time(database: duckdb.DuckDBPyConnection, sql: str) -> None:
    for _ in range(2):
        with pytest.raises(QueryFailed, match="only one SELECT"):
            select(database.cursor(), sql, [1])
