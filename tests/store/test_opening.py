"""Stores that can't be opened: one line that says what, where and what to do."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from headwater import store as stores
from headwater.errors import StoreError
from headwater.store import EmbeddedWriter
from headwater.store.schema import DATABASE, FORMAT
from tests.store.small import batch, flow, python, reports, sink, source, stopped
from tests.support import need


def refused(path: Path, *, wait: float = 0.2) -> str:
    with pytest.raises(StoreError) as error:
        EmbeddedWriter.open(path, wait=wait)
    message = str(error.value)
    assert "\n" not in message
    assert str(path) in message
    return message


def test_a_store_of_another_format(tmp_path: Path) -> None:
    EmbeddedWriter.open(tmp_path).close()
    with duckdb.connect(str(tmp_path / DATABASE)) as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
    says = f"has format 99, this Headwater reads format {FORMAT}; use the version"
    assert says in refused(tmp_path)
    with pytest.raises(StoreError, match="has format 99"):
        stores.open(tmp_path)


def test_a_database_of_something_else(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / DATABASE)) as connection:
        connection.execute("CREATE TABLE meta (a INTEGER)")
    assert "is a DuckDB database but not a Headwater store" in refused(tmp_path)
    with pytest.raises(StoreError, match="not a Headwater store"):
        stores.open(tmp_path)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / DATABASE).write_text("hello, world\n" * 5000)
    assert "is not a Headwater store, or its database is damaged" in refused(tmp_path)
    with pytest.raises(StoreError, match="is not a Headwater store"):
        stores.open(tmp_path)


def test_a_path_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "can't make or open a store" in refused(tmp_path / "file" / "store")


def test_a_place_where_nothing_can_be_made() -> None:
    assert "can't make or open a store" in refused(Path("/proc/1/store"))


def test_a_database_that_can_not_be_opened(tmp_path: Path) -> None:
    (tmp_path / DATABASE).mkdir()
    refused(tmp_path)


def test_no_store_to_read(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"no store at .*nowhere"):
        stores.open(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_a_store_that_another_process_owns(tmp_path: Path) -> None:
    owner = python(
        """
        import sys
        from headwater.store import EmbeddedWriter
        writer = EmbeddedWriter.open(sys.argv[1])
        print("open", flush=True)
        sys.stdin.readline()
        writer.close()
        """,
        tmp_path,
    )
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "open\n"
        assert f"is in use by another process (PID {owner.pid})" in refused(tmp_path)
    finally:
        owner.communicate("\n")
    EmbeddedWriter.open(tmp_path).close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(disk)]
    done = os.geteuid() == 0 and subprocess.run(mount, capture_output=True).returncode == 0
    need("the right to mount a small tmpfs", done)
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_loses_only_the_batch_that_did_not_fit(small_disk: Path) -> None:
    path = small_disk / "store"
    writer = EmbeddedWriter.open(path)
    writer.register(flow())
    committed = 0

    def fill() -> None:
        nonlocal committed
        for number in range(200):
            many = [(number * 5000 + i, 0, "a", 1, [i]) for i in range(5000)]
            writer.commit(batch(number, stopped(*many, unique=True)))
            committed += 1

    with pytest.raises(StoreError) as error:
        fill()
    assert f"the disk of the store {path} is full; free some space" in str(error.value)
    assert committed > 0
    writer.close()
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    with EmbeddedWriter.open(path) as writer, stores.open(path) as store:
        held = [number for number in range(200) if writer.holds("q", number)]
        assert held in (list(range(committed)), list(range(committed + 1)))
        assert store.results("stopped").num_rows == 5000 * len(held)
        assert store.backward("stopped").num_rows == 5000 * len(held)
        writer.commit(batch(500, stopped((-1, 0, "b", 1, [7]))))
        assert store.backward("stopped", -1).num_rows == 1


def test_a_flow_that_changed_its_columns_or_ids(tmp_path: Path) -> None:
    other = pa.schema([("vid", pa.string()), ("n", pa.int32())])
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow())
        writer.register(flow())
        with pytest.raises(StoreError) as error:
            writer.register(flow(source(), sink(columns=other)))
        assert str(error.value) == (
            "sink 'stopped' of flow 'traffic' is stored with other columns: vid string, n int64 "
            "then, vid string, n int32 now; use another store, or another name for the sink"
        )
        with pytest.raises(StoreError, match=r"source 'reports' .* with other id"):
            writer.register(flow(source(id={"kind": "content", "columns": ["speed"]}), sink()))
        with pytest.raises(StoreError, match=r"source 'reports' .* with other keep"):
            writer.register(flow(source(keep="none"), sink()))
        writer.register(flow(source(path="/moved"), sink()))
        writer.commit(batch(0, stopped((1, 0, "a", 1, [1])), reports((1, 0, 0))))
        [known] = writer.flows()
        assert (known["flow"], known["query_id"]) == ("traffic", "q")
        assert known["definition"] == {"flow": "traffic"}


@pytest.mark.parametrize(
    ("columns", "message"),
    [(["n", "N"], "two columns called 'N'"), (["__hw_x"], "begin with __hw_ are reserved")],
)
def test_columns_that_can_not_be_stored(tmp_path: Path, columns: list[str], message: str) -> None:
    schema = pa.schema([(name, pa.int64()) for name in columns])
    with EmbeddedWriter.open(tmp_path) as writer:
        with pytest.raises(StoreError, match=message):
            writer.register(flow(source(), sink(columns=schema)))
        writer.register(flow())
