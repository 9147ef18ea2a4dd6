"""Backward: exactly the records of a result, with their columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from headwater import store as stores
from headwater.errors import UnknownId
from headwater.query import Store
from headwater.store import EmbeddedWriter, ResultSet
from tests.store.small import (
    SETS,
    TIME,
    at,
    batch,
    flow,
    reports,
    rows,
    sink,
    source,
    stopped,
)

DRIVER = pa.schema([("id", pa.int64()), ("speed", pa.string()), ("name", pa.string())])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow())
        kept = reports((1, 1, 10), (2, 2, 20), (3, 3, 30), (4, 4, 40))
        writer.commit(batch(0, records=kept))
        for number in range(1, 70):
            writer.commit(batch(number))
        made = stopped((7, 10, "a", 2, [2, 1]), (8, 20, "b", 1, [3]), (9, 30, "c", 0, []))
        writer.commit(batch(70, made))
        with stores.open(tmp_path) as store:
            yield store


def test_one_result(store: Store) -> None:
    found = store.backward("stopped", 7)
    assert found.column_names == ["source", "id", "event_time", "tid", "speed"]
    assert rows(found) == [("reports", 1, at(1), 1, 10), ("reports", 2, at(2), 2, 20)]
    assert store.backward("stopped", "7") == found, "an id may be text, as on a command line"


def test_a_list_of_results(store: Store) -> None:
    found = store.backward("stopped", [8, 7, 9, 12345])
    assert found.column_names == ["result_id", "source", "id", "event_time", "tid", "speed"]
    assert rows(found, "result_id", "id", "speed") == [(7, 1, 10), (7, 2, 20), (8, 3, 30)]
    assert store.backward("stopped", pa.array([8, 7, 9])) == found
    assert rows(store.backward("stopped", [7]), "result_id", "id") == [(7, 1), (7, 2)]
    empty = store.backward("stopped", [])
    assert (empty.num_rows, empty.column_names) == (0, found.column_names)


def test_conditions_in_place_of_ids(store: Store) -> None:
    assert rows(store.backward("stopped", where="vid = 'b'"), "result_id", "id") == [(8, 3)]
    assert rows(store.backward("stopped", since=at(20)), "result_id", "id") == [(8, 3)]
    assert rows(store.backward("stopped", until=at(20)), "id") == [(1,), (2,)]
    assert rows(store.backward("stopped"), "result_id", "id") == [(7, 1), (7, 2), (8, 3)]
    assert rows(store.backward("stopped", [7, 8], where="n = 1"), "result_id") == [(8,)]
    assert store.backward("stopped", 7, where="n = 1").num_rows == 0


def test_a_result_of_no_record_is_known(store: Store) -> None:
    found = store.backward("stopped", 9)
    assert (found.num_rows, found.column_names) == (
        0,
        ["source", "id", "event_time", "tid", "speed"],
    )


@pytest.mark.parametrize("id", [12345, -1, "x", 2**70])
def test_an_unknown_result_raises(store: Store, id: object) -> None:
    for ask in (store.backward, store.join):
        with pytest.raises(UnknownId):
            ask("stopped", id)
    with pytest.raises(UnknownId) as error:
        store.backward("stopped", 12345)
    assert str(error.value) == "sink 'stopped' has no result with the id 12345"


def test_ids_alone(store: Store) -> None:
    assert rows(store.backward("stopped", 7, columns=False)) == [
        ("reports", 1, at(1)),
        ("reports", 2, at(2)),
    ]


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Store]:
    """A sink of two sources that share a column, and one column called as a fixed one."""
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow(source(), source("drivers", DRIVER), sink()))
        made = stopped((7, 10, "a", 2, [1]), (8, 10, "b", 2, [2]))
        sets = pa.chunked_array([pa.array([[1, 2], None], SETS)])
        made = ResultSet(made.rows, {**made.origins, "drivers": sets})
        drivers = pa.table(
            {
                "__hw_id": pa.array([1, 2]),
                "__hw_time": pa.array([None, at(6)], TIME),
                "__hw_content": pa.array([1, 2]),
                "id": pa.array([1, 2]),
                "speed": ["fast", "slow"],
                "name": ["anna", "bert"],
            }
        )
        kept = {"reports": reports((1, 1, 10), (2, 2, 20)), "drivers": drivers}
        done = batch(0, made)
        writer.commit(type(done)("q", 0, None, done.results, kept))
        with stores.open(tmp_path) as store:
            yield store


def test_columns_of_two_sources_are_united(two: Store) -> None:
    found = two.backward("stopped", 7)
    assert found.column_names == [
        "source",
        "id",
        "event_time",
        "tid",
        "reports.speed",
        "drivers.id",
        "drivers.speed",
        "name",
    ]
    assert rows(found) == [
        ("reports", 1, at(1), 1, 10, None, None, None),
        ("drivers", 1, None, None, None, 1, "fast", "anna"),
        ("drivers", 2, at(6), None, None, 2, "slow", "bert"),
    ]
    assert two.backward("stopped", 8).column_names == found.column_names
    assert rows(two.backward("stopped"), "result_id", "source", "id") == [
        (7, "reports", 1),
        (7, "drivers", 1),
        (7, "drivers", 2),
        (8, "reports", 2),
    ]


def test_join_puts_results_beside_records(two: Store) -> None:
    found = two.join("stopped", [7, 8, 9])
    assert found.column_names == [
        "result_id",
        "event_time",
        "vid",
        "n",
        "source",
        "id",
        "tid",
        "reports.speed",
        "drivers.id",
        "drivers.speed",
        "name",
    ]
    assert rows(found, "result_id", "event_time", "vid", "source", "id", "tid", "name") == [
        (7, at(10), "a", "reports", 1, 1, None),
        (7, at(10), "a", "drivers", 1, None, "anna"),
        (7, at(10), "a", "drivers", 2, None, "bert"),
        (8, at(10), "b", "reports", 2, 2, None),
    ]
    assert two.join("stopped", where="vid = 'b'").num_rows == 1
    assert two.join("stopped", 8).num_rows == 1


def test_join_prefixes_what_result_and_record_share(tmp_path: Path) -> None:
    columns = pa.schema([("tid", pa.int64())])
    table = pa.table({"__hw_id": [7], "__hw_time": pa.array([at(0)], TIME), "tid": [99]})
    with EmbeddedWriter.open(tmp_path) as writer, stores.open(tmp_path) as store:
        writer.register(flow(source(), sink(columns=columns)))
        made = ResultSet(table, {"reports": pa.chunked_array([[1]])})
        writer.commit(batch(0, made, reports((1, 1, 10))))
        found = store.join("stopped", 7)
        assert found.column_names[2:] == ["stopped.tid", "source", "id", "reports.tid", "speed"]
        assert rows(found, "stopped.tid", "reports.tid") == [(99, 1)]


def test_only_the_sources_of_the_sink_give_columns(tmp_path: Path) -> None:
    with EmbeddedWriter.open(tmp_path) as writer, stores.open(tmp_path) as store:
        of_one = sink(sources=["reports"])
        writer.register(flow(source(), source("drivers", DRIVER), of_one, sink("both")))
        writer.commit(batch(0, stopped((7, 10, "a", 1, [1])), reports((1, 1, 10))))
        assert store.backward("stopped", 7).column_names[3:] == ["tid", "speed"]
