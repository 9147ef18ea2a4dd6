"""Erasing: contents leave the store and do not come back, ids and edges stay."""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headwater import store as stores
from headwater.errors import HeadwaterError, StoreError, UnknownName
from headwater.query import Store
from headwater.store import EmbeddedWriter
from headwater.store.commands import apply
from headwater.store.marks import EDGES, LATE, Erase, Mark, Unmark, packed, unpacked
from tests.lake.small_lake import Writer, opened
from tests.store.small import REPORT, at, batch, flow, reports, rows, sink, source, stopped


@pytest.fixture(params=["file", "lake"])
def writer(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Writer]:
    """1 and 2 made 7, 3 made 8; the speed is 10 × id."""
    with opened(request.param, tmp_path / "store") as writer:
        writer.register(flow())
        made = stopped((7, 70, "a", 2, [1, 2]), (8, 80, "b", 1, [3]))
        writer.commit(batch(0, made, reports((1, 1, 10), (2, 2, 20), (3, 3, 30))))
        yield writer


@pytest.fixture
def store(writer: Writer) -> Iterator[Store]:
    with stores.open(writer.path) as store:
        yield store


def told(store: Store, sql: str) -> list[tuple[Any, ...]]:
    return rows(store._reader.query(sql))


def test_contents_go_and_the_graph_stays(store: Store) -> None:
    before = store.backward("stopped", columns=False).select(["result_id", "source", "id"])
    report = store.erase("reports", where="speed <= 20", reason="asked on May 2")
    assert (report.source, report.records, report.copies) == ("reports", 2, 2)
    assert rows(report.results) == [("stopped", 7, at(70))]
    assert repr(report) == ("EraseReport(source='reports', records=2, copies=2, results=1)")
    assert rows(store.backward("stopped", 7)) == [
        ("reports", 1, None, None, None),
        ("reports", 2, None, None, None),
    ]
    assert rows(store.backward("stopped", 8), "id", "speed") == [(3, 30)]
    after = store.backward("stopped", columns=False).select(["result_id", "source", "id"])
    assert after == before
    assert rows(store.forward("reports", 1), "result_id", "vid") == [(7, "a")]
    assert rows(store.join("stopped", 7), "vid", "id", "speed") == [("a", 1, None), ("a", 2, None)]
    assert told(store, "SELECT source_no, id, reason FROM erased ORDER BY id") == [
        (1, 1, "asked on May 2"),
        (1, 2, "asked on May 2"),
    ]
    assert told(store, "SELECT __hw_id FROM record_1") == [(3,)], "nor is the hash left"


def test_a_record_without_a_result_is_still_known(writer: Writer, store: Store) -> None:
    writer.commit(batch(1, records=reports((4, 4, 40))))
    assert store.erase("reports", ids=[4]).results.num_rows == 0
    assert rows(store.forward("reports", 4), "result_id") == [(None,)]


def test_erased_contents_do_not_come_back(writer: Writer, store: Store) -> None:
    store.erase("reports", ids=[1, 99])
    # Again, changed, and for the first time: 5 alone is new.
    again = reports((1, 1, 11), (99, 9, 90), (5, 5, 50))
    done = writer.commit(batch(1, stopped((9, 90, "c", 3, [1, 5, 99])), again))
    assert (done.records, done.edges) == (1, 3)
    assert rows(store.backward("stopped", 9), "id", "speed") == [(1, None), (5, 50), (99, None)]
    assert rows(store.forward("reports", 99), "result_id") == [(9,)]


def test_erasing_what_a_mark_holds(writer: Writer, store: Store) -> None:
    """Also what it holds by its predicate alone, which can't be asked afterwards."""
    number = store.mark("reports", where="speed > 25", reason="fast").number
    writer.commit(batch(1, stopped((9, 90, "c", 1, [4])), reports((4, 4, 40), (5, 5, 5))))
    store.mark("reports", where="speed = 40", reason="other")
    report = store.erase("reports", mark=number)
    assert (report.records, report.copies) == (2, 2)
    assert rows(store.marked(), "result_id", "mark") == [(8, 1), (9, 1), (9, 2)]
    assert rows(store.marks(), "mark", "records") == [(1, 2), (2, 1)]
    writer.commit(batch(2, stopped((10, 99, "d", 1, [4]))))
    assert rows(store.marked(), "result_id", "mark")[-2:] == [(10, 1), (10, 2)]


