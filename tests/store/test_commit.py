"""One batch, one transaction: what a commit writes, and that it writes all or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.errors import HeadwaterError, IdCollision, StoreError, UnknownName
from headwater.store import EmbeddedWriter, ResultSet, StoreReader
from headwater.store.occurrences import mixed
from tests.store.small import at, batch, flow, reports, rows, sink, source, stopped


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[EmbeddedWriter]:
    with EmbeddedWriter.open(tmp_path / "store") as writer:
        writer.register(flow())
        yield writer


def edges(writer: EmbeddedWriter) -> set[tuple[int, int]]:
    found = StoreReader(writer.path).query("SELECT result_id, source_id FROM edges")
    assert len(set(rows(found))) == found.num_rows, "an edge is stored twice"
    return set(rows(found))


def everything(writer: EmbeddedWriter) -> dict[str, list[tuple[object, ...]]]:
    reader = StoreReader(writer.path)
    tables = rows(reader.query("SELECT table_name FROM duckdb_tables() ORDER BY 1"))
    return {name: rows(reader.query(f"SELECT * FROM {name} ORDER BY ALL")) for (name,) in tables}


def nth(id: int, n: int) -> int:
    return int(mixed(pa.array([id]).to_numpy(), pa.array([n]).to_numpy())[0])


def test_a_commit_says_what_it_wrote(writer: EmbeddedWriter) -> None:
    done = writer.commit(
        batch(
            0,
            stopped((7, 9, "a", 2, [1, 2]), (8, 9, "b", 1, [3]), (9, 9, "c", 0, None)),
            reports((1, 0, 0), (2, 1, 0), (3, 2, 0), (4, 3, 50)),
        )
    )
    assert (done.held, done.results, done.edges, done.records) == (False, 3, 3, 4)
    assert done.result_ids["stopped"].to_pylist() == [7, 8, 9]
    assert edges(writer) == {(7, 1), (7, 2), (8, 3)}
    assert writer.holds("q", 0)
    assert not writer.holds("q", 1)
    assert not writer.holds("other", 0)
    assert writer.last_batch("q") == 0
    assert writer.last_batch("other") is None


def test_a_record_is_once_in_a_set(writer: EmbeddedWriter) -> None:
    done = writer.commit(batch(0, stopped((7, 0, "a", 3, [2, 1, 2, 2]), (8, 0, "b", 1, [2]))))
    assert done.edges == 3
    assert edges(writer) == {(7, 1), (7, 2), (8, 2)}


def test_a_set_of_one_may_be_a_plain_id(writer: EmbeddedWriter) -> None:
    part = stopped((7, 0, "a", 1, None), (8, 0, "b", 1, None))
    part = ResultSet(part.rows, {"reports": pa.chunked_array([[5, None]], pa.int64())})
    writer.commit(batch(0, part))
    assert edges(writer) == {(7, 5)}


def test_a_batch_may_be_empty(writer: EmbeddedWriter) -> None:
    writer.commit(batch(0, stopped(), reports()))
    writer.commit(batch(1))
    assert writer.last_batch("q") == 1


def test_repeated_ids_in_a_batch_get_their_own(writer: EmbeddedWriter) -> None:
    done = writer.commit(
        batch(0, stopped((7, 0, "a", 1, [1]), (8, 0, "b", 1, [2]), (7, 0, "c", 1, [3])))
    )
    assert done.result_ids["stopped"].to_pylist() == [7, 8, nth(7, 2)]
    assert edges(writer) == {(7, 1), (8, 2), (nth(7, 2), 3)}


def test_repeated_ids_across_batches_count_on(writer: EmbeddedWriter) -> None:
    for number in range(3):
        row = (7, 0, "a", number, [number])
        done = writer.commit(batch(number, stopped(row, row)))
        first = 2 * number + 1
        assert done.result_ids["stopped"].to_pylist() == [
            nth(7, first) if number else 7,
            nth(7, first + 1),
        ]
    assert len(edges(writer)) == 6


def test_a_renumbered_id_that_is_itself_asked_for_is_refused(writer: EmbeddedWriter) -> None:
    writer.commit(batch(0, stopped((7, 0, "a", 1, [1]), (7, 0, "b", 1, [2]))))
    before = everything(writer)
    with pytest.raises(IdCollision):
        writer.commit(batch(1, stopped((3, 0, "c", 1, [3]), (nth(7, 2), 0, "d", 1, [4]))))
    assert everything(writer) == before


def test_a_retried_batch_is_answered_and_not_written(writer: EmbeddedWriter) -> None:
    first = batch(0, stopped((7, 0, "a", 1, [1]), (7, 0, "b", 1, [2])), reports((1, 0, 0)))
    second = batch(1, stopped((7, 0, "c", 1, [3])))
    done = [writer.commit(first), writer.commit(second)]
    before = everything(writer)
    again = [writer.commit(first), writer.commit(second)]
    assert everything(writer) == before
    assert [one.held for one in again] == [True, True]
    for one, other in zip(done, again, strict=True):
        assert one.result_ids["stopped"].to_pylist() == other.result_ids["stopped"].to_pylist()
        assert (one.results, one.edges, one.records) == (other.results, other.edges, other.records)


def test_queries_of_one_store_have_their_own_batches(writer: EmbeddedWriter) -> None:
    writer.register(flow(name="other", query_id="r"))
    writer.commit(batch(0, stopped((7, 0, "a", 1, [1]))))
    writer.commit(batch(0, stopped((7, 0, "b", 1, [2])), query_id="r"))
    assert writer.holds("q", 0)
    assert writer.holds("r", 0)
    assert edges(writer) == {(7, 1), (7, 2)}
    found = StoreReader(writer.path).query("SELECT DISTINCT sink_no, source_no FROM edges")
    assert set(rows(found)) == {(1, 1), (2, 2)}


def test_a_record_that_comes_again_is_stored_once(writer: EmbeddedWriter) -> None:
    assert writer.commit(batch(0, records=reports((1, 0, 30), (1, 0, 30)))).records == 1
    assert writer.commit(batch(1, records=reports((1, 0, 30), (2, 0, 30)))).records == 1
    assert len(everything(writer)["record_1"]) == 2


@pytest.mark.parametrize("stored", [True, False], ids=["in the store", "in the batch"])
def test_two_records_with_one_id_roll_the_batch_back(writer: EmbeddedWriter, stored: bool) -> None:
    writer.commit(batch(0, records=reports((4, 0, 30))))
    before = everything(writer)
    clash = reports((4, 5, 31)) if stored else reports((5, 5, 30), (6, 5, 1), (5, 5, 31))
    good = stopped((7, 0, "a", 1, [4]))
    with pytest.raises(IdCollision) as error:
        writer.commit(batch(1, good, clash, files={"reports": {1: "/data/a"}}))
    assert str(error.value) == (
        f"two different records of source 'reports' have the id {4 if stored else 5} "
        "(made from tid); give id= the columns that identify a record"
    )
    assert everything(writer) == before
    assert not writer.holds("q", 1)
    assert writer.commit(batch(1, good)).edges == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"stoped": stopped()}, "no sink 'traffic/stoped'"),
        ({"stopped": stopped((8, 0, "b", 1, [1]), origin="repots")}, "no source 'traffic/repots'"),
        (
            {"stopped": ResultSet(stopped().rows.drop_columns(["n"]))},
            "the rows of sink 'stopped' have the columns",
        ),
        (
            {
                "stopped": ResultSet(
                    stopped((8, 0, "b", 1, None)).rows, {"reports": pa.chunked_array([[1, 2]])}
                )
            },
            "has 1 results but 2 provenance sets",
        ),
        (
            {
                "stopped": ResultSet(
                    stopped((8, 0, "b", 1, None)).rows.set_column(
                        0, "__hw_id", pa.array([None], pa.int64())
                    )
                )
            },
            "has no id (null)",
        ),
    ],
    ids=["sink", "source", "columns", "sets", "null id"],
)
def test_a_wrong_batch_leaves_nothing(
    writer: EmbeddedWriter, wrong: dict[str, ResultSet], message: str
) -> None:
    writer.register(flow(source(), sink(), sink("also")))
    before = everything(writer)
    with pytest.raises(HeadwaterError) as error:
        writer.commit(
            batch(0, {"also": stopped((1, 0, "a", 1, [1])), **wrong}, reports((1, 0, 30)))
        )
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert everything(writer) == before
    writer.commit(batch(0, {"also": stopped((1, 0, "a", 1, [1]))}))
    assert edges(writer) == {(1, 1)}


def test_what_must_happen_before_the_commit(writer: EmbeddedWriter) -> None:
    before = everything(writer)
    made = batch(0, stopped((7, 0, "a", 1, [1]), (7, 0, "b", 1, [2])), reports((1, 0, 0)))
    handed: list[object] = []

    def refuse(ids: dict[str, pa.Int64Array]) -> None:
        handed.append(ids["stopped"].to_pylist())
        raise OSError("No space left on the user's own disk")

    with pytest.raises(OSError, match="the user's own disk"):
        writer.commit(made, before_commit=refuse)
    assert everything(writer) == before
    done = writer.commit(made, lambda ids: handed.append(ids["stopped"].to_pylist()))
    assert handed == [[7, nth(7, 2)]] * 2
    assert done.result_ids["stopped"].to_pylist() == [7, nth(7, 2)]
    writer.commit(made, refuse)
    assert len(handed) == 2, "a held batch was handed on before"


def test_a_query_must_be_registered(writer: EmbeddedWriter) -> None:
    with pytest.raises(StoreError, match="query r is not registered"):
        writer.commit(batch(0, query_id="r"))


def test_a_file_keeps_its_number(writer: EmbeddedWriter) -> None:
    writer.commit(batch(0, files={"reports": {1: "/data/a", 2: "/data/b"}}))
    writer.commit(batch(1, files={"reports": {2: "/data/b", 3: "/data/c"}}))
    before = everything(writer)
    assert [row[1:] for row in before["files"]] == [(1, "/data/a"), (2, "/data/b"), (3, "/data/c")]
    with pytest.raises(IdCollision, match="file number 1 of source 'reports'"):
        writer.commit(batch(2, files={"reports": {1: "/data/d"}}))
    assert everything(writer) == before


def test_flows_of_one_process_share_the_writer(tmp_path: Path) -> None:
    one = EmbeddedWriter.open(tmp_path)
    two = EmbeddedWriter.open(tmp_path / ".." / tmp_path.name)
    assert one is two
    one.register(flow())
    one.close()
    two.commit(batch(0, stopped((7, 0, "a", 1, [1]))))
    two.close()
    with EmbeddedWriter.open(tmp_path) as again, EmbeddedWriter.open(tmp_path / "x") as other:
        assert again.store_id != other.store_id
        assert again is not one
        assert again.holds("q", 0)


def test_a_closed_writer_says_so(tmp_path: Path) -> None:
    writer = EmbeddedWriter.open(tmp_path)
    writer.close()
    writer.close()
    for ask in (lambda: writer.holds("q", 0), lambda: writer.commit(batch(0)), writer.compact):
        with pytest.raises(StoreError, match=f"the store {tmp_path} is closed; open it again"):
            ask()


def test_pruning_keeps_what_reached_a_result(writer: EmbeddedWriter) -> None:
    writer.commit(
        batch(0, stopped((7, 9, "a", 1, [1])), reports((1, 0, 0), (2, 1, 0), (3, 5, 0), (4, 6, 0)))
    )
    writer.compact()
    writer.commit(batch(1, stopped((8, 9, "b", 1, [3]))))

    def kept() -> list[object]:
        return [row[0] for row in everything(writer)["record_1"]]

    assert writer.prune("reports", at(6)) == 1
    assert kept() == [1, 3, 4]
    writer.commit(batch(2, records=reports((5, 0, 0), (6, 7, 0))))
    assert writer.prune("reports", at(7)) == 2, "4, that became old, and 5, that came late"
    assert kept() == [1, 3, 6]
    with pytest.raises(UnknownName):
        writer.prune("report", at(7))
