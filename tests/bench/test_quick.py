"""`headwater bench all --quick`: each benchmark runs, and what it finds makes sense.

The sizes say nothing about speed. The benchmarks run once: tests of single ones ask for their
reports, and the last test has the command take them all.
"""

from __future__ import annotations

from json import loads
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner

from headwater.bench import figures, reduce_stages
from headwater.bench.everything.compared import VIEWS
from headwater.bench.everything.parts import RUNS
from headwater.bench.flow import GOAL as PUBLISHED
from headwater.bench.storage import EVERY, FIRST, Chain
from headwater.bench.suites import SUITES
from headwater.cli import app
from headwater.examples.hashtag_provenance import provenance
from tests.bench.conftest import Quick, Row

pytestmark = pytest.mark.spark
MODES = ("none", "eager")


def by(rows: list[Row], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in rows]


def check_rates(rows: list[Row]) -> None:
    for row in rows:
        assert row["records/s"] > 0
        assert row["CPU s"] > 0
        assert row["peak MiB"] > 1
        assert row["results"] > 0
        assert (row["mode"] == "none") == (row["edges"] == 0)


# --- capture, storage, operators --------------------------------------------------------------


def test_linear_road(quick: Quick) -> None:
    rows = quick.rows("capture-linear-road")
    assert by(rows, "flow", "format", "state", "mode") == [
        (flow, "csv", "memory", mode) for flow in ("stopped", "accidents") for mode in MODES
    ]
    check_rates(rows)
    edges = {row["flow"]: row["edges"] / row["results"] for row in rows if row["edges"]}
    assert edges == {"stopped": 4, "accidents": 8}
    assert quick.report("capture-linear-road")["machine"]["pyspark"].startswith("4.")


@pytest.mark.parametrize(
    ("suite", "column", "sizes"),
    [
        ("basic", "window", [10]),
        ("slides", "slide", [20]),
        ("complex", "front window", [2]),
        ("chain", "components", [15]),
    ],
)
def test_a_suite_has_its_sizes(quick: Quick, suite: str, column: str, sizes: list[int]) -> None:
    rows = quick.rows(f"capture-{suite}")
    assert by(rows, column, "mode") == [(size, mode) for size in sizes for mode in MODES]
    check_rates(rows)


def test_nested_and_figure_14(quick: Quick) -> None:
    rates, figure = quick.tables("capture-nested")
    assert by(rates["rows"], "aggregations", "mode") == [(2, mode) for mode in MODES]
    check_rates(rates["rows"])
    lines = {(row["method"], row["what"]): row["2"] for row in figure["rows"]}
    assert {method for method, _ in lines} == {"none", "eager", "rewrite"}
    for method, part in [
        ("none", "generation"),
        ("eager", "generation"),
        ("eager", "retrieval"),
        ("rewrite", "generation"),
    ]:
        assert lines[method, f"{part} s"] > 0
        assert lines[method, f"{part} peak MiB"] > 1
    assert lines["eager", "rows of provenance"] == rates["rows"][1]["edges"]
    # Rewritten, a tuple comes once for each window of the first aggregate that it is in.
    assert lines["rewrite", "rows of provenance"] > 3 * lines["eager", "rows of provenance"]


def test_windows(quick: Quick) -> None:
    (table,) = quick.tables("capture-windows")
    assert by(table["rows"], "window", "slide", "mode") == [
        (size, slide, mode) for size, slide in [(20, 1), (200, 20)] for mode in MODES
    ]
    check_rates(table["rows"])
    assert table["notes"] == ["left out: a window of 500,000 needs --records 2000000"]


def test_retrieval(quick: Quick) -> None:
    rows = quick.rows("capture-retrieval")
    assert by(rows, "asked", "mode") == [("–", "none"), ("10 %", "eager"), ("100 %", "eager")]
    some, everything = (row["rows of provenance"] for row in rows[1:])
    assert 0 < some < everything
    for row in rows[1:]:
        assert row["total s"] == pytest.approx(row["generation s"] + row["retrieval s"], abs=0.01)


