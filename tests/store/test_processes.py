"""A store between processes: reads while a flow runs, owners that come, go and are killed."""

from __future__ import annotations

import json
import os
import signal
import stat
import threading
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import flight

from headwater import store as stores
from headwater.errors import HeadwaterError, StoreError
from headwater.store import EmbeddedWriter, StoreReader
from headwater.store.commands import apply
from headwater.store.marks import Mark, Unmark, packed
from headwater.store.schema import SERVING
from headwater.store.serving import FlightReader, Gone
from tests.store.small import batch, flow, output, python, reports, rows, stopped

READ = """
    import sys
    from headwater import store as stores
    with stores.open(sys.argv[1]) as store:
        print(store.results("stopped").num_rows, store.backward("stopped", 7)["id"].to_pylist(),
              store.forward("reports", 1)["result_id"].to_pylist())
    """


def filled(path: Path) -> EmbeddedWriter:
    writer = EmbeddedWriter.open(path)
    writer.register(flow())
    writer.commit(batch(0, stopped((7, 0, "a", 2, [1, 2])), reports((1, 0, 0), (2, 0, 0))))
    return writer


def test_another_process_reads_while_the_owner_lives(tmp_path: Path) -> None:
    with filled(tmp_path) as writer:
        assert output(READ, tmp_path) == "1 [1, 2] [7]"
        writer.commit(batch(1, stopped((8, 0, "b", 1, [1]))))
        assert output(READ, tmp_path) == "2 [1, 2] [7, 8]"
    assert output(READ, tmp_path) == "2 [1, 2] [7, 8]"


def test_the_note_is_private_and_goes_with_the_owner(tmp_path: Path) -> None:
    writer = filled(tmp_path)
    note = tmp_path / SERVING
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
    assert json.loads(note.read_text())["location"].startswith("grpc+tcp://127.0.0.1:")
    writer.close()
    assert {file.name for file in tmp_path.iterdir()} == {"headwater.duckdb"}


def test_a_call_without_the_token_is_refused(tmp_path: Path) -> None:
    with filled(tmp_path):
        note = json.loads((tmp_path / SERVING).read_text())
        with flight.FlightClient(note["location"]) as client:
            for headers in ([], [(b"authorization", b"Bearer wrong")]):
                options = flight.FlightCallOptions(headers=headers)
                with pytest.raises(flight.FlightUnauthenticatedError):
                    client.do_get(flight.Ticket(b""), options).read_all()
                with pytest.raises(flight.FlightUnauthenticatedError):
                    list(client.list_flights(options=options))


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM edges",
        "INSERT INTO meta VALUES ('a', 'b')",
        "SELECT 1; DROP TABLE edges",
        "DROP TABLE edges",
        "SET GLOBAL memory_limit = '1GB'",
        "PRAGMA enable_profiling",
        "CHECKPOINT",
        "ATTACH '/tmp/other.duckdb'",
        "COPY edges TO '/tmp/edges.csv'",
        "SELECT * FROM read_text('/etc/hostname')",
        "EXPLAIN ANALYZE DELETE FROM edges",
    ],
)
def test_a_reader_can_only_read(tmp_path: Path, sql: str) -> None:
    with filled(tmp_path):
        for reader in (FlightReader(tmp_path), StoreReader(tmp_path)):
            with pytest.raises(HeadwaterError):
                reader.query(sql)
            assert reader.query("SELECT count(*) FROM edges")[0][0].as_py() == 2
            reader.close()