def test_twice_is_once(store: Store) -> None:
    store.erase("reports", ids=[1], reason="first")
    again = store.erase("reports", ids=[1, 2], reason="second")
    assert (again.records, again.copies, again.results.num_rows) == (2, 1, 1)
    assert told(store, "SELECT id, reason FROM erased ORDER BY id") == [(1, "first"), (2, "second")]


def test_nothing_matches(store: Store) -> None:
    report = store.erase("reports", where="speed > 1000")
    assert (report.records, report.copies, report.results.num_rows) == (0, 0, 0)
    assert told(store, "SELECT * FROM erased") == []


def test_a_dry_run_only_says(store: Store) -> None:
    report = store.erase("reports", where="speed <= 20", dry_run=True)
    assert (report.records, report.copies, rows(report.results, "result_id")) == (2, 2, [(7,)])
    assert store.backward("stopped", 7)["speed"].to_pylist() == [10, 20]
    assert told(store, "SELECT * FROM erased") == []


def test_wrong_input_erases_nothing(store: Store) -> None:
    store.mark("reports", ids=[1])
    for given in ({}, {"where": "true", "mark": 1}, {"ids": [1], "mark": 1}):
        with pytest.raises(HeadwaterError, match="by exactly one of where, ids, mark"):
            store.erase("reports", **given)
    with pytest.raises(UnknownName, match="no mark on source 'reports' 2; the store has: 1"):
        store.erase("reports", mark=2)
    assert told(store, "SELECT * FROM erased") == []


def test_all_or_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> int:
        raise OSError("No space left on device")

    monkeypatch.setattr("headwater.store.marks._remove_copies", fails)
    with pytest.raises(StoreError, match="is full"):
        store.erase("reports", ids=[1])
    assert told(store, "SELECT * FROM erased") == []
    assert store.backward("stopped", 7)["speed"].to_pylist() == [10, 20]


def test_a_mark_that_came_in_between_is_not_lost(store: Store) -> None:
    change = Erase(1, np.array([1]), "", 1, marks=())
    store.mark("reports", where="speed = 10")
    with pytest.raises(StoreError, match="the marks of source 'reports' changed meanwhile"):
        apply(store._reader.path, change)
    assert store.backward("stopped", 7)["speed"].to_pylist() == [10, 20]


