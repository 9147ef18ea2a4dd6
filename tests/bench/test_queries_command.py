"""`headwater bench queries`: the table that people see. Its figures are in `test_quick.py`."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from headwater.bench import queries
from headwater.cli import app


def test_the_table_has_a_row_for_each_asker(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, object] = {}

    def measure(**options: object) -> dict[str, object]:
        asked.update(options)
        spread = {"backward p50, ms": 1.5, "backward p95, ms": 2.5}
        return {"edges": 300_000, "owner": spread, "other process": spread}

    monkeypatch.setattr(queries, "measure", measure)
    done = CliRunner().invoke(app, "bench queries --edges 300000 --ids random".split())
    assert done.exit_code == 0, done.output
    assert asked == {"edges": 300_000, "ids": "random", "lookups": 200}
    for text in ("backward p95, ms", "other process", "2.5", "edges 300000", "cores"):
        assert text in done.stdout
