"""The benchmark of operators, at a size that says nothing about speed."""

from __future__ import annotations

from typer.testing import CliRunner

from headwater.cli import app


def test_an_unknown_operator_is_refused(spark) -> None:
    done = CliRunner().invoke(app, ["bench", "operators", "--operator", "sort"])
    assert done.exit_code == 2
    assert "there is no operator" in done.output
    assert "b_sort" in done.output
