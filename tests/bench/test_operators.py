"""The benchmark of operators, at a size that says nothing about speed."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from headwater.bench import capture
from headwater.bench.suites import operators
from headwater.cli import app


def test_operators(spark, tmp_path: Path) -> None:
    (table,) = capture.measure(
        spark,
        operators.tables,
        modes=("none", "eager"),
        folder=tmp_path,
        records=1_000,
        batches=1,
        pairs=1,
        warm_ups=0,
        keys=(1_000,),
        operators=("count_window, sliding", "count_window", "match"),
    )
    rows = [(row["operator"], row["keys"], row["mode"]) for row in table.rows]
    assert rows == [
        (operator, 1_000, mode)
        for operator in ("count_window, sliding", "count_window", "match")
        for mode in ("none", "eager")
    ]
    assert all(row["records/s"] > 0 for row in table.rows)
    (note,) = table.notes
    assert note.startswith("count_window, 1,000 keys: ")
    assert note.endswith("the goal of 100,000 is missed")


def test_an_unknown_operator_is_refused(spark) -> None:
    done = CliRunner().invoke(app, ["bench", "operators", "--operator", "sort"])
    assert done.exit_code == 2
    assert "there is no operator" in done.output
    assert "b_sort" in done.output