def test_it_is_not_read_again_from_the_source(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    table = {"tid": [1, 2, 3], "speed": pa.array([10, 20, 30], pa.int32())}
    pq.write_table(pa.table(table, schema=REPORT), data / "a.parquet")
    given = {"keep": "none", "format": "parquet", "path": str(data)}
    with EmbeddedWriter.open(tmp_path / "store") as writer:
        writer.register(flow(source(**given), sink()))
        writer.commit(batch(0, stopped((7, 70, "a", 3, [1, 2, 3]))))
    with stores.open(tmp_path / "store") as store:
        report = store.erase("reports", where="speed < 25")
        assert (report.records, report.copies, rows(report.results, "result_id")) == (2, 0, [(7,)])
        assert rows(store.backward("stopped", 7), "id", "speed") == [(1, None), (2, None), (3, 30)]
        (data / "a.parquet").unlink()
        with pytest.raises(StoreError, match="is gone"):
            store.backward("stopped", 7)
        store.erase("reports", ids=[3])
        assert rows(store.backward("stopped", 7), "id", "speed") == [(i, None) for i in (1, 2, 3)]
        with pytest.raises(HeadwaterError, match="a record that was erased: it can't be computed"):
            store.replay("stopped", 7)
        with pytest.raises(HeadwaterError, match="record 1 of source 'reports' was erased"):
            store.why_not("reports", 1)


@pytest.mark.parametrize("nested", [False, True])
def test_the_log_is_gone_and_no_page_in_use_has_the_contents(tmp_path: Path, nested: bool) -> None:
    """DuckDB alone would leave deleted values where they are, beside those that stay."""
    many = 40_000
    secrets = np.random.default_rng(7).integers(1 << 40, 1 << 62, many)
    columns = REPORT.append(pa.field("secret", pa.list_(pa.int64()) if nested else pa.int64()))
    values = pa.array([[one] for one in secrets.tolist()] if nested else secrets)
    kept = pa.table(
        {
            "__hw_id": np.arange(many),
            "__hw_time": pa.array([at(0)] * many, pa.timestamp("us", "UTC")),
            "__hw_content": np.arange(many),
            "tid": np.arange(many),
            "speed": np.zeros(many, np.int32),
            "secret": values,
        }
    )
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow(source(columns=columns), sink()))
        writer.commit(batch(0, stopped((7, 70, "a", 1, [123])), kept))
        writer._connection.execute("CHECKPOINT")
        with stores.open(tmp_path) as store:
            assert store.erase("reports", ids=[123]).copies == 1
            assert not (tmp_path / "headwater.duckdb.wal").exists()
            assert told(store, "SELECT count(*), max(__hw_seq) FROM record_1") == [(many - 1, 1)]
        blocks = writer._connection.execute(
            "SELECT block_id FROM pragma_storage_info('record_1') WHERE block_id >= 0"
        ).fetchall()
        writer.commit(batch(1, records=kept.slice(122, 4)))
        file = (tmp_path / "headwater.duckdb").read_bytes()
        [(size,)] = writer._connection.execute(
            "SELECT block_size FROM pragma_database_size()"
        ).fetchall()
    used = [file[12288 + size * no :][:size] for no in sorted({no for (no,) in blocks})]
    secret, beside = (struct.pack("<q", int(secrets[row])) for row in (123, 124))
    assert not any(secret in block for block in used)
    assert any(beside in block for block in used), "these are its pages"


@pytest.mark.parametrize("writer", ["file"], indirect=True)
def test_a_reader_in_the_way_of_the_checkpoint_is_told(
    writer: EmbeddedWriter, store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: Any
) -> None:
    monkeypatch.setattr("headwater.store.embedded._ATTEMPTS", 2)
    reading = writer.cursor()
    reading.execute("BEGIN TRANSACTION READ ONLY")
    reading.execute("SELECT count(*) FROM record_1").fetchall()
    with caplog.at_level(logging.WARNING, "headwater"):
        assert store.erase("reports", ids=[1]).copies == 1
    reading.close()
    assert "not checkpointed for now, as the store is being read" in caplog.text


def test_a_change_travels_as_it_is() -> None:
    edges = pa.table([[1], [2], [3], [4], [5]], schema=EDGES)
    late = pa.table([[1], [9]], schema=LATE)
    for change in (
        Mark(1, np.array([5, 6]), "why", "a = 'é'", 4),
        Mark(1, np.empty(0, np.int64), "", None, 0),
        Unmark(3),
        Erase(1, np.array([5]), "why", 4, (1, 2), late, edges),
        Erase(1, np.array([5]), "", 4),
    ):
        sent = unpacked(packed(change))
        assert type(sent) is type(change)
        assert repr(sent) == repr(change)


def test_lazy_sinks_over_the_store_s_copies_wait_for_the_end(tmp_path: Path) -> None:
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow(source(), sink(capture="ancestors", resolved=True)))
        made = stopped((7, 70, "a", 1, [1]))
        writer.commit(batch(0, made, reports((1, 1, 10))))
        with stores.open(tmp_path) as store:
            for dry in (True, False):
                with pytest.raises(StoreError, match="can't erase records of source 'reports' yet"):
                    store.erase("reports", ids=[1], dry_run=dry)
            writer.commit(batch(1, last=True))
            assert store.erase("reports", ids=[1]).copies == 1