def test_a_reader_follows_the_owner(tmp_path: Path) -> None:
    filled(tmp_path).close()
    store = stores.open(tmp_path)
    assert store.results("stopped").num_rows == 1
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.commit(batch(1, stopped((8, 0, "b", 1, [1]))))
        assert store.results("stopped").num_rows == 2
    assert store.results("stopped").num_rows == 2
    owner = python(
        """
        import sys
        from headwater.store import EmbeddedWriter
        from tests.store.small import batch, stopped
        writer = EmbeddedWriter.open(sys.argv[1])
        writer.commit(batch(2, stopped((9, 0, "c", 1, [1]))))
        print("open", flush=True)
        sys.stdin.readline()
        """,
        tmp_path,
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == "open\n", "the local reader let go of the file"
    assert store.results("stopped").num_rows == 3
    owner.send_signal(signal.SIGKILL)
    owner.communicate()
    assert (tmp_path / SERVING).exists(), "a killed owner leaves its note"
    assert store.results("stopped").num_rows == 3
    store.close()
    with EmbeddedWriter.open(tmp_path, wait=5) as writer:
        assert writer.last_batch("q") == 2


def test_a_note_that_names_another_server_does_not_matter(tmp_path: Path) -> None:
    filled(tmp_path / "one").close()
    with filled(tmp_path / "two"):
        note = json.loads((tmp_path / "two" / SERVING).read_text())
        (tmp_path / "one" / SERVING).write_text(json.dumps({**note, "token": "old"}))
        with pytest.raises(Gone):
            FlightReader(tmp_path / "one").query("SELECT 1")
        assert output(READ, tmp_path / "one") == "1 [1, 2] [7]"


def test_a_busy_reader_does_not_keep_a_writer_out(tmp_path: Path) -> None:
    filled(tmp_path).close()
    reader = python(
        """
        import sys
        from headwater import store as stores
        store = stores.open(sys.argv[1])
        print("reading", flush=True)
        while store.results("stopped").num_rows < 2:
            pass
        print("seen", flush=True)
        """,
        tmp_path,
    )
    assert reader.stdout is not None
    assert reader.stdout.readline() == "reading\n"
    with EmbeddedWriter.open(tmp_path, wait=20) as writer:
        writer.commit(batch(1, stopped((8, 0, "b", 1, [1]))))
        assert reader.stdout.readline() == "seen\n"
        reader.communicate()


def test_an_idle_reader_lets_go(tmp_path: Path) -> None:
    filled(tmp_path).close()
    with stores.open(tmp_path) as store:
        store.results("stopped")
        began = time.monotonic()
        output(
            """
            import sys
            from headwater.store import EmbeddedWriter
            EmbeddedWriter.open(sys.argv[1]).close()
            """,
            tmp_path,
        )
        assert time.monotonic() - began < 20


@pytest.mark.parametrize("moment", [0.0, 0.02, 0.05, 0.1, 0.2, 0.4])
def test_a_killed_owner_leaves_whole_batches(tmp_path: Path, moment: float) -> None:
    per_batch = 3000
    owner = python(
        """
        import sys
        from headwater.store import EmbeddedWriter
        from tests.store.small import batch, flow, reports, stopped
        per_batch = int(sys.argv[2])
        writer = EmbeddedWriter.open(sys.argv[1], compact_edges=2 * per_batch)
        writer.register(flow())
        for number in range(10_000):
            ids = range(number * per_batch, (number + 1) * per_batch)
            made = batch(
                number,
                stopped(*((id, 0, "a", 1, [id, id + 1]) for id in ids), unique=True),
                reports(*((id, 0, 0) for id in ids)),
            )
            writer.commit(made)
            print(number, flush=True)
        """,
        tmp_path,
        per_batch,
    )
    assert owner.stdout is not None
    for _ in range(3):
        owner.stdout.readline()
    time.sleep(moment)
    owner.send_signal(signal.SIGKILL)
    said = owner.communicate()[0].split()
    last = int(said[-1]) if said else 2
    for _ in range(2):
        with stores.open(tmp_path) as store:
            held = rows(store.batches(), "batch", "results", "edges", "records")
            assert [row[0] for row in held] == list(range(len(held)))
            assert last + 1 <= len(held) <= last + 2, "what was said to be committed is there"
            assert all(row[1:] == (per_batch, 2 * per_batch, per_batch) for row in held)
            count = per_batch * len(held)
            assert sorted(store.results("stopped")["result_id"].to_pylist()) == list(range(count))
            assert store.backward("stopped", columns=False).num_rows == 2 * count
            found = store.forward("reports", list(range(0, count, 997)))
            assert set(rows(found, "id", "result_id")) == {
                (key, result)
                for key in range(0, count, 997)
                for result in (key - 1, key)
                if result >= 0
            }
        # Once from the log that the owner left, once after a new owner has taken it over.
        with EmbeddedWriter.open(tmp_path, wait=5) as writer:
            assert writer.last_batch("q") == len(held) - 1


def test_owners_of_other_stores_do_not_mix(tmp_path: Path) -> None:
    with filled(tmp_path / "one") as one, filled(tmp_path / "two") as two:
        two.commit(batch(1, stopped((8, 0, "b", 1, [1]))))
        assert one is not two
        assert output(READ, tmp_path / "one") == "1 [1, 2] [7]"
        assert output(READ, tmp_path / "two") == "2 [1, 2] [7, 8]"
        assert os.getpid() == json.loads((tmp_path / "one" / SERVING).read_text())["pid"]


MARK = """
    import sys
    from headwater import store as stores
    with stores.open(sys.argv[1]) as store:
        report = store.mark("reports", where="speed = 0", reason="through the owner")
        print(report.number, report.records, report.results["result_id"].to_pylist())
        print(store.erase("reports", ids=[2]).copies)
        for change in (lambda: store.unmark(5), lambda: store.mark("reports", where="sped")):
            try:
                change()
            except Exception as error:
                print(type(error).__name__, error)
    """


def test_another_process_marks_and_erases_through_the_owner(tmp_path: Path) -> None:
    with filled(tmp_path) as writer:
        said = output(MARK, tmp_path).splitlines()
        assert said[:2] == ["1 2 [7]", "1"]
        assert said[2] == "UnknownName no mark 5; the store has: 1"
        assert said[3].startswith("PredicateError where='sped' can't be evaluated: ")
        writer.commit(batch(1, stopped((8, 0, "b", 1, [3])), reports((2, 0, 0), (3, 0, 0))))
        with stores.open(tmp_path) as store:
            assert rows(store.marked(), "result_id", "reason") == [
                (7, "through the owner"),
                (8, "through the owner"),
            ]
            assert rows(store.backward("stopped", 7), "id", "speed") == [(1, 0), (2, None)]
    with stores.open(tmp_path) as store:
        store.unmark(1)
        assert store.marks().num_rows == 0


def test_many_ids_reach_the_owner(tmp_path: Path) -> None:
    many = 1_000_000
    with filled(tmp_path):
        change = Mark(1, np.arange(many), "all of them", None, 0)
        assert FlightReader(tmp_path).apply(change) == 1
        with stores.open(tmp_path) as store:
            assert rows(store.marks(), "records") == [(many,)]


def test_a_change_without_the_token_or_of_no_known_kind_is_refused(tmp_path: Path) -> None:
    with filled(tmp_path):
        note = json.loads((tmp_path / SERVING).read_text())
        headers = [(b"authorization", f"Bearer {note['token']}".encode())]
        with flight.FlightClient(note["location"]) as client:
            with pytest.raises(flight.FlightUnauthenticatedError):
                list(client.do_action(flight.Action("change", packed(Unmark(1)))))
            options = flight.FlightCallOptions(headers=headers)
            for action in (flight.Action("drop", b""), flight.Action("change", b"nonsense")):
                with pytest.raises(pa.ArrowException):
                    list(client.do_action(action, options))


def test_a_change_that_waits_does_not_keep_the_owner_from_closing(tmp_path: Path) -> None:
    writer = filled(tmp_path)
    marking = threading.Thread(target=lambda: apply(tmp_path, Mark(1, np.array([1]), "", None, 0)))
    with writer._lock:
        marking.start()
        time.sleep(0.3)
        writer.close()
    marking.join(timeout=20)
    assert not marking.is_alive()
    with stores.open(tmp_path) as store:
        assert store.marks().num_rows == 1


def test_a_place_that_can_only_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path).close()

    def refused(*_: object, **__: object) -> None:
        raise duckdb.IOException('Cannot open file "headwater.duckdb": Read-only file system')

    monkeypatch.setattr("headwater.store.embedded.connect", refused)
    with stores.open(tmp_path) as store:
        with pytest.raises(StoreError) as error:
            store.mark("reports", ids=[1])
        assert str(error.value) == (
            f"can't write to the store {tmp_path}; make the directory writable or use another one"
        )
        assert store.marks().num_rows == 0
