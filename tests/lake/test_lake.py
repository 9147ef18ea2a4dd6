"""A store on Delta Lake: its tables, what readers see, housekeeping, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headwater as hw
from headwater.errors import HeadwaterError, RunError, StoreError
from headwater.store import EmbeddedWriter, StoreReader, copying
from headwater.store.lake import compacting
from headwater.store.lake.compacting import compact
from headwater.store.lake.forgetting import forget
from headwater.store.lake.place import Place
from headwater.store.lake.prepared import Notes
from headwater.store.lake.writer import LakeWriter
from tests.cli.conftest import call

pytestmark = pytest.mark.spark

SCHEMA = "id bigint, ts timestamp, k int, v double, tags array<string>"
FILES = 6


def write(folder: Path, number: int, ids: range, v: float = 1.5) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    base = 1_700_000_000_000_000
    rows = {
        "id": pa.array(ids, pa.int64()),
        "ts": pa.array([base + 1_000_000 * i for i in ids], pa.timestamp("us", "UTC")),
        "k": pa.array([i % 3 for i in ids], pa.int32()),
        "v": pa.array([v + i for i in ids], pa.float64()),
        "tags": pa.array([["a", str(i)] for i in ids]),
    }
    pq.write_table(pa.table(rows), folder / f"{number:03d}.parquet")


def traffic(spark: SparkSession, folder: Path, keep: str = "none") -> hw.Flow:
    flow = hw.Flow("traffic", spark)
    source = flow.source(
        "reports",
        format="parquet",
        path=str(folder),
        schema=SCHEMA,
        event_time="ts",
        watermark="0 seconds",
        id="id",
        keep=keep,
        options={"maxFilesPerTrigger": "1"},
    )
    flow.sink("rows", source.filter("v > 2").select("id", "v", "tags"))
    sums = F.sum("v").alias("v"), F.count("*").alias("of.rows")
    flow.sink("windows", source.groupBy("k", F.window("ts", "10 seconds")).agg(*sums))
    return flow


@pytest.fixture(scope="module")
def both(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the same flow's results in a file and on a lake."""
    home = tmp_path_factory.mktemp("lake")
    for number in range(FILES):
        write(home / "data", number, range(number * 20, number * 20 + 20))
    for store in (str(home / "file"), f"delta:{home / 'lake'}"):
        traffic(spark, home / "data", keep="all").start(
            store=store, capture="eager", available_now=True
        ).wait()
    return home


def answers(store: hw.Store) -> list[object]:
    """Everything that a store is asked for here."""
    said: list[object] = []
    for sink in ("rows", "windows"):
        found = store.results(sink).sort_by("result_id")
        said.append(found)
        ids = found["result_id"].to_pylist()
        said.append(store.backward(sink, ids))
        said += [store.backward(sink, one) for one in ids[:3]]
        said += [found.filter(pa.compute.equal(found["result_id"], one)) for one in ids[:1]]
    order = [("id", "ascending"), ("sink", "ascending"), ("result_id", "ascending")]
    said.append(store.forward("reports", list(range(0, 120, 7))).sort_by(order))
    said.append(store.forward("reports", 5).sort_by(order[1:]))
    said.append(store.batches().select(["batch", "watermark", "results", "edges"]))
    return said


def test_a_lake_answers_as_a_file_does(both: Path) -> None:
    with hw.open(both / "file") as file, hw.open(f"delta:{both / 'lake'}") as lake:
        assert answers(lake) == answers(file)
        one = lake.results("windows")["result_id"][0].as_py()
        assert lake.replay("windows", one).matches


def test_other_tools_read_the_tables(both: Path) -> None:
    from deltalake import DeltaTable

    edges = DeltaTable(both / "lake" / "edges").to_pyarrow_table()
    with hw.open(both / "file") as file:
        expected = file._reader.query("SELECT * FROM edges")
    order = [(name, "ascending") for name in expected.column_names]
    assert edges.sort_by(order).to_pylist() == expected.sort_by(order).to_pylist()


