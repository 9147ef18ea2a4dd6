"""Marks and erasures on a lake: killed half way, from other processes, what stays in files."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headwater import store as stores
from headwater.errors import StoreError
from headwater.query import Store
from headwater.store import copying
from headwater.store.commands import apply
from headwater.store.lake import changing
from headwater.store.lake.compacting import compact
from headwater.store.lake.place import OWN, Place
from headwater.store.lake.reader import LakeReader
from headwater.store.lake.tables import Table
from headwater.store.lake.writer import LakeWriter
from headwater.store.marks import EDGES, Erase
from tests.lake.small_lake import SmallLake
from tests.lake.test_lake import traffic, write
from tests.store.small import REPORT, batch, flow, output, reports, rows, sink, source, stopped
from tests.store.test_processes import MARK

SECRET = 7_777_777


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[SmallLake]:
    """1 and 2 made 7, 3 made 8, in two batches; the speed is 10 × id, but that of 2 is secret."""
    with SmallLake(f"delta:{tmp_path / 'lake'}") as lake:
        lake.register(flow())
        kept = reports((1, 1, 10), (2, 2, SECRET))
        lake.commit(batch(0, stopped((7, 70, "a", 2, [1, 2])), kept))
        lake.commit(batch(1, stopped((8, 80, "b", 1, [3])), reports((3, 3, 30))))
        yield lake


def whole(store: Store) -> str:
    """What a reader sees: nothing of an erasure of 2, or all of it; anything else fails."""
    erased = rows(store._reader.query("SELECT id FROM erased"))
    speeds = dict(rows(store.backward("stopped", [7, 8]), "id", "speed"))
    assert speeds.pop(2) == (None if erased else SECRET)
    assert speeds == {1: 10, 3: 30}
    assert store._reader.query("SELECT 1 FROM record_1 WHERE __hw_id < 4").num_rows == 3 - len(
        erased
    )
    return "after" if erased else "before"


def values(folder: Path) -> set[int]:
    """The speeds in all data files of a folder, whether a table has them or not."""
    return {
        speed
        for path in folder.glob("*.parquet")
        for speed in pq.read_table(path)["speed"].to_pylist()
    }


def dying(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, at: int) -> list[str]:
    """Have a call of a function end everything: the one that comes after so many."""
    original, calls = getattr(owner, name), list[str]()

    def call(self: Any, *given: Any, **more: Any) -> Any:
        calls.append(getattr(self, "relation", ""))
        if len(calls) == at + 1:
            raise KeyboardInterrupt
        return original(self, *given, **more)

    monkeypatch.setattr(owner, name, call)
    return calls


@pytest.mark.parametrize(
    ("owner", "name", "at", "then"),
    [
        (Table, "replace_files", 0, "before"),
        (Table, "replace_files", 1, "before"),
        (LakeWriter, "note_all", 0, "before"),
        (Table, "sweep", 0, "after"),
        (Table, "replace_files", 3, "after"),
        (Table, "sweep", 4, "after"),
        (LakeWriter, "note_all", 1, "after"),
    ],
)
def test_an_erasure_that_is_killed_is_done_whole_or_not_at_all(
    lake: SmallLake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    at: int,
    then: str,
) -> None:
    with stores.open(lake.path) as store:
        store.mark("reports", ids=[1], reason="stays")
        with monkeypatch.context() as patched:
            dying(patched, owner, name, at)
            with pytest.raises(KeyboardInterrupt):
                store.erase("reports", ids=[2])
        assert whole(store) == then
        with stores.open(lake.path) as another:
            assert whole(another) == then
        # As a process that was killed would have: nobody ends it, another writes next.
        lake.close()
        with SmallLake(lake.path) as again:
            assert whole(store) == then
            assert (SECRET in values(tmp_path / "lake" / "record_1")) == (then == "before")
            assert not store._reader.query("SELECT * FROM meta WHERE key = 'erasing'").num_rows
            again.commit(batch(2, stopped((9, 90, "c", 1, [4])), reports((4, 4, 40))))
            assert store.erase("reports", ids=[2]).records == 1
            assert whole(store) == "after"
            assert rows(store.marks(), "mark", "records") == [(1, 1)]
            assert SECRET not in values(tmp_path / "lake" / "record_1")
        lake.lake = LakeWriter.open(lake.path)


def test_no_file_has_the_contents(lake: SmallLake, tmp_path: Path) -> None:
    """Not those that were replaced before, nor those of a task that nobody heard of, nor logs."""
    folder = tmp_path / "lake" / "record_1"
    table = lake.lake.table("record_1")
    table.look()
    lost = table.files()[0]
    pq.write_table(pq.read_table(lost), folder / "1-lost.parquet")
    with stores.open(lake.path) as store:
        assert store.erase("reports", where=f"speed = {SECRET}").copies == 1
        assert values(folder) == {10, 30}
        store.mark("reports", where="speed = 31415", reason="a reason that is private")
        store.unmark(1)
    said = str(SECRET).encode()
    private = (b"31415", b"reason that is private")
    for path in (tmp_path / "lake").rglob("*"):
        if path.is_file():
            found = path.read_bytes()
            assert said not in found or path.parts[-3] == "record_1", path
            assert not any(one in found for one in private), path
    logs = "".join(path.read_text() for path in (folder / "_delta_log").glob("*.json"))
    assert str(SECRET) not in logs
    assert lake.lake.table("marks").at(None) == []


def test_an_erasure_without_room_changes_nothing(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with stores.open(lake.path) as store:
        with monkeypatch.context() as patched:
            patched.setattr(changing.pq, "ParquetWriter", full)
            with pytest.raises(StoreError, match="is full"):
                store.erase("reports", ids=[2])
        assert whole(store) == "before"
        with monkeypatch.context() as patched:
            patched.setattr(Table, "sweep", full)
            with pytest.raises(StoreError, match="old data files are still in delta:.*is full"):
                store.erase("reports", ids=[2])
        assert whole(store) == "after"
        lake.commit(batch(2, stopped((9, 90, "c", 1, [4])), reports((4, 4, 40))))
        store.mark("reports", ids=[1])
        assert not store._reader.query("SELECT * FROM meta WHERE key = 'erasing'").num_rows


def test_another_process_changes_it_through_the_one_that_writes(tmp_path: Path) -> None:
    address = f"delta:{tmp_path / 'lake'}"
    with SmallLake(address) as lake:
        lake.register(flow())
        kept = reports((1, 0, 0), (2, 0, 0))
        lake.commit(batch(0, stopped((7, 0, "a", 2, [1, 2])), kept))
        said = output(MARK, address).splitlines()
        assert said[:2] == ["1 2 [7]", "1"]
        assert said[2] == "UnknownName no mark 5; the store has: 1"
        assert said[3].startswith("PredicateError where='sped' can't be evaluated: ")
        again = reports((2, 0, 0), (3, 0, 0))
        lake.commit(batch(1, stopped((8, 0, "b", 1, [3])), again))
        with stores.open(address) as store:
            assert rows(store.marked(), "result_id") == [(7,), (8,)]
            assert rows(store.backward("stopped", 7), "id", "speed") == [(1, 0), (2, None)]
        assert (tmp_path / "lake" / OWN / "serving.json").stat().st_mode & 0o077 == 0
    assert not (tmp_path / "lake" / OWN / "serving.json").exists()
    with stores.open(address) as store:
        store.unmark(1)
        assert store.mark("reports", ids=[2]).number == 2
    assert output(MARK, address).splitlines()[0] == "3 2 [7, 8]", "when nobody writes it"


def test_a_change_waits_for_the_batch_and_not_for_who_closes(lake: SmallLake) -> None:
    path = LakeReader(lake.path).path
    marking = threading.Thread(
        target=lambda: stores.open(lake.path).mark("reports", ids=[1], reason="waited")
    )
    with lake.lake.batch():
        marking.start()
        time.sleep(0.3)
        with stores.open(lake.path) as store:
            assert store.marks().num_rows == 0
        lake.close()
    marking.join(timeout=20)
    assert not marking.is_alive()
    with stores.open(lake.path) as store:
        assert store.marks()["reason"].to_pylist() == ["waited"]
        assert store._reader.path == path
    lake.lake = LakeWriter.open(lake.path)


def test_readers_go_on_while_files_vanish(lake: SmallLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is deleted after a reader has looked, and before it reads."""
    with stores.open(lake.path) as store, stores.open(lake.path) as other:
        assert whole(store) == "before"
        look, once = LakeReader.look, list[Callable[[], object]]()
        once.append(lambda: other.erase("reports", ids=[2]))

        def looking(self: LakeReader) -> None:
            look(self)
            if self is store._reader and once:
                once.pop()()

        monkeypatch.setattr(LakeReader, "look", looking)
        found = store._reader.query("SELECT speed FROM record_1 ORDER BY 1")
        assert found["speed"].to_pylist() == [10, 30]
        assert whole(store) == "after"


