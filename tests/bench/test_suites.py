"""Each suite of the capture benchmark, at a size that says nothing about speed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headwater.bench import capture
from headwater.bench.harness import Case, Outcome, Sample
from headwater.bench.lab import Lab
from headwater.bench.meter import Meter, Usage
from headwater.bench.report import Table
from headwater.bench.suites import SUITES, nested, retrieval, rewrite
from headwater.bench.suites.network import Network
from headwater.errors import HeadwaterError

MODES = ("none", "eager")


def measured(spark, tmp_path: Path, suite: str, **options: Any) -> list[Table]:
    options = {"records": 1_000, "batches": 1, "pairs": 1, "warm_ups": 0, **options}
    tables = list(capture.measure(spark, suite, modes=MODES, folder=tmp_path, **options))
    assert not any(tmp_path.iterdir())
    return tables


def by(table: Table, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in table.rows]


def check_rates(table: Table) -> None:
    for row in table.rows:
        assert row["records/s"] > 0
        assert row["CPU s"] > 0
        assert row["peak MiB"] > 1
        assert row["results"] > 0
        assert (row["mode"] == "none") == (row["edges"] == 0)
    assert len(list(table.cells())) == len(table.rows)


def test_linear_road(spark, tmp_path: Path) -> None:
    (table,) = measured(
        spark, tmp_path, "linear-road", records=2_000, formats=["csv"], states=["memory"]
    )
    assert by(table, "flow", "format", "state", "mode") == [
        (flow, "csv", "memory", mode) for flow in ("stopped", "accidents") for mode in MODES
    ]
    check_rates(table)
    edges = {row["flow"]: row["edges"] / row["results"] for row in table.rows if row["edges"]}
    assert edges == {"stopped": 4, "accidents": 8}


def test_basic(spark, tmp_path: Path) -> None:
    (table,) = measured(spark, tmp_path, "basic", sizes=[10])
    assert by(table, "window", "mode") == [(10, mode) for mode in MODES]
    check_rates(table)


def test_nested_and_figure_14(spark, tmp_path: Path) -> None:
    rates, figure = measured(spark, tmp_path, "nested", aggregations=[2])
    assert by(rates, "aggregations", "mode") == [(2, mode) for mode in MODES]
    check_rates(rates)
    lines = {(row["method"], row["what"]): row["2"] for row in figure.rows}
    assert {method for method, _ in lines} == {"none", "eager", "rewrite"}
    for method, part in [
        ("none", "generation"),
        ("eager", "generation"),
        ("eager", "retrieval"),
        ("rewrite", "generation"),
    ]:
        assert lines[method, f"{part} s"] > 0
        assert lines[method, f"{part} peak MiB"] > 1
    assert lines["eager", "rows of provenance"] == rates.rows[1]["edges"]
    # Rewritten, a tuple comes once for each window of the first aggregate that it is in.
    assert lines["rewrite", "rows of provenance"] > 3 * lines["eager", "rows of provenance"]


def test_a_rewritten_query_that_takes_too_long_is_given_up(spark, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, Meter(spark), batches=1)
    network = Network(10, 1, aggregations=3)
    run = rewrite.variant(lab, network, network.data(lab, 2_000), limit=1)
    with pytest.raises(HeadwaterError, match="the rewritten query was given up after 1 s"):
        run(lab.meter)


def test_a_rewritten_query_that_spark_refuses(spark, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path, Meter(spark), batches=1)
    run = rewrite.variant(lab, Network(10, 0), tmp_path)
    with pytest.raises(HeadwaterError, match="the rewritten query failed: .*slide"):
        run(lab.meter)


def test_figure_14_says_what_did_not_run() -> None:
    case = Case({"aggregations": 3}, 1_000, dict.fromkeys(["none", "rewrite"], lambda meter: None))
    none = Sample({"generation": Usage(2.0, 3.0, 1 << 20)}, results=10)
    figure = nested.figure("", [Outcome(case, {"none": [none]}, {"rewrite": "no memory"})])
    assert list(figure.cells()) == [
        ["none", "generation s", "2.00"],
        ["none", "generation CPU s", "3.00"],
        ["none", "generation peak MiB", "1.00"],
        ["rewrite", "generation s", "–"],
        ["rewrite", "generation CPU s", "–"],
        ["rewrite", "generation peak MiB", "–"],
        ["rewrite", "rows of provenance", "–"],
    ]
    assert figure.notes == ["aggregations 3: rewrite did not run: no memory"]


def test_the_crossover_of_eager_and_lazy() -> None:
    def sample(generation: float, **asked: float) -> Sample:
        parts = {"generation": generation, **asked}
        return Sample({name: Usage(s, s, 1) for name, s in parts.items()}, results=10)

    samples = {
        "none": [sample(10)],
        "intervals": [sample(10, few=1, all=21)],
        "ancestors": [sample(10, few=1, all=2)],
        "eager": [sample(20, few=1, all=1)],
    }
    outcome = Outcome(Case({}, 1_000, {}), samples)
    assert list(retrieval.crossovers(outcome, {"few": 0.01, "all": 1.0})) == [
        "intervals is cheaper than eager up to 50.50% of the results",
        "ancestors is cheaper than eager at every share measured",
    ]


def test_windows(spark, tmp_path: Path) -> None:
    (table,) = measured(spark, tmp_path, "windows", small=[20], large=[200, 500_000])
    assert by(table, "window", "slide", "mode") == [
        (size, slide, mode) for size, slide in [(20, 1), (200, 20)] for mode in MODES
    ]
    check_rates(table)
    assert table.notes == ["left out: a window of 500,000 needs --records 2000000"]


def test_slides(spark, tmp_path: Path) -> None:
    (table,) = measured(spark, tmp_path, "slides", slides=[20, 100])
    assert by(table, "slide", "mode") == [(slide, mode) for slide in (20, 100) for mode in MODES]
    check_rates(table)


def test_complex(spark, tmp_path: Path) -> None:
    (table,) = measured(spark, tmp_path, "complex", fronts=[2])
    assert by(table, "front window", "mode") == [(2, mode) for mode in MODES]
    check_rates(table)


def test_retrieval(spark, tmp_path: Path) -> None:
    (table,) = measured(spark, tmp_path, "retrieval", shares=[0.1, 1.0])
    assert by(table, "asked", "mode") == [("–", "none"), ("10 %", "eager"), ("100 %", "eager")]
    some, everything = (row["rows of provenance"] for row in table.rows[1:])
    assert 0 < some < everything
    for row in table.rows[1:]:
        assert row["total s"] == pytest.approx(row["generation s"] + row["retrieval s"], abs=0.01)


def test_chain(spark, tmp_path: Path) -> None:
    (table,) = measured(spark, tmp_path, "chain", components=[2, 15])
    assert by(table, "components", "mode") == [(n, mode) for n in (2, 15) for mode in MODES]
    check_rates(table)
    assert {row["results"] for row in table.rows} == {1_000}


def test_all_suites_are_tested_here() -> None:
    tested = "linear-road basic nested windows slides complex retrieval chain"
    assert list(SUITES) == tested.split()
