"""Records read again from their source, when the store did not keep them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headwater import store as stores
from headwater.errors import IdCollision, StoreError, UnknownId
from headwater.query import Store
from headwater.store import EmbeddedWriter
from headwater.store.files import file_key
from headwater.store.ids import identity_hash
from tests.store.small import TIME, at, batch, flow, rows, sink, source, stopped

SCHEMA = pa.schema([("tid", pa.int64()), ("name", pa.string()), ("ts", TIME)])
DDL = "tid bigint, name string, ts timestamp"
DATA = [(1, "anna", at(1)), (2, "bert", at(2)), (3, None, at(3)), (4, "anna", at(4))]
BY_TID = {"kind": "column", "columns": ["tid"], "types": ["bigint"]}
BY_NAME = {"kind": "hash", "columns": ["tid", "name"], "types": ["bigint", "string"]}
BY_PLACE = {"kind": "position", "columns": []}

Opened = Callable[..., Store]


def table(data: list[tuple[Any, ...]]) -> pa.Table:
    return pa.table([pa.array(column) for column in zip(*data, strict=True)], schema=SCHEMA)


@pytest.fixture
def opened(tmp_path: Path, request: pytest.FixtureRequest) -> Opened:
    """A store whose one result, 7, stems from the given records of a source that keeps nothing."""

    def make(ids: list[int], columns: pa.Schema = SCHEMA, **definition: Any) -> Store:
        files = definition.pop("files", {})
        path = tmp_path / "store"
        given: dict[str, Any] = {
            "keep": "none",
            "format": "parquet",
            "schema": DDL,
            "event_time": "ts",
            "id": BY_TID,
        }
        given |= {"path": str(tmp_path / "data"), **definition}
        with EmbeddedWriter.open(path) as writer:
            writer.register(flow(source(columns=columns, **given), sink()))
            writer.commit(batch(0, stopped((7, 9, "a", 1, ids)), files={"reports": files}))
        store = stores.open(path)
        request.addfinalizer(store.close)
        return store

    return make


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.mkdir()
    return path


def two_files(data: Path) -> None:
    pq.write_table(table(DATA[:2]), data / "a.parquet")
    pq.write_table(table(DATA[2:]), data / "b.parquet")
    (data / "_SUCCESS").touch()
    (data / ".hidden.parquet").write_text("not parquet")


def test_parquet_by_its_id_column(data: Path, opened: Opened) -> None:
    two_files(data)
    store = opened([1, 3])
    found = store.backward("stopped", 7)
    assert found.column_names == ["source", "id", "event_time", "tid", "name", "ts"]
    assert found.schema.field("ts").type == TIME
    assert rows(found) == [
        ("reports", 1, at(1), 1, "anna", at(1)),
        ("reports", 3, at(3), 3, None, at(3)),
    ]
    assert rows(store.join("stopped", 7), "result_id", "vid", "id", "name") == [
        (7, "a", 1, "anna"),
        (7, "a", 3, None),
    ]


def test_a_record_without_a_result_is_known_by_its_file(data: Path, opened: Opened) -> None:
    two_files(data)
    store = opened([1])
    assert rows(store.forward("reports", 2), "sink", "result_id") == [(None, None)]
    assert rows(store.forward("reports", [1, 2, 9]), "id", "result_id") == [(1, 7), (2, None)]
    with pytest.raises(UnknownId, match="no record with the id 9"):
        store.forward("reports", 9)


def test_parquet_by_position(data: Path, opened: Opened) -> None:
    two_files(data)
    files = {5: (data / "a.parquet").as_uri(), 6: str(data / "b.parquet")}
    store = opened([5 << 32 | 1, 6 << 32 | 0], id=BY_PLACE, files=files)
    assert rows(store.backward("stopped", 7), "id", "event_time", "name") == [
        (5 << 32 | 1, at(2), "bert"),
        (6 << 32 | 0, at(3), None),
    ]
    assert store.forward("reports", ("a.parquet", 1))["result_id"].to_pylist() == [7]
    assert store.forward("reports", ("a.parquet", 0))["result_id"].to_pylist() == [None]
    with pytest.raises(UnknownId):
        store.forward("reports", ("a.parquet", 2))


def test_parquet_by_position_in_files_that_the_store_was_not_told_of(
    data: Path, opened: Opened
) -> None:
    """As after a run that carried no ids, and whose ids come from a replay."""
    two_files(data)
    key = file_key(f"file:{data}/b.parquet")
    store = opened([key << 32 | 1], id=BY_PLACE)
    assert rows(store.backward("stopped", 7), "id", "name") == [(key << 32 | 1, "anna")]
    assert store.forward("reports", ("b.parquet", 1))["result_id"].to_pylist() == [7]
    assert store.forward("reports", ("a.parquet", 0))["result_id"].to_pylist() == [None]
    (data / "b.parquet").unlink()
    with pytest.raises(StoreError, match="1 record .* is no longer in .*; put its file back"):
        store.backward("stopped", 7)


def test_many_ids_at_once(data: Path, opened: Opened) -> None:
    many = [(key, f"n{key}", at(key)) for key in range(5000)]
    pq.write_table(table(many), data / "a.parquet", row_group_size=500)
    found = opened(list(range(0, 5000, 2))).backward("stopped", 7)
    assert rows(found, "id", "name") == [(key, f"n{key}") for key in range(0, 5000, 2)]


def test_columns_as_the_schema_says(data: Path, opened: Opened) -> None:
    """Files with fewer columns and narrower types, as Spark would read them."""
    old = pa.table(
        {"TID": pa.array([1], pa.int32()), "ts": pa.array([at(1)], pa.timestamp("ns", "UTC"))}
    )
    pq.write_table(old, data / "a.parquet")
    pq.write_table(table(DATA[1:2]).append_column("more", pa.array([1])), data / "b.parquet")
    found = opened([1, 2]).backward("stopped", 7)
    assert found.schema.field("tid").type == pa.int64()
    assert rows(found, "tid", "name", "ts") == [(1, None, at(1)), (2, "bert", at(2))]


def test_nested_columns(data: Path, opened: Opened) -> None:
    schema = pa.schema(
        [
            ("tid", pa.int64()),
            ("tags", pa.list_(pa.string())),
            ("at", pa.struct([("x", pa.float64()), ("y", pa.float64())])),
            ("price", pa.decimal128(9, 2)),
            ("day", pa.date32()),
        ]
    )
    values: list[list[Any]] = [
        [1],
        [["a", None]],
        [{"x": 1.5, "y": None}],
        [Decimal("1.25")],
        [date(2024, 5, 1)],
    ]
    kept = pa.table(
        [pa.array(v, f.type) for v, f in zip(values, schema, strict=True)], schema=schema
    )
    pq.write_table(kept, data / "a.parquet")
    found = opened([1], schema, event_time=None).backward("stopped", 7)
    assert found.select(schema.names).schema.equals(schema)
    assert rows(found, *schema.names) == [tuple(value[0] for value in values)]


def test_equal_records_are_one_and_others_collide(data: Path, opened: Opened) -> None:
    pq.write_table(table([DATA[0], DATA[1], DATA[0]]), data / "a.parquet")
    pq.write_table(table([(2, "other", at(2))]), data / "b.parquet")
    store = opened([1])
    assert rows(store.backward("stopped", 7), "id", "name") == [(1, "anna")]
    with pytest.raises(
        IdCollision, match="two different records of source 'reports' have the id 2"
    ):
        store.forward("reports", 2)


def test_vanished_files(data: Path, opened: Opened) -> None:
    two_files(data)
    store = opened([1, 3])
    (data / "b.parquet").unlink()
    with pytest.raises(StoreError) as error:
        store.backward("stopped", 7)
    assert str(error.value) == (
        f"can't read source 'reports' again: 1 record (id 3) is no longer in {data}; put its file "
        "back, or ask with columns=False for ids alone"
    )
    assert rows(store.backward("stopped", 7, columns=False)) == [
        ("reports", 1, None),
        ("reports", 3, None),
    ]
    (data / "a.parquet").unlink()
    with pytest.raises(StoreError, match=f"can't read source 'reports' again: {data} is gone"):
        store.backward("stopped", 7)


def test_a_vanished_positional_file_is_named(data: Path, opened: Opened) -> None:
    two_files(data)
    store = opened([5 << 32], id=BY_PLACE, files={5: str(data / "a.parquet")})
    (data / "a.parquet").unlink()
    with pytest.raises(StoreError, match=f"{data}/a.parquet is gone"):
        store.backward("stopped", 7)
    assert rows(store.backward("stopped", 7, columns=False), "id") == [(5 << 32,)]


def test_a_damaged_file_is_one_line(data: Path, opened: Opened) -> None:
    (data / "a.parquet").write_text("not parquet at all")
    with pytest.raises(StoreError) as error:
        opened([1]).backward("stopped", 7)
    assert str(error.value).startswith("can't read source 'reports' again from ")
    assert "\n" not in str(error.value)


def test_a_source_that_can_not_be_read_again_has_null_columns(opened: Opened) -> None:
    store = opened([1, 3], format="kafka", path=None)
    assert rows(store.backward("stopped", 7), "id", "event_time", "name") == [
        (1, None, None),
        (3, None, None),
    ]


@pytest.mark.spark
def test_hashed_ids_by_spark(data: Path, opened: Opened, spark: SparkSession) -> None:
    two_files(data)
    ids = [identity_hash([row[0], row[1]], ["bigint", "string"]) for row in DATA]
    store = opened([ids[0], ids[2]], id=BY_NAME)
    found = store.backward("stopped", 7)
    assert found.schema.field("ts").type == TIME
    assert set(rows(found, "id", "event_time", "tid", "name")) == {
        (ids[0], at(1), 1, "anna"),
        (ids[2], at(3), 3, None),
    }
    assert rows(store.forward("reports", (1, "anna")), "result_id") == [(7,)]
    assert rows(store.forward("reports", (2, "bert")), "result_id") == [(None,)]
    with pytest.raises(UnknownId):
        store.forward("reports", (2, "anna"))


@pytest.mark.spark
def test_content_ids_by_spark(data: Path, opened: Opened, spark: SparkSession) -> None:
    """Of all columns, as the lowering hashes them: a map by its JSON text."""
    frame = spark.sql("SELECT explode(array(1, 2)) AS n, map('a', 1) AS m")
    frame.repartition(1).write.parquet(str(data / "x"))
    hashed = frame.selectExpr(
        "n", "xxhash64(n is null, m is null, n, to_json(struct(m)))"
    ).collect()
    ids = {row[0]: row[1] for row in hashed}
    schema = pa.schema([("n", pa.int32()), ("m", pa.map_(pa.string(), pa.int32()))])
    ddl = "n int, m map<string, int>"
    given = {"id": {"kind": "content", "columns": []}, "path": str(data / "x")}
    store = opened([ids[2]], schema, schema=ddl, event_time=None, **given)
    assert rows(store.backward("stopped", 7), "id", "n", "m") == [(ids[2], 2, [("a", 1)])]
    assert rows(store.forward("reports", ids[1]), "result_id") == [(None,)]


@pytest.mark.spark
@pytest.mark.parametrize("format", ["csv", "json"])
def test_text_formats_by_spark(
    data: Path, opened: Opened, spark: SparkSession, format: str
) -> None:
    when = [one.isoformat() for _, _, one in DATA]
    if format == "csv":
        lines = [f"{key};{name or ''};{at}" for (key, name, _), at in zip(DATA, when, strict=True)]
        options = {"sep": ";", "header": "true", "maxFilesPerTrigger": "1"}
        (data / "a.csv").write_text("\n".join(["tid;name;ts", *lines]))
    else:
        options = {}
        objects = [
            {"tid": key, "name": name, "ts": at}
            for (key, name, _), at in zip(DATA, when, strict=True)
        ]
        (data / "a.json").write_text("\n".join(map(json.dumps, objects)))
    store = opened([1, 3], format=format, options=options)
    found = store.backward("stopped", 7)
    assert rows(found) == [
        ("reports", 1, at(1), 1, "anna", at(1)),
        ("reports", 3, at(3), 3, None, at(3)),
    ]
    assert found.schema.field("ts").type == TIME
    (data / f"a.{format}").unlink()
    data.rmdir()
    with pytest.raises(StoreError, match=f"{data} is gone"):
        store.backward("stopped", 7)


@pytest.mark.spark
def test_partitions_and_metadata_are_spark_s_business(
    data: Path, opened: Opened, spark: SparkSession
) -> None:
    for day in ("1", "2"):
        (data / f"day={day}").mkdir()
        part = pa.table({"tid": [int(day)], "ts": pa.array([at(0)], TIME)})
        pq.write_table(part, data / f"day={day}" / "a.parquet")
    schema = pa.schema([("tid", pa.int64()), ("ts", TIME), ("day", pa.int32())])
    store = opened([2], schema, schema="tid bigint, ts timestamp, day int")
    assert rows(store.backward("stopped", 7), "tid", "day") == [(2, 2)]


def test_utc_whatever_the_session_says(data: Path, opened: Opened) -> None:
    naive = pa.table({"tid": [1], "name": ["a"], "ts": pa.array([datetime(2024, 5, 1)])})
    pq.write_table(naive, data / "a.parquet")
    found = opened([1]).backward("stopped", 7)
    assert rows(found, "ts") == [(datetime(2024, 5, 1, tzinfo=UTC),)]
