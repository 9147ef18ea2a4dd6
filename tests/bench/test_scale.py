"""The benchmark of growth runs, and what it finds makes sense."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater.bench import figures
from headwater.bench.scale import measure
from headwater.bench.scaling import growth
from headwater.bench.scaling.model import fitted
from headwater.bench.scaling.stores import crossover
from headwater.cli.bench.scale import Axis

pytestmark = pytest.mark.spark


@pytest.mark.long
@pytest.mark.parametrize("part", ["cores", "workers"])
def test_more_machines(spark: SparkSession, tmp_path: Path, part: str) -> None:
    (table,) = measure(part, quick=True, pairs=1, folder=tmp_path)
    named = part.removesuffix("s")
    assert [row["with"] for row in table.rows] == [f"1 {named}", f"2 {named}s"] * 2
    assert len({row["edges"] for row in table.rows}) == 1
    assert all(("speed-up" in row) == (row["with"] != f"1 {named}") for row in table.rows)


def test_the_command_knows_every_axis() -> None:
    assert [each.value for each in Axis] == list(growth.AXES)


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no part 'moon'"):
        list(measure("moon"))


def test_a_model_finds_what_made_the_figures() -> None:
    amounts = [{"a": 1, "b": b, "c": c} for b in (1, 10, 100) for c in (0, 3, 70)]
    model = fitted(amounts, [7 + 0.5 * row["b"] + 2 * row["c"] for row in amounts])
    assert model.costs == pytest.approx({"a": 7, "b": 0.5, "c": 2})
    assert model.explained == pytest.approx(1)
    assert model.worst == pytest.approx(0, abs=1e-9)
    assert model.of({"a": 1, "b": 2, "c": 3}) == pytest.approx(14)


def test_a_model_has_no_negative_cost() -> None:
    amounts = [{"a": 1, "b": n, "c": n * n} for n in range(1, 9)]
    model = fitted(amounts, [100 - n for n in range(1, 9)])
    assert min(model.costs.values()) >= 0
    assert model.costs["b"] == model.costs["c"] == 0
    assert model.costs["a"] == pytest.approx(95.4, rel=0.01)


@pytest.mark.parametrize(
    ("file", "lake", "said"),
    [
        ((0.1, 3e-6), (0.5, 1e-6), "faster from 200,000 edges a batch on"),
        ((0.1, 1e-6), (0.5, 3e-6), "never faster"),
        ((0.5, 3e-6), (0.1, 1e-6), "always faster"),
    ],
)
def test_where_the_lake_overtakes(
    file: tuple[float, float], lake: tuple[float, float], said: str
) -> None:
    amounts = [{"batch": 1, "edge": edges} for edges in (0, 1_000, 1_000_000)]
    models = [fitted(amounts, [a + b * row["edge"] for row in amounts]) for a, b in (file, lake)]
    assert crossover(*models).endswith(said)


def test_the_page_is_made_of_reports() -> None:
    sizes = {"keys": 10, "window": 100, "overlap": 1, "sinks": 1, "partitions": 2}
    grown = [
        {"grows": grows, "records": records, **sizes, "store": store, "ms a batch": 10.0 * records}
        for grows, records in (("nothing", 100), ("records", 1_000))
        for store in ("embedded", "lake")
    ]
    lake = {"edges": 10**6, "edges/s": 1e6, "bytes an edge": 20.0, "files": 7, "compaction s": 5.0}
    asked = {"asked": "forward", "p50 ms": 5.0, "p95 ms": 9.0}
    listed = {"files of a table": 2_000, "opening ms": 200.0, "again after a commit ms": 20.0}
    listed["finding one id's file ms"] = 3.0
    suites = {
        "growth": [{"title": "G", "rows": grown, "notes": []}],
        "lake": [
            {"title": "L", "rows": [lake | asked], "notes": []},
            {"title": "F", "rows": [listed], "notes": []},
        ],
    }
    report = {"machine": {"cores": 2}, "suites": suites}
    shown = figures.PICTURES["scaling"]
    page = figures.updated(
        f"above\n{figures.BEGIN}\n{figures.END}\nbelow\n", [report], shown, "scaling"
    )
    assert page.startswith("above\n")
    assert page.endswith("below\n")
    assert "| 20.0 bytes an edge, as at 1,000,000 edges | 20.0 | TB |" in page
    # 10^12 edges at half a million a second for each core.
    assert "| writing | 500,000 edges/s a core | 555.6 | core hours |" in page
    # 200,000 files are a hundred times as many: ten times the groups.
    assert "| 9 ms as at 1,000,000 edges, and 30 ms to find its file | 39.0 | ms |" in page
    assert "| 100 µs a file, as at 2,000 files | 20.0 | s |" in page
    drawn = shown.draw(figures.tables_of(report))
    assert drawn.count("<polyline") == 2
    assert ">1 k<" in drawn