def test_storage_weighs_every_way(quick: Quick) -> None:
    sizes = {row["stored"]: row["bytes"] for row in quick.rows("storage")}
    ways = ("results whole", "results keys", "results keys, inputs kept")
    assert list(sizes) == [EVERY, FIRST, *(f"{mode}, {way}" for way in ways for mode in MODES)]
    chain = Chain(2_000, 1_024, 3)
    assert sizes[EVERY] == pytest.approx(chain.every, rel=0.3)
    assert sizes[EVERY] > sizes[FIRST] > 2_000 * 1_024
    assert sizes["eager, results whole"] > 2_000 * 1_024
    for mode in MODES:
        keys = sizes[f"{mode}, results keys"]
        assert keys < sizes[f"{mode}, results whole"]
        assert keys < sizes[f"{mode}, results keys, inputs kept"]


def test_operators(quick: Quick) -> None:
    (table,) = quick.tables("operators")
    expected = [("count_window", 10, mode) for mode in MODES]
    assert by(table["rows"], "operator", "keys", "mode") == expected
    check_rates(table["rows"])
    assert not table["notes"], "its goals are for more keys"


# --- the live graph ---------------------------------------------------------------------------


def test_live_throughput(quick: Quick) -> None:
    none, eager, graph = quick.rows("live-throughput")
    assert [none["mode"], eager["mode"], graph["mode"]] == ["none", "eager", "live"]
    assert none["edges"] == 0
    assert eager["edges"] == graph["edges"] > 0
    assert graph["of eager"] > 0
    assert graph["goal"].startswith(("met: ≥ 0.90", "missed: < 0.90"))
    assert none["queries"] == "stopped + accidents"


def test_live_latency(quick: Quick) -> None:
    (table,) = quick.tables("live-latency")
    tight, ananke = table["rows"]
    assert [tight["expiry"], ananke["expiry"]] == ["tight", "ananke"]
    assert tight["U s"] == ananke["U s"] == 150
    assert tight["labels"] >= ananke["labels"] > 0
    for row in table["rows"]:
        assert row["edge"] == row["result label"] == 0, "delivered with their vertices"
        assert 0 < row["result"] < row["source"] < 2
    assert tight["source label"] <= ananke["source label"]
    assert table["notes"][-1].startswith("linear_road: no tight label is later; of ")


def test_live_grid(quick: Quick) -> None:
    none, graph = quick.rows("live-grid")
    assert [none["mode"], graph["mode"]] == ["none", "live"]
    assert "edges/s" not in none
    assert graph["edges"] == graph["results"] * 10
    assert graph["goal"] == "missed: < 500,000"


def test_the_graph_alone(quick: Quick) -> None:
    (table,) = quick.tables("live-graph")
    assert "the graph alone (no Spark)" in table["title"]
    rows = table["rows"]
    expected = [(10, o, mode) for o in (0, 50) for mode in ("eager", "live")]
    assert by(rows, "size", "overlap %", "mode") == expected
    assert all(row["edges"] >= 10_000 and row["edges/s"] > 0 for row in rows)
    assert [bool(row.get("goal")) for row in rows] == [False, True] * 2
    assert table["notes"][-1].endswith("of 2 live runs reach the goal of 500,000 edges/s")


def test_databases_find_the_same_graph(quick: Quick) -> None:
    rows = quick.rows("live-alternatives")
    assert [row["graph"] for row in rows][:6] == [
        *("live", "live, followed", "SQLite, memory /R", "SQLite, memory /A"),
        *("SQLite, file /R", "SQLite, file /A"),
    ]
    assert len({row["edges"] for row in rows}) == 1
    assert all(row["ratio"] > 0 for row in rows[1:])
    assert all(row["delivery s"] > 0 for row in rows)


def test_live_memory(quick: Quick) -> None:
    (table,) = quick.tables("live-memory")
    assert len(table["rows"]) == 4
    assert all(row["RSS MiB"] > 1 and row["pending"] > 0 for row in table["rows"])
    told = [note.partition(":")[0] for note in table["notes"][:3]]
    assert told == ["RSS MiB", "alive", "pending"]


# --- reduce -----------------------------------------------------------------------------------


def test_a_whole_reduction(quick: Quick) -> None:
    (row,) = quick.rows("reduce-throughput")
    assert row["cores"] == 1
    assert row["MB/s"] > 0
    assert row["JVM MiB"] > 100
    assert row["peak MiB"] >= row["JVM MiB"]
    assert 0 < row["of that finishing"] < row["seconds"]
    page = f"{figures.BEGIN}\n{figures.END}\n"
    assert "| cores | MB/s |" in figures.updated(page, [quick.report("reduce-throughput")])


