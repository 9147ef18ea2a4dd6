"""`headwater stats`, for people and as JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.store import EmbeddedWriter
from tests.store.small import batch, flow, reports, sink, source, stopped


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two sinks, closed."""
    path = tmp_path_factory.mktemp("filled")
    with EmbeddedWriter.open(path) as writer:
        writer.register(flow(source(), sink(), sink("other")))
        made = [(n * 7919, n, f"vehicle {n}", n, [n, n + 1]) for n in range(60)]
        parts = {"stopped": stopped(*made), "other": stopped(*made[:20])}
        writer.commit(batch(0, parts, reports((1, 0, 0))))
        writer.compact()
    return path


def test_json(headwater, filled: Path) -> None:
    answer = headwater("stats", filled, "--json")
    assert answer.code == 0
    found = answer.json
    assert list(found) == ["bytes_file", "bytes_free", "sinks", "relations"]
    assert [(row["sink"], row["edges"]) for row in found["sinks"]] == [
        ("stopped", 120),
        ("other", 40),
    ]
    stored = {row["relation"]: row for row in found["relations"]}
    edges = stored["edges"]["bytes"] + stored["edges_by_record"]["bytes"]
    assert sum(row["bytes_edges"] for row in found["sinks"]) == edges > 0
    assert stored["edges"]["encodings"]["source_no"] == ["Constant"]
    assert stored["files"]["encodings"] == {}


def test_the_tables(headwater, filled: Path) -> None:
    shown = headwater("stats", filled).out
    ratio = headwater("stats", filled, "--json").json["sinks"][0]["ratio"]
    sink_line, other_line = [line for line in shown.splitlines() if line.startswith("traffic")]
    assert sink_line.split()[:5] == ["traffic", "stopped", "eager", "60", "120"]
    assert sink_line.split()[-1] == str(round(ratio, 2))
    assert other_line.split()[1] == "other"
    [edges] = [line for line in shown.splitlines() if line.startswith("edges ")]
    assert "source_no Constant" in edges
    assert "files" not in shown, "empty relations are left out"
    assert "shared out by number of edges" in shown
    assert "DuckDB's log" not in shown


def test_a_store_without_anything(headwater, tmp_path: Path) -> None:
    with EmbeddedWriter.open(tmp_path):
        assert headwater("stats", tmp_path, "--json").json["sinks"] == []
        shown = headwater("stats", tmp_path)
    assert shown.code == 0
    assert "shared out" not in shown.out


def test_a_store_that_is_written(headwater, tmp_path: Path) -> None:
    with EmbeddedWriter.open(tmp_path) as writer:
        writer.register(flow())
        writer.commit(batch(0, stopped((1, 0, "a", 1, [4, 5]))))
        shown = headwater("stats", tmp_path)
    assert shown.code == 0
    assert "rows still in memory and DuckDB's log" in shown.out


def test_no_store(headwater, tmp_path: Path) -> None:
    failed = headwater("stats", tmp_path / "missing")
    assert failed.code == 1
    assert failed.out == ""
    assert failed.err.startswith("headwater: no store at ")
    assert failed.err.count("\n") == 1


def test_help(headwater) -> None:
    shown = " ".join(headwater("stats", "--help").out.split())
    assert "Example: headwater stats prov --json" in shown
    assert "--json" in shown
