"""`headwater bench live`: every part, at a size that says nothing about speed."""

from __future__ import annotations

import importlib.util
import os
from functools import partial
from json import loads
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from typer.testing import CliRunner

from headwater.bench import alternatives, figures, graphs, live, memory, postgres
from headwater.bench.graphs import Made, Shape
from headwater.bench.harness import Case, Outcome, Sample
from headwater.bench.meter import Meter, Usage
from headwater.bench.report import Table
from headwater.bench.suites import live as suite
from headwater.cli import app
from headwater.cli.bench.live import Domain, Part
from headwater.errors import HeadwaterError
from headwater.examples import load, synthetic
from headwater.examples.stream import START

SMALL = Shape(10, 50, keys=20)


# --- pre-populated graphs ---------------------------------------------------------------------


@pytest.mark.parametrize(("size", "overlap"), [(10, 0), (10, 75), (7, 50)])
def test_results_have_so_many_records_and_share_so_many(size: int, overlap: int) -> None:
    shape = Shape(size, overlap, keys=3)
    batches = shape.made(2_000, per_batch=300)
    assert sum(made.edges for made in batches) >= 2_000
    sets = np.concatenate([made.members.reshape(-1, size) for made in batches])
    ids = np.concatenate([made.result_ids for made in batches])
    assert len(set(ids.tolist())) == len(sets)
    assert all(len(np.unique(one)) == size for one in sets)
    first, second = (set(one.tolist()) for one in sets[sets[:, 0] % 3 == 0][:2])
    assert len(first & second) == size * overlap // 100
    # A result waits for a watermark at its window's end; its records came before it.
    read = 0
    for made in batches:
        ended = made.result_times + 1
        assert made.watermark is not None or not made.edges
        assert not made.edges or ended.max() <= made.watermark
        assert not made.edges or made.members.max() < read
        read += len(made.ids)
        assert (shape.times(made.ids) == made.times).all()


