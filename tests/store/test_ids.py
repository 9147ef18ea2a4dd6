"""Ids from the user's own values: Spark's hash, and places in files."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headwater.errors import UnknownId
from headwater.store.catalog import Source
from headwater.store.ids import identity_hash, resolved, xxhash64

VALUES: dict[str, list[Any]] = {
    "tinyint": [0, -1, 127, None],
    "smallint": [0, -32768, 7, None],
    "int": [0, -1, 2**31 - 1, -(2**31), None],
    "bigint": [0, -1, 2**63 - 1, -(2**63), None],
    "boolean": [True, False, None],
    "string": ["", "a", "abc", "ä€😀", "x" * 100, None],
    "binary": [b"", b"\x00\xff", b"x" * 40, None],
    "date": [date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29), None],
    "timestamp": [
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(2024, 5, 1, 12, 30, 1, 123456, tzinfo=UTC),
        None,
    ],
    "timestamp_ntz": [datetime(2024, 5, 1, 12, 30, 1, 123456), None],
    "double": [0.0, -0.0, 1.5, -1e300, float("inf"), float("nan"), None],
    "float": [0.0, -0.0, 1.5, float("-inf"), float("nan"), None],
    "decimal(10,2)": [Decimal("0.00"), Decimal("-12.34"), Decimal("99999999.99"), None],
    "decimal(38,3)": [Decimal("0.000"), Decimal("-1.280"), Decimal("12345678901234567890.125")],
}


@pytest.mark.spark
def test_the_hash_is_spark_s(spark: SparkSession) -> None:
    for kind, values in VALUES.items():
        frame = spark.createDataFrame([(value,) for value in values], f"v {kind}")
        hashes = [row[0] for row in frame.select(F.xxhash64("v")).collect()]
        assert [xxhash64([value], [kind]) for value in values] == hashes, kind


@pytest.mark.spark
def test_several_columns_are_chained_as_in_spark(spark: SparkSession) -> None:
    types = list(VALUES)
    rows = [tuple(VALUES[kind][place % len(VALUES[kind])] for kind in types) for place in range(7)]
    ddl = ", ".join(f"c{place} {kind}" for place, kind in enumerate(types))
    frame = spark.createDataFrame(rows, ddl)
    hashes = [row[0] for row in frame.select(F.xxhash64(*frame.columns)).collect()]
    assert [xxhash64(row, types) for row in rows] == hashes


def a_source(kind: str, *columns: str) -> Source:
    names, types = zip(*(column.split() for column in columns), strict=True)
    key = {"kind": kind, "columns": list(names), "types": list(types)}
    return Source(1, "traffic", "reports", {"id": key}, pa.schema([]))


def no_query(*_: object) -> pa.Table:
    raise AssertionError("no lookup is needed")


def test_values_stand_for_their_hash() -> None:
    by_name = a_source("hash", "name string")
    assert resolved(by_name, "anna", no_query) == identity_hash(["anna"], ["string"])
    assert resolved(by_name, ("anna",), no_query) == identity_hash(["anna"], ["string"])
    assert resolved(by_name, 5, no_query) == 5, "a whole number is the id itself"
    two = a_source("hash", "name string", "n int")
    assert resolved(two, ("anna", 3), no_query) == identity_hash(["anna", 3], ["string", "int"])
    assert identity_hash([None, 5], ["int", "int"]) != identity_hash([5, None], ["int", "int"])
    assert resolved(two, ("anna", None), no_query) == identity_hash(
        ["anna", None], ["string", "int"]
    )


def test_times_and_numbers_may_be_text() -> None:
    moment = datetime(2024, 5, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    at = a_source("hash", "at timestamp", "day date", "n bigint", "price decimal(9,2)")
    asked = (moment, date(2024, 5, 1), 3, Decimal("1.5"))
    text = ("2024-05-01T12:00:00Z", "2024-05-01", "3", "1.50")
    assert resolved(at, asked, no_query) == resolved(at, text, no_query)


def test_an_integer_column_is_the_id() -> None:
    by_tid = a_source("column", "tid bigint")
    for given in (7, "7", (7,)):
        assert resolved(by_tid, given, no_query) == 7


@pytest.mark.parametrize(
    ("source", "given", "message"),
    [
        (a_source("column", "tid bigint"), "x", "'x' can't be an id of source 'reports'"),
        (a_source("column", "tid bigint"), 2**63, "can't be an id"),
        (a_source("column", "tid bigint"), None, "can't be an id"),
        (a_source("column", "tid bigint"), 1.5, "can't be an id"),
        (a_source("hash", "a string", "b int"), "x", "has 2 values (a, b), not 1"),
        (a_source("hash", "a string", "b int"), ("x", "y"), "can't be an id of source 'reports'"),
        (a_source("hash", "a string", "b int"), ("x", 2**31), "can't be an id"),
        (a_source("hash", "a date"), "yesterday", "can't be an id"),
        (a_source("hash", "a decimal(4,1)"), "1.25", "more than 1 decimal places"),
    ],
)
def test_values_that_are_no_id(source: Source, given: object, message: str) -> None:
    with pytest.raises(UnknownId) as error:
        resolved(source, given, no_query)
    assert message in str(error.value)


@pytest.fixture
def files() -> Any:
    known = pa.table(
        {"file_key": [3, 4, 5], "path": ["/d/a.parquet", "/d/b.parquet", "/e/b.parquet"]}
    )

    return lambda sql, params: known


def test_places_in_files(files: Any) -> None:
    source = a_source("position", "file string")
    assert resolved(source, ("a.parquet", 9), files) == 3 << 32 | 9
    assert resolved(source, ("/e/b.parquet", 0), files) == 5 << 32
    assert resolved(source, ("e/b.parquet", 0), files) == 5 << 32
    assert resolved(source, 3 << 32 | 9, files) == 3 << 32 | 9
    for wrong, message in [
        (("c.parquet", 0), "has no file 'c.parquet'"),
        (("b.parquet", 0), "has 2 files 'b.parquet'; give its full path"),
        (("a.parquet", -1), "has no row -1"),
    ]:
        with pytest.raises(UnknownId, match=message):
            resolved(source, wrong, files)


def test_the_path_of_files(tmp_path: Path) -> None:
    from headwater.store.files import local

    assert local("file:///data/a%20b.parquet") == "/data/a b.parquet"
    assert local(str(tmp_path)) == str(tmp_path)