def test_the_stages_of_a_reduction_add_up(quick: Quick) -> None:
    *stages, total = quick.rows("reduce-ceiling")
    assert [row["stage"] for row in stages] == list(reduce_stages.STAGES)
    assert sum(row["CPU s"] for row in stages) == pytest.approx(total["CPU s"], abs=0.01)
    assert total["share"] == 1


def test_what_reducers_leave(quick: Quick, tmp_path: Path) -> None:
    first, second = quick.tables("reduce-partitions")
    made = provenance(tmp_path / "told", 30_000, files=4)
    assert {row["after global"] for row in first["rows"]} == {made.dependencies}
    for row in first["rows"]:
        assert row["after global"] < row["after local"] < row["edges"]
        assert row["MB after local"] < row["MB"]
    small, large = second["rows"]
    # A combine uses what maps of the same node made; no execution uses what its own function made.
    assert large["vertical"] < small["vertical"]
    assert large["vertical"] < large["random"] < large["horizontal"]


def test_one_entity_is_asked_for_across_two_jobs(quick: Quick) -> None:
    rows = {row["asked"]: row["rows"] for row in quick.rows("reduce-entities")}
    # Four of the first job's outputs, each of four inputs, of which neighbours share three.
    assert rows["backward, two jobs"] == 7
    assert rows["backward, one job"] == 4
    assert rows["depends"] == 1
    assert rows["forward, two jobs"] >= 4


def test_grouping_is_exact_out_of_order(quick: Quick) -> None:
    rows = {row["algorithm"]: row["50 %"] for row in quick.rows("reduce-disorder")}
    assert rows["grouping, Headwater"] == 100


# --- flow, serve, scale -----------------------------------------------------------------------


def test_publishers_get_their_events_into_the_stream(quick: Quick) -> None:
    (table,) = quick.tables("flow-publish")
    assert by(table["rows"], "publishers", "processes") == [(1, 1), (3, 2)]
    for row in table["rows"]:
        assert row["events/s"] > row["waiting, events/s"] > 0
    least = min(row["events/s"] for row in table["rows"])
    assert ("met" if least >= PUBLISHED else "missed") in table["notes"][0]


def test_labelling_is_told_by_shape_and_size(quick: Quick) -> None:
    rows = quick.rows("flow-labels")
    told = [(row["shape"], round(row["nodes"], -1)) for row in rows]
    assert told == [(shape, n) for shape in ("in-tree", "sequential") for n in (50, 100)]
    assert all(row["ms"] > 0 and row["µs each"] > 0 for row in rows)


def test_each_runtime_has_its_rates(quick: Quick) -> None:
    rows = quick.rows("flow-runtimes")
    assert by(rows, "runtime", "published/s") == [
        *(("operators", 40), ("operators", None), ("jobs", 4), ("jobs", None)),
    ]
    for row in rows:
        assert row["results/s"] > 0
        if row["published/s"]:
            assert 0 < row["latency p50 ms"] <= row["p95 ms"]


def test_chains_are_deployed_and_changed(quick: Quick) -> None:
    rows = quick.rows("flow-deploy")
    assert by(rows, "nodes", "units") == [(1, 1), (6, 3)]
    assert all(row["deploy s"] > 0 and row["change s"] > 0 for row in rows)


def test_a_static_step_is_run_once(quick: Quick) -> None:
    (row,) = quick.rows("flow-static")
    assert row["each time s"] >= 30 * 0.1 / 2, "on two cores at best"
    assert row["gain"] == row["each time s"] / row["reused s"] > 1


def test_map_outputs_kept_and_made_anew_give_the_same(quick: Quick) -> None:
    (table,) = quick.tables("flow-window")
    rows = table["rows"]
    assert by(rows, "reduce", "files") == [(0, 1), (1, 2)]
    assert rows[0]["reuse s"] <= rows[1]["reuse s"]
    assert "times sooner" in table["notes"][0]