def test_the_stream_is_that_of_the_synthetic_example(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    (file,) = synthetic.generate(tmp_path, 100, keys=20, files=1)
    times = pq.read_table(file)["ts"].cast(pa.int64()).to_numpy()
    assert (SMALL.times(np.arange(100)) == times).all()
    assert times[0] == START * 1_000_000


def test_the_reach_is_that_of_the_synthetic_flow(spark, tmp_path: Path) -> None:
    import headwater as hw

    synthetic.generate(tmp_path / "data", 100, keys=20, files=1)
    flow = hw.Flow("synthetic", spark)
    synthetic.sinks(flow, tmp_path / "data", size=10, overlap=50)
    (source,) = flow.sources.values()
    known = flow.reach(source, list(flow.sinks.values()))
    times = SMALL.times(np.arange(2_000))
    assert (SMALL.reach.until(times) == known.until(times)).all()
    assert (SMALL.reach.as_ananke(times) == known.as_ananke(times)).all()


def test_every_record_of_a_result_is_a_vertex_once(tmp_path: Path) -> None:
    import headwater as hw

    batches = SMALL.made(3_000, per_batch=500)
    with graphs.Feeder(SMALL, tmp_path / "store", "tight") as feeder:
        for made in batches:
            feeder.take(made)
        with hw.open(tmp_path / "store") as store:
            graph = store.graph()
    members = np.concatenate([made.members for made in batches])
    sources = graph.vertices.filter(np.array(graph.vertices["kind"]) == "source")
    assert sorted(sources["id"].to_pylist()) == np.unique(members).tolist()
    assert graph.edges.num_rows == len(members) == feeder.fed.edges
    assert feeder.fed.vertices == sources.num_rows
    assert 0 < feeder.fed.labels < feeder.fed.vertices


# --- databases --------------------------------------------------------------------------------


@pytest.mark.parametrize("overlap", [0, 50])
def test_polling_finds_what_the_live_graph_has(tmp_path: Path, overlap: int) -> None:
    shape = Shape(10, overlap, keys=20)
    batches = shape.made(3_000, per_batch=500)
    ours = graphs.variant(shape, batches, tmp_path, "ananke")(Meter())
    assert set(ours.answers) == {"edges", "source vertices", "source labels"}
    for make in (lambda: alternatives.Sqlite(None), lambda: alternatives.Sqlite(tmp_path / "db")):
        polled = alternatives.polled(shape, batches, make, 0.0)(Meter())
        assert (polled.answers, polled.results) == (ours.answers, ours.results)


def test_a_poller_that_fails_is_told(tmp_path: Path) -> None:
    class Broken(alternatives.Sqlite):
        def poll(self, after: int, wait: int) -> alternatives.Delivered | None:
            raise ValueError("no such table")

    run = alternatives.polled(SMALL, SMALL.made(500, 500), lambda: Broken(None), 0.0)
    with pytest.raises(HeadwaterError, match="polling failed: no such table"):
        run(Meter())


def test_a_writer_that_fails_ends_its_poller() -> None:
    class Broken(alternatives.Sqlite):
        def write(self, made: Made, times: Any) -> None:
            raise ValueError("disk full")

    run = alternatives.polled(SMALL, SMALL.made(500, 500), lambda: Broken(None), 0.0)
    with pytest.raises(ValueError, match="disk full"):
        run(Meter())


def test_what_postgresql_needs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(postgres.Unavailable, match=r"pip install 'psycopg\[binary\]'"):
        postgres.driver()
    monkeypatch.setattr(postgres, "_INSTALLED", tmp_path)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(postgres.Unavailable, match="there is no initdb here; install"):
        postgres.find("initdb")


def test_the_newest_postgresql_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ("9.6", "15", "old"):
        place = tmp_path / version / "bin"
        place.mkdir(parents=True)
        (place / "initdb").touch()
    monkeypatch.setattr(postgres, "_INSTALLED", tmp_path)
    assert postgres.find("initdb") == tmp_path / "15" / "bin" / "initdb"


def test_postgresql_finds_the_same_graph() -> None:
    pytest.importorskip("psycopg", reason="needs psycopg[binary] and a PostgreSQL server")
    batches = SMALL.made(2_000, per_batch=500)
    ours = graphs.variant(SMALL, batches, None, "ananke")(Meter())
    try:
        with postgres.server() as address:
            make = partial(alternatives.Postgres, address)
            polled = alternatives.polled(SMALL, batches, make, 0.0)(Meter())
            data = Path(address.split()[0].removeprefix("host="))
            pid = int((data / "data" / "postmaster.pid").read_text().split()[0])
    except postgres.Unavailable as reason:
        pytest.skip(str(reason))
    assert (polled.answers, polled.results) == (ours.answers, ours.results)
    assert not data.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


# --- memory -----------------------------------------------------------------------------------


def test_memory_that_grows_is_told() -> None:
    rows = [{"RSS MiB": 100.0 * n, "alive": 5, "pending": 0} for n in range(1, 9)]
    grows, stays, empty, most = memory.notes(rows)
    assert grows == "RSS MiB: last quarter 2.14 times the second; it grows (≤ 1.1)"
    assert stays == "alive: last quarter 1.00 times the second; constant (≤ 1.1)"
    assert "constant" in empty
    assert most == "at most 800 MiB after a batch"


def test_a_run_that_ends_early_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    with pytest.raises(HeadwaterError, match="the run with a cap of 16 MiB ended with 1"):
        list(memory._measured(tmp_path / "taken", 16, SMALL, 1_000, 2))


def test_the_curve_for_the_page() -> None:
    rows = [
        {"records": n, "RSS MiB": 90.0 + n, "DuckDB MiB": 9.0, "pending": 5, "alive": 0}
        for n in range(1, 9)
    ]
    report = {"machine": {"cores": 2}, "suites": {"memory": [{"title": "Memory", "rows": rows}]}}
    tables = figures.tables_of(report)
    drawn = figures.curve(tables)
    lines = ET.fromstring(drawn).findall("{*}polyline")
    assert [len(line.attrib["points"].split()) for line in lines] == [8, 8, 8, 8]
    assert "8 records" in drawn
    assert figures.curve([{"title": "other", "rows": []}]) == ""
    page = f"above\n{figures.BEGIN}\nold\n{figures.END}\nbelow\n"
    made = figures.updated(page, [report], figures.PICTURES["live-costs"])
    assert "images/live-memory.svg" in made
    assert "| 8 | 98.0 | 9.000 | 5 | 0 |" in made
    assert "old" not in made


# --- through Spark ----------------------------------------------------------------------------


def test_live_is_compared_with_eager() -> None:
    def sample(seconds: float) -> Sample:
        return Sample({"generation": Usage(seconds, seconds, 1)}, 10)

    samples = {"none": [sample(5)] * 3, "eager": [sample(9)] * 3, "live": [sample(10)] * 3}
    case = Case({"domain": "x"}, 1_000, dict.fromkeys(samples, lambda meter: sample(1)))
    *_, row = suite._compared(Outcome(case, samples))
    assert (row["ratio"], row["of eager"]) == (0.5, 0.9)
    assert row["of eager, 95 %"] == [0.9, 0.9]
    assert row["goal"] == "met: ≥ 0.90"


def test_a_label_that_is_later_makes_the_measurement_void() -> None:
    with pytest.raises(HeadwaterError, match="1 labels are later .* record 2: .* void"):
        suite.earlier({1: 5, 2: 9}, {1: 5, 2: 8}, 10)
    with pytest.raises(HeadwaterError, match="record 3"):
        suite.earlier({1: 5}, {1: 5, 3: 8}, 10)


# --- the command ------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """What the command asks for by part; nothing is measured."""
    asked: dict[str, dict[str, Any]] = {}

    def measure(part: str, spark: Any, **options: Any) -> list[Table]:
        asked[part] = {"spark": spark, **options}
        return [Table(f"Part {part}", {"mode": ""}, [{"mode": "live"}], ["a note"])]

    monkeypatch.setattr(live, "measure", measure)
    return asked


def test_throughput_of_all_domains_is_the_default(spark, asked) -> None:
    done = CliRunner().invoke(app, ["bench", "live"])
    assert done.exit_code == 0, done.output
    for text in ("Part", "throughp", "a note", "cores"):
        assert text in done.stdout
    (options,) = asked.values()
    assert options["spark"] is not None
    assert options["domains"] == suite.DOMAINS
    assert options["sizes"] == graphs.SIZES


def test_all_parts_in_order_with_their_options(spark, asked) -> None:
    args = "--part all --domain smart-grid --size 7 --cap 64 --records 500 --json"
    done = CliRunner().invoke(app, ["bench", "live", *args.split()])
    assert done.exit_code == 0, done.output
    assert list(asked) == list(live.PARTS) == list(loads(done.stdout)["suites"])
    options = asked["memory"]
    assert options["domains"] == ("smart_grid",)
    assert (options["sizes"], options["cap"], options["records"]) == ([7], 64, 500)


def test_without_a_part_through_spark_none_is_started(asked) -> None:
    args = "--part memory --part graph"
    assert CliRunner().invoke(app, ["bench", "live", *args.split()]).exit_code == 0
    assert list(asked) == ["graph", "memory"]
    assert [options["spark"] for options in asked.values()] == [None, None]


def test_the_command_knows_every_part_and_domain() -> None:
    assert [each.value for each in Part] == [*live.PARTS, "all"]
    assert [each.value.replace("-", "_") for each in Domain] == list(suite.DOMAINS)
    assert all(len(load(name).SINKS) == 2 for name in suite.DOMAINS)
