"""What a store takes in its file, by sink and by relation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from headwater import store as stores
from headwater.query.stats import PLAIN, Stats
from headwater.store import EmbeddedWriter, ResultSet
from tests.store.small import (
    SETS,
    TIME,
    batch,
    flow,
    output,
    reports,
    rows,
    sink,
    source,
    stopped,
)

SIZE, SLIDE = 100, 10  # records of a window, and from one window to the next


def windows(ids: npt.NDArray[np.int64], first: int = 0) -> ResultSet:
    """Sliding windows over records with these ids; a result's id is a hash, as Spark's are."""
    starts = np.arange(0, len(ids) - SIZE + 1, SLIDE)
    sets = pa.ListArray.from_arrays(
        pa.array(np.arange(0, len(starts) * SIZE + 1, SIZE), pa.int32()),
        pa.array(ids[starts[:, None] + np.arange(SIZE)].ravel()),
    )
    random = np.random.default_rng(len(ids) + first)
    table = {
        "__hw_id": pa.array(random.integers(-(2**63), 2**63 - 1, len(starts))),
        "__hw_time": pa.array(starts, pa.int64()).cast(TIME),
        "vid": pa.array(["v"] * len(starts)),
        "n": pa.array(starts, pa.int64()),
    }
    return ResultSet(pa.table(table), {"reports": pa.chunked_array([sets.cast(SETS)])}, True)


def sequence(count: int) -> npt.NDArray[np.int64]:
    return np.arange(count, dtype=np.int64) + 1_000_000


def hashes(count: int) -> npt.NDArray[np.int64]:
    return np.random.default_rng(1).integers(-(2**63), 2**63 - 1, count)


def stats(path: Path) -> Stats:
    with stores.open(path) as store:
        return store.stats()


def sinks(found: Stats) -> dict[str, dict[str, Any]]:
    return {row["sink"]: row for row in found.sinks.to_pylist()}


def relations(found: Stats) -> dict[str, dict[str, Any]]:
    return {row["relation"]: row for row in found.relations.to_pylist()}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two sinks, the second with a third of the first one's results."""
    path = tmp_path_factory.mktemp("two")
    with EmbeddedWriter.open(path) as writer:
        writer.register(flow(source(), sink(), sink("other"), sink("silent")))
        parts = {"stopped": windows(sequence(15_090)), "other": windows(sequence(5_090), 1)}
        writer.commit(batch(0, parts))
        writer.compact()
    return path


def filled(path: Path, ids: npt.NDArray[np.int64]) -> Stats:
    with EmbeddedWriter.open(path) as writer:
        writer.register(flow())
        writer.commit(batch(0, windows(ids)))
        writer.compact()
    return stats(path)


def test_the_columns(two: Path) -> None:
    found = stats(two)
    assert found.sinks.column_names == (
        "flow sink capture results edges bytes_results bytes_edges bytes_per_result bytes_per_set "
        "bytes_per_edge ratio"
    ).split(" ")
    assert found.relations.column_names == (
        "relation of rows rows_in_file bytes bytes_per_row ratio encodings"
    ).split(" ")


def test_sinks_share_the_bytes_of_the_edges(two: Path) -> None:
    found = stats(two)
    assert rows(found.sinks, "flow", "sink", "capture", "results", "edges") == [
        ("traffic", "stopped", "eager", 1_500, 150_000),
        ("traffic", "other", "eager", 500, 50_000),
        ("traffic", "silent", "eager", 0, 0),
    ]
    stored = relations(found)
    total = stored["edges"]["bytes"] + stored["edges_by_record"]["bytes"]
    parts = found.sinks["bytes_edges"].to_pylist()
    assert sum(parts) == total
    assert parts[0] == pytest.approx(0.75 * total, abs=2)
    assert parts[2] == 0
    for row in found.sinks.to_pylist()[:2]:
        assert row["bytes_per_edge"] == pytest.approx(total / 200_000)
        assert row["bytes_per_set"] == pytest.approx(SIZE * total / 200_000)
        assert row["ratio"] == pytest.approx(total / 200_000 / PLAIN)


def test_results_have_relations_of_their_own(two: Path) -> None:
    found = stats(two)
    stored = relations(found)
    assert stored["result_1"]["of"] == "traffic/stopped"
    assert stored["record_1"]["of"] == "traffic/reports"
    stopped = sinks(found)["stopped"]
    assert stopped["bytes_results"] == stored["result_1"]["bytes"]
    # An id of 8 bytes that nothing compresses, a time, a number; the rest is constant.
    assert 8 <= stopped["bytes_per_result"] <= 40
    assert stopped["bytes_per_result"] == pytest.approx(stopped["bytes_results"] / 1_500)


def test_relations_fit_into_the_file(two: Path) -> None:
    found = stats(two)
    whole = (two / "headwater.duckdb").stat().st_size
    assert 0 < sum(found.relations["bytes"].to_pylist()) < found.bytes_file <= whole
    with duckdb.connect(str(two / "headwater.duckdb"), read_only=True) as connection:
        for relation, row in relations(found).items():
            [(count,)] = connection.execute(f"SELECT count(*) FROM {relation}").fetchall()
            assert (row["rows"], row["rows_in_file"]) == (count, count), relation
        blocks = "SELECT count(DISTINCT block_id) FROM pragma_storage_info('edges')"
        [(taken,)] = connection.execute(f"{blocks} WHERE block_id >= 0").fetchall()
        [(size,)] = connection.execute("SELECT block_size FROM pragma_database_size()").fetchall()
    room = taken * size
    assert room / 2 < relations(found)["edges"]["bytes"] <= room