def test_the_service_takes_events_and_answers(quick: Quick) -> None:
    published = quick.rows("serve-publish")
    assert by(published, "events a request", "clients") == [(1_000, 2), (1, 2)]
    asked = quick.rows("serve-ask")
    assert by(asked, "beside", "asked") == [("nothing", "backward"), ("nothing", "forward")]
    assert all(row["p50 ms"] <= row["p95 ms"] <= row["p99 ms"] for row in asked)


def test_a_lake_as_it_grows(quick: Quick) -> None:
    table, lists = quick.tables("scale-lake")
    assert by(table["rows"], "edges", "asked") == [
        (edges, way) for edges in (2_000, 8_000) for way in ("backward", "forward")
    ]
    for row in table["rows"]:
        assert 10 < row["bytes an edge"] < 1_000
        assert 0 < row["p50 ms"] <= row["p95 ms"]
    assert not table["notes"], "its goal is for many more edges"
    assert [row["files of a table"] for row in lists["rows"]] == [10]


def test_growth(quick: Quick) -> None:
    grown, costs, fits = quick.tables("scale-growth")
    first, _, last, _ = grown["rows"]
    assert [row["store"] for row in grown["rows"]] == ["embedded", "lake"] * 2
    assert (first["grows"], last["grows"]) == ("nothing", "overlap")
    assert last["edges"] > 5 * first["edges"] > 0
    for row in grown["rows"]:
        # What is not written is held: by windows that are still open.
        assert row["edges"] + row["held"] == row["records"] * row["overlap"]
        assert row["held"] > 0 < row["state rows"] * row["state bytes"]
        assert row["store bytes"] > row["edges"]
    assert {row["model"] for row in costs["rows"]} == {row["model"] for row in fits["rows"]}
    assert all(row["costs"] >= 0 for row in costs["rows"])
    ends = "overlap ends at 10: one more step would take more than 0 s a run"
    assert grown["notes"] == [ends]


def test_both_stores(quick: Quick) -> None:
    (table,) = quick.tables("scale-stores")
    assert [row["records"] for row in table["rows"]] == [1_000, 1_000]
    assert [("ratio" in row) for row in table["rows"]] == [False, True]
    assert table["notes"][0].startswith("a batch takes ")


# --- answers ----------------------------------------------------------------------------------


def test_replay_reads_a_slice(quick: Quick) -> None:
    rows = quick.rows("replay")
    assert [row["mode"] for row in rows] == ["ancestors", "intervals"]
    for row in rows:
        assert row["its records"] == 4, "an alert has four reports"
        assert row["asked"] == 50
        assert 4 <= row["rows read"] < 20_000, "a slice, not the whole source"
        assert row["rows read"] <= row["rows read for all"]


def test_lookups_are_timed_by_whom_they_are_asked(quick: Quick) -> None:
    report = quick.report("queries")
    assert report["edges"] == 200_000
    assert report["owner"]["backward p95, ms"] > 0


# --- all of them ------------------------------------------------------------------------------


def test_all_of_them_make_the_page(quick: Quick, tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    kept = ["--folder", str(quick.folder.path), "--page", str(page)]
    done = CliRunner().invoke(app, ["bench", "all", "--quick", *kept])
    assert done.exit_code == 0, done.output
    tiny = [run.name for run in RUNS if "quick" in run.sizes]
    numbers = loads(page.with_suffix(".json").read_text())
    assert list(numbers["runs"]) == tiny
    assert {run.name for run in RUNS} - {*tiny} == {
        *("reduce-memory", "scale-cores", "scale-workers"),  # Spark in more processes: `long`
    }
    assert [run.name for run in RUNS[: len(SUITES)]] == [f"capture-{suite}" for suite in SUITES]
    text = page.read_text()
    assert f"{len(tiny)} × `quick`" in text
    assert "say nothing about speed" in text
    assert "| 0.83 |" in text.replace("*", ""), "Ariadne's 20 % at a window of 10"
    for view in VIEWS:
        if drawn := view.groups(numbers["runs"]):
            picture = ET.parse(page.parent / "images" / "bench" / f"{view.name}.svg").getroot()
            circles = picture.findall("{*}circle")
            assert len(circles) == sum(p.paper is None for g in drawn for p in g.points) > 0
    missing = {view.name for view in VIEWS if not view.groups(numbers["runs"])}
    assert missing == {"reduce-cores", "scale-machines"}, "quick has one core"
