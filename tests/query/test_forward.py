"""Forward: exactly the results of a record, and whether a record is known at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headwater import store as stores
from headwater.errors import HeadwaterError, UnknownId, UnknownName
from headwater.query import Store
from headwater.store import EmbeddedWriter
from headwater.store.ids import identity_hash
from tests.store.small import at, batch, flow, reports, rows, sink, source, stopped

ACCIDENTS = pa.schema([("vid", pa.string()), ("n", pa.int64())])


@pytest.fixture(params=["tail", "sorted"])
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Store]:
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow(source(), sink(), sink("accidents")))
        made = {
            "stopped": stopped((7, 10, "a", 2, [1, 2]), (8, 20, "b", 1, [1])),
            "accidents": stopped((7, 30, "x", 9, [2])),
        }
        writer.commit(batch(0, made, reports((1, 0, 0), (2, 0, 0), (3, 0, 0))))
        if request.param == "sorted":
            writer.compact()
        with stores.open(tmp_path) as store:
            yield store


def test_one_record(store: Store) -> None:
    found = store.forward("reports", 2)
    assert found.column_names == [
        "sink",
        "result_id",
        "event_time",
        "final",
        "stopped.vid",
        "stopped.n",
        "accidents.vid",
        "accidents.n",
    ]
    assert rows(found) == [
        ("stopped", 7, at(10), None, "a", 2, None, None),
        ("accidents", 7, at(30), None, None, None, "x", 9),
    ]


def test_one_sink(store: Store) -> None:
    found = store.forward("reports", 2, sink="stopped")
    assert found.column_names == ["sink", "result_id", "event_time", "final", "vid", "n"]
    assert rows(found) == [("stopped", 7, at(10), None, "a", 2)]
    assert rows(store.forward("reports", 1, sink="accidents"), "sink", "result_id") == [
        (None, None)
    ]


def test_a_list_of_records(store: Store) -> None:
    found = store.forward("reports", [2, 1, 3, 99, 1])
    assert found.column_names[:5] == ["id", "sink", "result_id", "event_time", "final"]
    expected = [
        (1, "stopped", 7),
        (1, "stopped", 8),
        (2, "stopped", 7),
        (2, "accidents", 7),
        (3, None, None),
    ]
    assert rows(found, "id", "sink", "result_id") == expected
    assert store.forward("reports", np.array([1, 2, 3])) == found
    assert store.forward("reports", []).num_rows == 0
    assert rows(store.forward("reports", ["1"]), "id", "result_id") == [(1, 7), (1, 8)]


def test_conditions_on_the_results(store: Store) -> None:
    assert rows(store.forward("reports", 1, since=at(20)), "result_id") == [(8,)]
    assert rows(store.forward("reports", 1, sink="stopped", where="n = 2"), "result_id") == [(7,)]
    assert rows(store.forward("reports", [1, 2], until=at(20)), "id", "result_id") == [
        (1, 7),
        (2, 7),
    ]
    assert store.forward("reports", 1, since=at(99)).num_rows == 0, "it has results, but earlier"
    with pytest.raises(HeadwaterError, match="needs sink=, one of: stopped, accidents"):
        store.forward("reports", 1, where="n = 2")


def test_known_and_unknown_records(store: Store) -> None:
    assert rows(store.forward("reports", 3), "sink", "result_id", "final") == [(None, None, None)]
    with pytest.raises(UnknownId, match="source 'reports' has no record with the id 99"):
        store.forward("reports", 99)
    with pytest.raises(UnknownName, match=r"no source 'report'.*did you mean 'reports'"):
        store.forward("report", 1)
    with pytest.raises(UnknownName):
        store.forward("reports", 1, sink="stoped")


def test_nothing_more_comes_of_a_batch_source(tmp_path: Path) -> None:
    with EmbeddedWriter.open(tmp_path) as writer, stores.open(tmp_path) as store:
        writer.register(flow(source(kind="batch"), sink()))
        writer.commit(batch(0, stopped((7, 10, "a", 1, [1])), reports((1, 0, 0), (2, 0, 0))))
        assert rows(store.forward("reports", [1, 2]), "result_id", "final") == [
            (7, True),
            (None, True),
        ]


def test_the_user_s_own_ids(tmp_path: Path) -> None:
    key = {"kind": "hash", "columns": ["name", "n"], "types": ["string", "int"]}
    anna = identity_hash(["anna", 1], ["string", "int"])
    with EmbeddedWriter.open(tmp_path) as writer, stores.open(tmp_path) as store:
        writer.register(flow(source(keep="none", id=key), sink()))
        writer.commit(batch(0, stopped((7, 10, "a", 1, [anna]))))
        for asked in (anna, ("anna", 1)):
            assert rows(store.forward("reports", asked), "result_id") == [(7,)]
        with pytest.raises(UnknownId, match=r"no record with the id \('bert', 1\)"):
            store.forward("reports", ("bert", 1))
        assert rows(store.forward("reports", [("anna", 1), ("bert", 1)]), "id", "result_id") == [
            (anna, 7)
        ]
        with pytest.raises(UnknownId):
            store.forward("reports", ("anna", 2))
        assert store.entity("reports", ("anna", 1)) == f"hw:traffic/reports/{anna}"
        assert store.entity("stopped", 7) == "hw:traffic/stopped/7"


def test_a_pruned_record_is_unknown_again(tmp_path: Path) -> None:
    with EmbeddedWriter.open(tmp_path) as writer, stores.open(tmp_path) as store:
        writer.register(flow(source(keep="contributing"), sink()))
        writer.commit(batch(0, stopped((7, 10, "a", 1, [1])), reports((1, 0, 0), (2, 0, 0))))
        assert rows(store.forward("reports", [1, 2]), "id", "result_id") == [(1, 7), (2, None)]
        writer.prune("reports", at(5))
        assert rows(store.forward("reports", [1, 2]), "id", "result_id") == [(1, 7)]