def test_what_suits_each_column(two: Path) -> None:
    encodings = dict(relations(stats(two))["edges"]["encodings"])
    assert list(encodings) == ["seq", "sink_no", "result_id", "source_no", "source_id"]
    assert encodings["seq"] == ["Constant"]
    assert encodings["result_id"] == ["RLE"]
    assert encodings["source_id"] == ["BitPacking"]


def test_ids_in_sequence_take_less_than_hashes(tmp_path: Path) -> None:
    close = filled(tmp_path / "close", sequence(15_090))
    apart = filled(tmp_path / "apart", hashes(15_090))
    near, far = relations(close)["edges"], relations(apart)["edges"]
    assert near["rows"] == far["rows"] == 150_000
    assert near["ratio"] < 0.5 < 0.95 < far["ratio"] < 1.2
    assert dict(far["encodings"])["source_id"] == ["Uncompressed"]
    assert near["ratio"] == near["bytes_per_row"] / PLAIN
    assert sinks(close)["stopped"]["ratio"] < sinks(apart)["stopped"]["ratio"]


def test_an_empty_store(tmp_path: Path) -> None:
    with EmbeddedWriter.open(tmp_path) as writer:
        found = stats(tmp_path)
        assert found.sinks.num_rows == 0
        assert relations(found)["edges"]["rows"] == 0
        writer.register(flow())
    [row] = stats(tmp_path).sinks.to_pylist()
    assert (row["results"], row["edges"], row["bytes_results"], row["bytes_edges"]) == (0, 0, 0, 0)
    for name in ("bytes_per_result", "bytes_per_set", "bytes_per_edge", "ratio"):
        assert row[name] is None


def test_results_without_edges(tmp_path: Path) -> None:
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow())
        writer.commit(batch(0, stopped((1, 0, "a", 1, []), (2, 0, "b", 1, None))))
    [row] = stats(tmp_path).sinks.to_pylist()
    assert (row["results"], row["edges"]) == (2, 0)
    assert row["bytes_per_result"] > 0
    assert row["bytes_per_edge"] is row["bytes_per_set"] is row["ratio"] is None


def test_small_relations_are_not_charged_for_a_whole_block(tmp_path: Path) -> None:
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow())
        made = [(n * 7919, n, f"vehicle {n}", n, [n, n + 1]) for n in range(50)]
        writer.commit(batch(0, stopped(*made), reports((1, 0, 0))))
    [row] = stats(tmp_path).sinks.to_pylist()
    assert 1 < row["bytes_per_edge"] < 32
    assert 8 < row["bytes_per_result"] < 64


def test_edges_in_one_direction_only(tmp_path: Path) -> None:
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow())
        writer.commit(batch(0, windows(sequence(5_090))))
    found = stats(tmp_path)
    assert relations(found)["edges_by_record"]["rows"] == 0
    edges = relations(found)["edges"]
    assert sinks(found)["stopped"]["bytes_per_edge"] == edges["bytes_per_row"]
    assert sinks(found)["stopped"]["bytes_edges"] == edges["bytes"]


def test_rows_that_wait_for_a_checkpoint(tmp_path: Path) -> None:
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow())
        writer.commit(batch(0, stopped((1, 0, "a", 1, [4, 5]))))
        found = stats(tmp_path)
        edges = relations(found)["edges"]
        assert (edges["rows"], edges["rows_in_file"], edges["bytes"]) == (2, 0, 0)
        assert edges["encodings"] == []
        assert sinks(found)["stopped"]["bytes_per_edge"] is None
    # The owner writes all of it into the file when it closes; then come two more.
    with EmbeddedWriter.open(tmp_path) as writer:
        before = sinks(stats(tmp_path))["stopped"]
        writer.commit(batch(1, stopped((2, 0, "a", 1, [4, 5]))))
        after = sinks(stats(tmp_path))["stopped"]
        assert (before["edges"], after["edges"]) == (2, 4)
        assert 0 < before["bytes_edges"] == after["bytes_edges"]
        assert before["bytes_per_edge"] == after["bytes_per_edge"]
        edges = relations(stats(tmp_path))["edges"]
        assert (edges["rows"], edges["rows_in_file"]) == (4, 2)


def test_intervals_take_bytes_too(tmp_path: Path) -> None:
    count = 50_000
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow())
        part = stopped(*((n, 0, "a", 1, []) for n in range(count)))
        ends = pa.chunked_array([pa.array(range(count), pa.int64())])
        own = replace(part, origins={}, intervals={"reports": (ends, ends)})
        writer.commit(batch(0, own))
    [row] = stats(tmp_path).sinks.to_pylist()
    assert (row["results"], row["edges"]) == (count, 0)
    assert 0 < row["bytes_per_set"] < 40
    assert row["bytes_per_edge"] is None


def test_another_process_asks_the_owner(tmp_path: Path) -> None:
    with EmbeddedWriter.open(tmp_path) as writer, stores.open(tmp_path) as store:
        assert store.stats().sinks.num_rows == 0
        writer.register(flow())
        writer.commit(batch(0, stopped((1, 0, "a", 1, [4, 5]))))
        assert store.stats().sinks.num_rows == 1, "a flow registered since"
        script = """
            import sys
            from headwater import store
            found = store.open(sys.argv[1]).stats()
            print(found.sinks["edges"].to_pylist(), found.relations.num_rows)
        """
        assert output(script, tmp_path) == f"[2] {store.stats().relations.num_rows}"
