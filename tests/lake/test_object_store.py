"""A lake on an object store: a server of S3's protocol on this machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headwater as hw
from headwater.errors import RunError
from headwater.store.lake import compacting
from headwater.store.lake.compacting import compact
from headwater.store.lake.place import Place
from headwater.store.lake.tables import Table, columns_of
from headwater.store.lake.writer import LakeWriter
from tests.lake.test_lake import answers, traffic, write

BUCKET = "bucket"
_HERE = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """The address of a bucket, which the environment says how to reach."""
    if (program := shutil.which("moto_server", path=_HERE)) is None:
        pytest.skip("no server of S3's protocol: pip install 'moto[s3]' flask flask-cors")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    given = {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
    }
    with (
        pytest.MonkeyPatch.context() as patched,
        subprocess.Popen(
            [program, "-H", "127.0.0.1", "-p", str(port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as server,
    ):
        for name, value in given.items():
            patched.setenv(name, value)
        try:
            _make(f"{url}/{BUCKET}")
            yield f"delta:s3://{BUCKET}"
        finally:
            server.terminate()


def _make(url: str) -> None:
    """Make a bucket, once the server answers."""
    for _ in range(300):
        with suppress(OSError):
            urllib.request.urlopen(urllib.request.Request(url, method="PUT")).close()
            return
        time.sleep(0.1)
    pytest.fail("the server of S3's protocol does not answer")


@pytest.mark.long
@pytest.mark.spark
def test_a_lake_on_an_object_store_answers_as_a_file_does(
    bucket: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written and read by tasks, with records that come again; compacted, marked, erased."""
    monkeypatch.setattr(compacting, "FEW", 1)
    write(tmp_path / "data", 0, range(20))
    write(tmp_path / "data", 1, range(15, 120))
    address = f"{bucket}/prov"
    with pytest.raises(RunError, match="can't be on an object store; give checkpoint="):
        traffic(spark, tmp_path / "data").start(store=address, available_now=True)
    for store in (str(tmp_path / "file"), address):
        traffic(spark, tmp_path / "data", keep="all").start(
            store=store,
            checkpoint=str(tmp_path / f"checkpoint-{store == address}"),
            capture="eager",
            available_now=True,
        ).wait()
    with hw.open(tmp_path / "file") as file, hw.open(address) as lake:
        expected = answers(file)
        assert answers(lake) == expected
        with LakeWriter.open(address) as writer:
            assert compact(writer, spark, keep_hours=0).deleted > 0
        assert answers(lake) == expected
        for store in (file, lake):
            mark = store.mark("reports", where="k = 1", reason="private")
            assert (mark.number, mark.records) == (1, 40)
            assert store.erase("reports", ids=[4, 7]).copies == 2
        assert answers(lake) == answers(file)
        assert lake.marked().num_rows == file.marked().num_rows > 0
    filesystem, root = Place.of(address).filesystem()
    from pyarrow import fs

    found = filesystem.get_file_info(fs.FileSelector(f"{root}/record_1"))
    assert sum(info.base_name.endswith(".parquet") for info in found) == 1


def test_two_that_commit_at_once_lose_nothing(bucket: str) -> None:
    """What keeps Delta's versions apart is that the storage makes an object only once."""
    place = Place.of(f"{bucket}/two")
    columns = columns_of("meta")
    tables = [Table(place, "meta", columns) for _ in range(2)]
    tables[0].make()
    import pyarrow as pa

    for table in tables:
        table.look()
    for number, table in enumerate(tables):
        rows = pa.table([[f"key-{number}"], ["value"]], schema=columns)
        # Neither has looked since the other has written.
        table._delta.write_deltalake(table._table, rows, mode="append")
    tables[0].look()
    assert sorted(tables[0].rows()["key"].to_pylist()) == ["key-0", "key-1"]
