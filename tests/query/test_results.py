"""Results of a sink: which, in what order, under what names."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from headwater import store as stores
from headwater.errors import PredicateError, UnknownName
from headwater.query import Store
from headwater.store import EmbeddedWriter, ResultSet
from tests.store.small import STOPPED, TIME, at, batch, flow, rows, sink, source, stopped


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow())
        writer.commit(batch(0, stopped((8, 10, "b", 4, [1]), (7, 10, "a", 4, [2]))))
        writer.commit(batch(1, stopped((9, 20, "a", 5, [3]), (6, 30, "c", 6, [4]))))
        with stores.open(tmp_path) as store:
            yield store


def ids(table: pa.Table) -> list[int]:
    found: list[int] = table["result_id"].to_pylist()
    return found


def test_results_come_in_order_of_delivery(store: Store) -> None:
    found = store.results("stopped")
    assert found.schema.equals(
        pa.schema([("result_id", pa.int64()), ("event_time", TIME), *STOPPED])
    )
    assert rows(found) == [
        (8, at(10), "b", 4),
        (7, at(10), "a", 4),
        (9, at(20), "a", 5),
        (6, at(30), "c", 6),
    ]
    assert store.results() == found, "the only sink needs no name"


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("vid = 'a'", [7, 9]),
        ("n > 4 and vid in ('a', 'c')", [9, 6]),
        ("result_id >= 8", [8, 9]),
        ("event_time >= '2024-05-01T00:00:20Z'", [9, 6]),
        ("n > 4 -- a comment", [9, 6]),
        ("n > 4 or vid = 'b'", [8, 9, 6]),
        ("vid = ')'", []),
        ("n = (select 5)", [9]),
    ],
)
def test_where(store: Store, where: str, expected: list[int]) -> None:
    assert ids(store.results("stopped", where=where)) == expected


def test_where_and_span_both_hold(store: Store) -> None:
    found = store.results("stopped", where="n = 4 or vid = 'c'", until=at(30))
    assert ids(found) == [8, 7], "the predicate is one condition, its or stays inside"


def test_since_is_in_and_until_is_out(store: Store) -> None:
    assert ids(store.results("stopped", since=at(20))) == [9, 6]
    assert ids(store.results("stopped", until=at(20))) == [8, 7]
    assert ids(store.results("stopped", since=at(10), until=at(30))) == [8, 7, 9]
    assert ids(store.results("stopped", since="2024-05-01T00:00:20Z")) == [9, 6]
    assert ids(store.results("stopped", since="2024-05-01 00:00:20")) == [9, 6], "UTC if not said"
    assert ids(store.results("stopped", since="2024-05-01T02:00:20+02:00")) == [9, 6]
    assert ids(store.results("stopped", since=datetime(2024, 5, 1, 0, 0, 20))) == [9, 6]
    assert ids(store.results("stopped", since=date(2024, 5, 2))) == []
    assert ids(store.results("stopped", until=date(2024, 5, 2))) == [8, 7, 9, 6]


def test_limit(store: Store) -> None:
    assert ids(store.results("stopped", limit=3)) == [8, 7, 9]
    assert ids(store.results("stopped", limit=0)) == []


@pytest.mark.parametrize(
    "where",
    [
        "n >",
        "",
        "speed = 0",
        "n = 'four'",
        "n = 4; DROP TABLE edges",
        "true); DROP TABLE edges; SELECT (1",
        "true) UNION SELECT 1, now(), 'x', 2 WHERE (true",
        "true) GROUP BY (1",
        "true) ORDER BY (1",
        "true) LIMIT (1",
        "n = ?",
        "sum(n) > 1",
        "exists (SELECT * FROM read_text('/etc/hostname'))",
        "nosuch(n)",
    ],
)
def test_a_bad_predicate_is_one_line_that_names_it(store: Store, where: str) -> None:
    for ask in (store.results, store.backward, store.join):
        with pytest.raises(PredicateError) as error:
            ask("stopped", where=where)
        assert str(error.value).startswith(f"where={where!r} ")
        assert "\n" not in str(error.value)
    with pytest.raises(PredicateError):
        store.forward("reports", 1, where=where)
    assert store.results("stopped").num_rows == 4
    assert store.backward("stopped").num_rows == 4


def test_a_bad_time_names_it(store: Store) -> None:
    with pytest.raises(PredicateError, match="since='noon' is not a time"):
        store.results("stopped", since="noon")


def test_unknown_names_list_the_known(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UnknownName) as error:
        store.results("stoped")
    assert str(error.value) == ("no sink 'stoped'; the store has: stopped; did you mean 'stopped'?")
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow(source(), sink("accidents"), query_id="r", name="other"))
    assert store.results("accidents").num_rows == 0, "a flow that came later is seen"
    with pytest.raises(UnknownName, match="say which sink; the store has: stopped, accidents"):
        store.results()


def test_a_sink_of_each_of_two_flows(store: Store, tmp_path: Path) -> None:
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow(name="other", query_id="r"))
        writer.commit(batch(0, stopped((5, 0, "z", 1, [1])), query_id="r"))
    assert ids(stores.open(tmp_path).results("other/stopped")) == [5]
    with pytest.raises(UnknownName, match="say which: traffic/stopped, other/stopped"):
        stores.open(tmp_path).results("stopped")


def test_own_columns_that_are_called_like_fixed_ones(tmp_path: Path) -> None:
    columns = pa.schema([("result_id", pa.string()), ("Event_Time", TIME), ("n", pa.int64())])
    table = pa.table(
        {
            "__hw_id": pa.array([7]),
            "__hw_time": pa.array([at(1)], TIME),
            "result_id": ["mine"],
            "Event_Time": pa.array([at(2)], TIME),
            "n": [3],
        }
    )
    with EmbeddedWriter.open(tmp_path) as writer, stores.open(tmp_path) as store:
        writer.register(flow(source(), sink(columns=columns)))
        writer.commit(batch(0, ResultSet(table)))
        found = store.results("stopped", where="\"stopped.result_id\" = 'mine' and result_id = 7")
        assert found.column_names == [
            "result_id",
            "event_time",
            "stopped.result_id",
            "stopped.Event_Time",
            "n",
        ]
        assert rows(found) == [(7, at(1), "mine", at(2), 3)]


def test_types_come_back_as_they_went_in(tmp_path: Path) -> None:
    values = {
        "flag": pa.array([True], pa.bool_()),
        "small": pa.array([1], pa.int8()),
        "real": pa.array([1.5], pa.float32()),
        "day": pa.array([date(2024, 5, 1)]),
        "local": pa.array([datetime(2024, 5, 1)], pa.timestamp("us")),
        "moment": pa.array([at(5)], TIME),
        "price": pa.array(["1.25"]).cast(pa.decimal128(20, 2)),
        "bytes": pa.array([b"\x00\x01"]),
        "tags": pa.array([["a", None]], pa.list_(pa.string())),
        "window": pa.array(
            [{"start": at(0), "end": at(9)}], pa.struct([("start", TIME), ("end", TIME)])
        ),
        "counts": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    }
    table = pa.table({"__hw_id": pa.array([7]), "__hw_time": pa.array([None], TIME), **values})
    columns = pa.table(values).schema
    with EmbeddedWriter.open(tmp_path) as writer, stores.open(tmp_path) as store:
        writer.register(flow(source(), sink(columns=columns)))
        writer.commit(batch(0, ResultSet(table)))
        found = store.results("stopped")
        assert found.schema.field("event_time").type == TIME
        assert found["event_time"].to_pylist() == [None]
        assert found.select(list(values)).equals(pa.table(values).combine_chunks())
        assert store.results("stopped", where="false").schema.equals(found.schema)
        assert found["moment"][0].as_py().tzinfo is not None
        assert found["moment"].to_pylist() == [datetime(2024, 5, 1, 0, 0, 5, tzinfo=UTC)]