def test_compaction_changes_no_answer(
    both: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"delta:{both / 'lake'}"
    monkeypatch.setattr(compacting, "FEW", 2)
    with hw.open(address) as reading:
        before = answers(reading)
        with LakeWriter.open(address) as writer:
            done = compact(writer, spark, keep_hours=0)
            assert done.edges == sum(reading.batches()["edges"].to_pylist())
            assert done.replaced > FILES
            assert done.deleted > FILES
            assert compact(writer, spark).edges == 0
        with hw.open(address) as lake:
            assert answers(lake) == before
            sizes = {name: rows for name, rows, _ in lake._reader.sizes()}  # type: ignore[attr-defined]
        assert sizes["edges_by_record"] == sizes["edges"] == done.edges
    files = list((both / "lake" / "edges").glob("*.parquet"))
    assert len(files) == 1


def test_a_compaction_that_was_killed_doubles_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"delta:{tmp_path / 'lake'}"
    for number in range(2):
        write(tmp_path / "data", number, range(number * 20, number * 20 + 20))
        traffic(spark, tmp_path / "data").start(
            store=address, capture="eager", available_now=True
        ).wait()
        with LakeWriter.open(address) as writer, monkeypatch.context() as patched:
            if number == 0:
                patched.setattr(writer, "note", _interrupted)
                with pytest.raises(KeyboardInterrupt):
                    compact(writer, spark)
            else:
                compact(writer, spark)
    with hw.open(address) as lake:
        by_record = lake._reader.query("SELECT count(*) AS n FROM edges_by_record")
        assert by_record["n"].to_pylist() == [sum(lake.batches()["edges"].to_pylist())]


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_batch_without_its_row_is_not_seen_and_then_finished(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"delta:{tmp_path / 'lake'}"
    write(tmp_path / "data", 0, range(20))
    flow = traffic(spark, tmp_path / "data")
    flow.start(store=address, capture="eager", available_now=True).wait()
    with hw.open(address) as lake:
        before = lake.results("rows").num_rows
        write(tmp_path / "data", 1, range(20, 40))
        with monkeypatch.context() as patched:
            # All tables have the batch but the one that makes it one.
            patched.setattr(Notes, "remove", _interrupted)
            patched.setattr("headwater.store.lake.tables.Table.append", _failing_at_batches())
            with pytest.raises(RunError):
                traffic(spark, tmp_path / "data").start(
                    store=address, capture="eager", available_now=True
                ).wait()
        assert lake._reader.query("SELECT count(*) AS n FROM result_1")["n"][0].as_py() == before
        assert lake.results("rows").num_rows == before
        assert list(Notes(Place.of(address)).all()), "the batch is noted down"
        traffic(spark, tmp_path / "data").start(
            store=address, capture="eager", available_now=True
        ).wait()
        assert lake.results("rows").num_rows == before + 20
        assert not list(Notes(Place.of(address)).all())
        ids = lake.results("rows")["result_id"].to_pylist()
        assert len(set(ids)) == len(ids)


def _failing_at_batches() -> object:
    from headwater.store.lake.tables import Table

    append = Table.append

    def failing(self: Table, rows: pa.Table, app: str, version: int) -> None:
        if self.relation == "batches":
            raise OSError("no space left")
        append(self, rows, app, version)

    return failing


def test_records_that_differ_under_one_id_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    address = f"delta:{tmp_path / 'lake'}"
    write(tmp_path / "data", 0, range(5))
    flow = traffic(spark, tmp_path / "data", keep="all")
    flow.start(store=address, capture="eager", available_now=True).wait()
    write(tmp_path / "data", 1, range(4, 8), v=99.0)
    with pytest.raises(HeadwaterError, match="two different records of source 'reports'"):
        traffic(spark, tmp_path / "data", keep="all").start(
            store=address, capture="eager", available_now=True
        ).wait()


def test_a_record_that_comes_again_is_kept_once(spark: SparkSession, tmp_path: Path) -> None:
    address = f"delta:{tmp_path / 'lake'}"
    write(tmp_path / "data", 0, range(8))
    write(tmp_path / "data", 1, range(4, 12))
    flow = traffic(spark, tmp_path / "data", keep="all")
    flow.start(store=address, capture="eager", available_now=True).wait()
    with hw.open(address) as lake:
        records = lake._reader.query("SELECT __hw_id FROM record_1")["__hw_id"].to_pylist()
        assert sorted(records) == list(range(12))


def test_a_copy_answers_alike_and_the_flow_goes_on_with_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "AT_ONCE", 30)
    names = [str(tmp_path / "file"), f"delta:{tmp_path / 'lake'}", str(tmp_path / "again")]
    checkpoint = str(tmp_path / "checkpoint")

    def go_on(store: str) -> None:
        traffic(spark, tmp_path / "data", keep="all").start(
            store=store, checkpoint=checkpoint, capture="eager", available_now=True
        ).wait()

    for number in range(3):
        write(tmp_path / "data", number, range(number * 20, number * 20 + 20))
    go_on(names[0])
    for step, (before, after) in enumerate(pairwise(names)):
        edges = copying.copy(before, after)
        with hw.open(before) as one, hw.open(after) as other:
            assert edges == sum(one.batches()["edges"].to_pylist()) > 0
            assert answers(other) == answers(one)
            results = one.results("rows").num_rows
        write(tmp_path / "data", 3 + step, range(60 + step * 20, 80 + step * 20))
        go_on(after)
        with hw.open(after) as other:
            assert other.results("rows").num_rows == results + 20
        with pytest.raises(StoreError, match="there is a store at"):
            copying.copy(before, after)


def test_a_copy_that_was_killed_is_not_gone_on_with(
    both: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = f"delta:{tmp_path / 'lake'}"
    with monkeypatch.context() as patched:
        patched.setattr("headwater.store.lake.tables.Table.replace", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            copying.copy(both / "file", target)
    with pytest.raises(StoreError, match="no store at delta:"):
        hw.open(target)
    with pytest.raises(StoreError, match="left half way; delete it, and copy again"):
        copying.copy(both / "file", target)


def test_what_a_lake_can_t_hold_is_not_copied(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "data", 0, range(20))
    store = str(tmp_path / "file")
    traffic(spark, tmp_path / "data").start(
        store=store, capture="eager", live=True, available_now=True
    ).wait()
    with pytest.raises(StoreError, match="keeps a live graph, which a copy"):
        copying.copy(store, f"delta:{tmp_path / 'lake'}")
    assert not (tmp_path / "lake").exists()


def test_one_process_writes(tmp_path: Path) -> None:
    address = f"delta:{tmp_path / 'lake'}"
    code = (
        "from headwater.store.lake.writer import LakeWriter\n"
        f"LakeWriter.open({address!r}); print('open', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(StoreError, match="another process writes to the lake"):
            LakeWriter.open(address)
        other.communicate("\n")
    LakeWriter.open(address).close()


def test_what_a_lake_lacks_is_refused(spark: SparkSession, both: Path, tmp_path: Path) -> None:
    address = f"delta:{tmp_path / 'lake'}"
    with pytest.raises(RunError, match="live=True on a lake needs capture='eager'"):
        traffic(spark, both / "data").start(
            store=address, capture="ancestors", live=True, available_now=True
        )
    assert not (tmp_path / "lake").exists()
    with pytest.raises(StoreError, match="is a lake; write delta:"):
        hw.open(both / "lake")
    assert not (both / "lake" / "headwater.duckdb").exists()
    with pytest.raises(StoreError, match="no store at delta:"):
        hw.open(f"delta:{tmp_path / 'nothing'}")
    assert not (tmp_path / "nothing").exists()


def test_another_version_is_refused(tmp_path: Path) -> None:
    address = f"delta:{tmp_path / 'lake'}"
    with LakeWriter.open(address) as writer:
        writer.note("format", "999")
    with pytest.raises(StoreError, match="has format 999, this Headwater reads format"):
        hw.open(address)
    with pytest.raises(StoreError, match="has format 999"):
        LakeWriter.open(address)


def test_what_only_a_file_can_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for made in (EmbeddedWriter.open, StoreReader):
        with pytest.raises(StoreError, match="a lake can't be used for this yet"):
            made("delta:lake")
    assert not list(tmp_path.iterdir())


def test_without_the_package_the_way_to_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(StoreError, match=r"pip install 'headwater\[delta\]'"):
        LakeWriter.open(f"delta:{tmp_path / 'lake'}")


def test_places() -> None:
    assert Place.of("delta:s3://bucket/prov/").root == "s3://bucket/prov"
    assert Place.of(Path("delta:s3://bucket/prov")).root == "s3://bucket/prov"
    assert Place.of("delta:/data/prov").root == "/data/prov"
    assert str(Place.of("delta:/data/prov")) == "delta:/data/prov"
    with pytest.raises(StoreError, match="names no lake"):
        Place.of("delta:")


def test_the_command_line(both: Path) -> None:
    address = f"delta:{both / 'lake'}"
    told = json.loads(call("stats", address, "--json").out)
    rows = {row["relation"]: row["rows"] for row in told["relations"]}
    assert rows["result_1"] > 100
    assert told["bytes_file"] > 1_000
    assert set(json.loads(call("compact", address, "--json").out)) == {
        "forgotten",
        "edges",
        "replaced",
        "deleted",
    }
    assert json.loads(call("compact", str(both / "file"), "--json").out)["edges"] > 100


def test_a_lake_forgets_its_oldest_batches(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(4):
        write(tmp_path / "data", number, range(number * 15, number * 15 + 20))
    address = f"delta:{tmp_path / 'lake'}"
    traffic(spark, tmp_path / "data", keep="all").start(
        store=address, capture="eager", live=True, available_now=True
    ).wait()
    with hw.open(address) as lake:
        graph = _graph(lake)
        before = {sink: lake.results(sink) for sink in ("rows", "windows")}
        seqs = lake._reader.query("SELECT seq, results, edges FROM batches ORDER BY seq")
        kept = {
            sink: lake._reader.query(
                f"SELECT __hw_id AS id FROM result_{no} WHERE __hw_seq > 2 ORDER BY 1"
            )["id"].to_pylist()
            for no, sink in ((1, "rows"), (2, "windows"))
        }
        behind = {sink: lake.backward(sink, ids) for sink, ids in kept.items()}
    with LakeWriter.open(address) as writer:
        _, used, _ = writer.size()
        whole = sum(
            r + e for r, e in zip(*(seqs[c].to_pylist() for c in ("results", "edges")), strict=True)
        )
        first = sum(seqs[name][n].as_py() for name in ("results", "edges") for n in (0, 1))
        # So much that two batches have to go.
        gone = forget(writer, spark, most=int(used * (whole - first + 1) / whole))
        assert gone.batches == 2
        assert gone.records > 0
        compact(writer, spark, keep_hours=0)
    with hw.open(address) as lake:
        for sink, ids in kept.items():
            assert sorted(lake.results(sink)["result_id"].to_pylist()) == ids
            assert len(ids) < before[sink].num_rows
            assert lake.backward(sink, ids) == behind[sink], "no record of a later result is gone"
        # A vertex goes that is past and has no edge that is remembered, and its label with it.
        reached = _graph(lake)["edges"]
        past = {id_ for _, id_ in graph["labels"]}
        alive = {
            (seq, id_)
            for seq, id_ in graph["vertices"]
            if seq > 2 or id_ not in past or id_ in {record for _, record in reached}
        }
        assert _graph(lake)["vertices"] == alive
        assert alive < graph["vertices"]
        ids_alive = {id_ for _, id_ in alive}
        assert _graph(lake)["labels"] == {one for one in graph["labels"] if one[1] in ids_alive}
    traffic(spark, tmp_path / "data", keep="all").start(
        store=address, capture="eager", live=True, available_now=True
    ).wait()
    with hw.open(address) as lake:
        assert sorted(lake.results("rows")["result_id"].to_pylist()) == kept["rows"]


def _graph(lake: hw.Store) -> dict[str, set[tuple[int, int]]]:
    """What a lake has of its live graph: batches and records."""
    columns = {"vertices": "id", "labels": "id", "edges": "source_id AS id"}
    return {
        name: {
            (row["seq"], row["id"])
            for row in lake._reader.query(f"SELECT seq, {id_} FROM {name}").to_pylist()
        }
        for name, id_ in columns.items()
    }