@pytest.mark.spark
def test_what_was_replaced_before_goes_too(
    lake: SmallLake, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.store.lake.compacting.FEW", 1)
    compact(lake.lake, spark)
    folder = tmp_path / "lake" / "record_1"
    assert len(list(folder.glob("*.parquet"))) == 3, "one stands for two, which are still there"
    with stores.open(lake.path) as store:
        store.mark("reports", ids=[3])
        assert store.erase("reports", ids=[2]).copies == 1
        assert whole(store) == "after"
        assert len(list(folder.glob("*.parquet"))) == 1
        compact(lake.lake, spark, keep_hours=0)
        assert whole(store) == "after"
        assert rows(store.marked(), "result_id") == [(8,)]


def test_copies_have_marks_and_erasures(lake: SmallLake, tmp_path: Path) -> None:
    with stores.open(lake.path) as store:
        store.mark("reports", where="speed < 100", reason="slow")
        store.unmark(store.mark("reports", ids=[1]).number)
        store.erase("reports", ids=[2], reason="asked")
    places = [lake.path, str(tmp_path / "file"), f"delta:{tmp_path / 'again'}"]
    for before, after in pairwise(places):
        copying.copy(before, after)
        with stores.open(after) as store:
            assert rows(store.marks(), "mark", "reason", "records") == [(1, "slow", 2)]
            assert whole(store) == "after"
            assert rows(store._reader.query("SELECT id, reason FROM erased")) == [(2, "asked")]
    with stores.open(places[-1]) as store:
        assert store.mark("reports", ids=[3]).number == 3, "numbers go on"


def test_records_by_a_wide_file(tmp_path: Path) -> None:
    """A file of several row groups is rewritten without the rows that go."""
    many = 150_000
    with SmallLake(f"delta:{tmp_path / 'lake'}") as lake:
        columns = REPORT.append(pa.field("tags", pa.list_(pa.string())))
        lake.register(flow(source(columns=columns), sink()))
        kept = reports(*((n, n % 50, n % 7) for n in range(many)))
        kept = kept.append_column("tags", pa.array([["a", str(n)] for n in range(many)]))
        lake.commit(batch(0, stopped((7, 70, "a", 1, [123])), kept))
        with stores.open(lake.path) as store:
            ids = list(range(100, many, 1000))
            assert store.erase("reports", ids=ids).copies == len(ids)
            left = store._reader.query("SELECT __hw_id AS id, tags FROM record_1 ORDER BY 1")
            expected = [n for n in range(many) if n % 1000 != 100]
            assert left["id"].to_pylist() == expected
            assert left["tags"].to_pylist() == [["a", str(n)] for n in expected]
        table = lake.lake.table("record_1")
        table.look()
        [action] = pa.table(table._table.get_add_actions(flatten=True)).to_pylist()
        assert (action["num_records"], action["min.__hw_id"]) == (len(expected), 0)
        told = {name for name, most in action.items() if "max." in name and most is not None}
        assert told == {"max.__hw_id", "max.__hw_seq"}


def test_sets_that_an_erasure_stores_are_edges(lake: SmallLake) -> None:
    """Those of results that have edges are passed over; sorted runs and counts have the others."""
    given = [(1, 1, 5, 1, 1), (1, 1, 5, 1, 2), (2, 1, 6, 1, 2), (1, 1, 7, 1, 3)]
    edges = pa.table(dict(zip(EDGES.names, zip(*given, strict=True), strict=True))).cast(EDGES)
    with stores.open(lake.path) as store:
        ask = store._reader.query
        for number, part in ((2, edges.slice(0, 2)), (1, edges)):
            change = Erase(1, np.array([number]), "", 2, edges=part)
            assert apply(store._reader.path, change) == 1
        expected = sorted([(7, 1), (7, 2), (8, 3), (5, 1), (5, 2), (6, 2)])
        assert sorted(rows(ask("SELECT result_id, source_id FROM edges"))) == expected
        assert rows(store.batches(), "edges") == [(4,), (2,)]
        assert rows(ask("SELECT * FROM edges_by_record")) == []
        lake.lake.note("compacted", "1")
        found = ask("SELECT result_id, source_id FROM edges_by_record")
        assert sorted(rows(found)) == [(5, 1), (5, 2)]
        lake.lake.note("forgotten", "1")
        assert (6, 2) in rows(ask("SELECT result_id, source_id FROM edges"))
        assert (5, 1) not in rows(ask("SELECT result_id, source_id FROM edges"))


def test_many_ids(lake: SmallLake) -> None:
    with stores.open(lake.path) as store:
        store.mark("reports", ids=list(range(50_000)), reason="many")
        assert rows(store.marks(), "records") == [(50_000,)]
        assert rows(store.marked(), "result_id") == [(7,), (8,)]


def test_the_versions_that_are_meant_are_told(lake: SmallLake) -> None:
    with stores.open(lake.path) as store:
        store.mark("reports", ids=[1])
        [pins] = store._reader.query("SELECT value FROM meta WHERE key = 'changes'").to_pylist()
    assert set(json.loads(pins["value"])) == {"marks", "marked", "erased", "stored_sets"}


@pytest.mark.spark
def test_while_a_flow_runs_and_the_records_come_again(spark: SparkSession, tmp_path: Path) -> None:
    """Tasks store no contents of what was erased, in this process and while it runs."""
    address = f"delta:{tmp_path / 'lake'}"
    write(tmp_path / "data", 0, range(20))
    run = traffic(spark, tmp_path / "data", keep="all").start(
        store=address, checkpoint=str(tmp_path / "checkpoint"), capture="eager"
    )
    with run:
        _while_it_runs(address, tmp_path / "data")
    files = (tmp_path / "lake" / "record_1").glob("*.parquet")
    left = {one for path in files for one in pq.read_table(path)["id"].to_pylist()}
    assert left == {one for one in range(40) if one % 3 != 1}


def _while_it_runs(address: str, data: Path) -> None:
    while not LakeWriter.is_open(Place.of(address)) or not stores.open(address).batches().num_rows:
        time.sleep(0.1)
    with stores.open(address) as store:
        assert store.mark("reports", where="k = 1", reason="one").records == 7
        assert store.erase("reports", ids=[4, 25]).copies == 1
        write(data, 1, range(40))
        while not store._reader.query("SELECT 1 FROM record_1 WHERE __hw_id = 39").num_rows:
            time.sleep(0.1)
        kept = store._reader.query("SELECT __hw_id AS id FROM record_1")["id"].to_pylist()
        assert sorted(kept) == [one for one in range(40) if one not in (4, 25)]
        assert rows(store.marks(), "records") == [(12,)], "25 has no contents to match by"
        assert store.erase("reports", mark=1).copies == 11
        assert store.forward("reports", 4).num_rows > 0
