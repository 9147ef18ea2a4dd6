"""Marks: which records they hold, and which results hold a marked record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from headwater import store as stores
from headwater.errors import HeadwaterError, PredicateError, StoreError, UnknownId, UnknownName
from headwater.query import Store
from headwater.store import EmbeddedWriter
from headwater.store.ids import identity_hash
from tests.lake.small_lake import Writer, opened
from tests.store.small import TIME, at, batch, flow, reports, rows, sink, source, stopped
from tests.support.streams import Lab

PEOPLE = pa.schema([("tid", pa.int64()), ("name", pa.string()), ("ts", TIME)])
ANNA, BERT, CLEO = (1, "anna", at(1)), (2, "bert", at(2)), (3, "cleo", at(3))
BROKEN = [
    ("speed >", "is not an SQL predicate"),
    ("speed > 1; DROP TABLE edges", "is not an SQL predicate"),
    ("true) UNION ALL (SELECT 99", "more than one SQL predicate|is not an SQL predicate"),
    ("", "is not an SQL predicate"),
    ("sped > 1", "can't be evaluated: .*sped"),
    ("speed > 'fast'", "can't be evaluated"),
    ("speed", None),
    ("EXISTS (SELECT * FROM read_text('/etc/hostname'))", "can't be evaluated"),
]


@pytest.fixture(params=["tail", "sorted", "lake"])
def writer(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Writer]:
    """1 and 2 made 7, 2 also made the accident 7, 3 made 8, 4 nothing; the speed is 10 × id."""
    with opened(request.param, tmp_path / "store") as writer:
        writer.register(flow(source(), sink(), sink("accidents")))
        made = {
            "stopped": stopped((7, 70, "a", 2, [1, 2]), (8, 80, "b", 1, [3])),
            "accidents": stopped((7, 75, "x", 1, [2])),
        }
        kept = reports((1, 1, 10), (2, 2, 20), (3, 3, 30), (4, 4, 40))
        writer.commit(batch(0, made, kept))
        if request.param == "sorted" and isinstance(writer, EmbeddedWriter):
            writer.compact()
        yield writer


@pytest.fixture
def store(writer: Writer) -> Iterator[Store]:
    with stores.open(writer.path) as store:
        yield store


def test_a_mark_holds_records_and_touches_results(store: Store) -> None:
    report = store.mark("reports", where="speed BETWEEN 20 AND 30", reason="private")
    assert (report.number, report.source, report.records) == (1, "reports", 2)
    assert report.results.schema.names == ["sink", "result_id", "event_time"]
    assert rows(report.results) == [
        ("accidents", 7, at(75)),
        ("stopped", 7, at(70)),
        ("stopped", 8, at(80)),
    ]
    assert repr(report) == ("MarkReport(number=1, source='reports', records=2, results=3)")
    assert rows(store.marks(), "mark", "source", "reason", "predicate", "records") == [
        (1, "reports", "private", "speed BETWEEN 20 AND 30", 2)
    ]
    assert store.marks().schema.field("marked_at").type == TIME
    assert rows(store.marked("accidents")) == [("accidents", 7, at(75), 1, "private")]


def test_a_mark_by_ids(store: Store) -> None:
    report = store.mark("reports", ids=[1, 4, 99], reason="asked")
    assert (report.records, rows(report.results, "sink", "result_id")) == (3, [("stopped", 7)])
    assert store.mark("reports", ids=3).records == 1
    assert rows(store.marked(), "sink", "result_id", "mark") == [
        ("stopped", 7, 1),
        ("stopped", 8, 2),
    ]
    assert store.marks()["predicate"].to_pylist() == [None, None]


def test_a_result_with_records_of_two_marks_has_a_row_for_each(store: Store) -> None:
    store.mark("reports", ids=[1, 2], reason="a")
    store.mark("reports", where="speed = 20", reason="b")
    assert rows(store.marked("stopped"), "result_id", "mark", "reason") == [
        (7, 1, "a"),
        (7, 2, "b"),
    ]


def test_nothing_is_marked_to_begin_with(store: Store) -> None:
    assert (store.marks().num_rows, store.marked().num_rows) == (0, 0)
    assert store.marked().schema.names == ["sink", "result_id", "event_time", "mark", "reason"]
    assert list(store.watch("stopped", marked=True, after=0, wait=False)) == []


def test_later_records_that_match_are_marked(writer: Writer, store: Store) -> None:
    store.mark("reports", where="speed >= 40 and id <> 6", reason="fast")
    assert store.marked().num_rows == 0
    made = stopped((9, 90, "c", 2, [4, 3]), (10, 95, "d", 1, [5]), (11, 96, "e", 1, [6]))
    writer.commit(batch(1, made, reports((5, 5, 50), (6, 6, 60))))
    assert rows(store.marked(), "result_id") == [(9,), (10,)], "an old record, and a new one"
    assert rows(store.marks(), "records") == [(2,)]
    # One that had come before is not marked by a batch that delivers it again.
    writer.commit(batch(2, stopped((12, 97, "f", 1, [4])), reports((4, 4, 40))))
    assert rows(store.marked(), "result_id") == [(9,), (10,), (12,)]
    assert rows(store.marks(), "records") == [(2,)]


def test_a_result_of_a_marked_record_is_marked_as_it_comes(writer: Writer, store: Store) -> None:
    store.mark("reports", ids=[4, 77])
    watching = store.watch("stopped", marked=True, timeout=5)
    made = stopped((9, 90, "c", 2, [4, 3]), (10, 95, "d", 1, [3]), (11, 96, "e", 1, [77]))
    writer.commit(batch(1, made, reports((77, 5, 1))))
    first, second = next(watching), next(watching)
    assert (first.result_id, first.records["id"].to_pylist()) == (9, [3, 4])
    assert second.result_id == 11, "marked before it was delivered"
    matched = store.watch("stopped", marked=True, where="n = 2", after=0, wait=False)
    assert [match.result_id for match in matched] == [9]


def test_unmark(store: Store) -> None:
    store.mark("reports", ids=[1])
    second = store.mark("reports", where="speed = 30")
    store.unmark(second.number)
    assert rows(store.marks(), "mark") == [(1,)]
    assert rows(store.marked(), "result_id", "mark") == [(7, 1)]
    assert store.mark("reports", ids=[2]).number == 3, "a number is never used again"
    with pytest.raises(UnknownName, match=r"no mark 2; the store has: 1, 3"):
        store.unmark(second.number)


@pytest.mark.parametrize(("where", "says"), BROKEN)
def test_a_broken_predicate_writes_nothing(store: Store, where: str, says: str | None) -> None:
    if says is None:
        assert store.mark("reports", where=where).records == 4, "a number is true unless 0"
        return
    for change in (store.mark, store.erase):
        with pytest.raises(PredicateError, match=says) as error:
            change("reports", where=where)
        assert "\n" not in str(error.value)
    assert store.marks().num_rows == 0
    assert store.backward("stopped", 8)["speed"].to_pylist() == [30]


def test_wrong_names_and_ids_write_nothing(store: Store) -> None:
    with pytest.raises(UnknownName, match="no source 'report'; .* did you mean 'reports'"):
        store.mark("report", ids=[1])
    with pytest.raises(UnknownId, match="can't be an id of source 'reports'"):
        store.mark("reports", ids=[1, "x"])
    with pytest.raises(UnknownName, match="no sink 'stoped'"):
        store.marked("stoped")
    for given in ({}, {"where": "true", "ids": [1]}):
        with pytest.raises(HeadwaterError, match="by exactly one of where, ids"):
            store.mark("reports", **given)
    assert store.marks().num_rows == 0


def test_a_source_whose_contents_nobody_has(tmp_path: Path) -> None:
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow(source(keep="none", format="kafka"), sink()))
        writer.commit(batch(0, stopped((7, 70, "a", 2, [1, 2]))))
        with stores.open(tmp_path) as store:
            with pytest.raises(StoreError, match="keeps no records and can't be read again"):
                store.mark("reports", where="speed = 0")
            assert store.marks().num_rows == 0
            assert rows(store.mark("reports", ids=[2]).results, "result_id") == [(7,)]


def people(tmp_path: Path, ids: list[int], **definition: object) -> Store:
    """A store that keeps no record of people, in whose files the three are."""
    data = tmp_path / "data"
    data.mkdir()
    table = [pa.array(column) for column in zip(ANNA, BERT, CLEO, strict=True)]
    pq.write_table(pa.table(table, schema=PEOPLE), data / "a.parquet")
    given = {"keep": "none", "format": "parquet", "event_time": "ts", "path": str(data)}
    given["schema"] = "tid bigint, name string, ts timestamp"
    made = stopped(*((70 + one, 9, "a", 1, [one]) for one in ids))
    with EmbeddedWriter.open(tmp_path / "store") as writer:
        writer.register(flow(source(columns=PEOPLE, **(given | definition)), sink()))
        writer.commit(batch(0, made, files={"reports": {5: str(data / "a.parquet")}}))
    return stores.open(tmp_path / "store")


def test_records_that_are_only_in_the_source_s_files(tmp_path: Path) -> None:
    with people(tmp_path, [1, 3]) as store:
        report = store.mark("reports", where="name < 'c' AND event_time < '2024-05-02'")
        assert (report.records, rows(report.results, "result_id")) == (2, [(71,)])
        outside = "tid IN (SELECT 1 FROM read_text('/etc/hostname'))"
        with pytest.raises(PredicateError, match="can't be evaluated"):
            store.mark("reports", where=outside)
        with pytest.raises(PredicateError, match="can't be evaluated: .*Could not convert"):
            store.mark("reports", where="name::INT > 1")
        (tmp_path / "data" / "a.parquet").unlink()
        with pytest.raises(StoreError, match="data is gone; put it back, or give ids= in place"):
            store.mark("reports", where="true")
        assert store.marks()["mark"].to_pylist() == [1]


def test_records_by_their_place_in_a_file(tmp_path: Path) -> None:
    places = [5 << 32 | row for row in range(3)]
    with people(tmp_path, places, id={"kind": "position", "columns": []}) as store:
        report = store.mark("reports", where="name = 'bert'")
        assert rows(report.results, "result_id") == [(70 + places[1],)]


@pytest.mark.spark
def test_records_that_only_spark_can_identify(spark: SparkSession, tmp_path: Path) -> None:
    by_name = {"kind": "hash", "columns": ["tid", "name"], "types": ["bigint", "string"]}
    ids = [identity_hash(row[:2], ["bigint", "string"]) for row in (ANNA, BERT, CLEO)]
    with people(tmp_path, ids, id=by_name) as store:
        report = store.mark("reports", where="name <> 'bert' AND ts > '2024-05-01 00:00:01Z'")
        assert rows(report.results, "result_id") == [(70 + ids[2],)]


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["file", pytest.param("lake", marks=pytest.mark.long)])
def test_marks_and_erasures_of_a_lazily_captured_sink(
    spark: SparkSession, flow: hw.Flow, lab: Lab, kind: str
) -> None:
    """Its sets are found by a replay, before and after the contents are gone from the store."""
    address = ("delta:" if kind == "lake" else "") + str(lab.home / "lazy")
    text = """
        1 |  0 | 1 | 5
        2 |  5 | 2 | 6
        3 | 12 | 1 | 7
        ---
        4 | 31 | 1 | 8
        """
    copies = lab.source(flow, "copies", text, keep="all")
    files = lab.source(flow, "files", text)
    for name, frame in (("of_copies", copies), ("of_files", files)):
        window = F.window("ts", "10 seconds")
        flow.sink(name, frame.groupBy("k", window).agg(F.sum("v").alias("v")))
    run = flow.start(store=address, capture="ancestors", available_now=True)
    run.wait()
    with hw.open(address) as store:
        by_v = {
            sink: {row["v"]: row["result_id"] for row in store.results(sink).to_pylist()}
            for sink in ("of_copies", "of_files")
        }
        assert set(by_v["of_files"]) == {5, 6, 7}
        store.mark("files", where="k = 1 AND v < 8", reason="one")
        expected = {by_v["of_files"][5], by_v["of_files"][7]}
        assert set(store.marked()["result_id"].to_pylist()) == expected
        found = store.watch("of_files", marked=True, after=0, wait=False)
        assert {match.result_id for match in found} == expected

        report = store.erase("files", where="v = 5")
        assert rows(report.results, "sink", "result_id") == [("of_files", by_v["of_files"][5])]
        assert report.copies == 0, "they are in the source's files alone"
        assert rows(store.backward("of_files", by_v["of_files"][5]), "id", "v") == [(1, None)]
        assert rows(store.forward("files", 1), "result_id") == [(by_v["of_files"][5],)]
        assert rows(store.backward("of_files", by_v["of_files"][6]), "id", "v") == [(2, 6)]
        assert set(store.marked()["result_id"].to_pylist()) == expected
        for refused in (
            lambda: store.replay("of_files", by_v["of_files"][5]),
            lambda: store.backward("of_files", by_v["of_files"][5], to="aggregate-1"),
        ):
            with pytest.raises(HeadwaterError, match="a record that was erased"):
                refused()

        with pytest.raises(StoreError, match=r"can't erase records of source 'copies' yet"):
            store.erase("copies", ids=[1])
    run.finish()
    with hw.open(address) as store:
        assert rows(store.forward("files", 1), "result_id") == [(by_v["of_files"][5],)]
        report = store.erase("copies", ids=[1])
        by_id = {row["v"]: row["result_id"] for row in store.results("of_copies").to_pylist()}
        assert (report.copies, rows(report.results, "result_id")) == (1, [(by_id[5],)])
        found = rows(store.backward("of_copies"), "result_id", "id", "v")
        expected_rows = {(by_id[5], 1, None), (by_id[6], 2, 6), (by_id[7], 3, 7), (by_id[8], 4, 8)}
        assert set(found) == expected_rows, "all sets were stored before the copy went"
        assert rows(store.forward("copies", 1), "result_id") == [(by_id[5],)]
        with pytest.raises(StoreError, match="can't replay source 'copies': 1 record of it had"):
            store.replay("of_copies", by_id[6])
