"""`headwater bench queries` at a small size."""

from __future__ import annotations

from json import loads

import pytest
from typer.testing import CliRunner

from headwater.cli import app


@pytest.mark.parametrize("json", [False, True], ids=["table", "json"])
def test_command(json: bool) -> None:
    args = "--edges 200000 --lookups 3".split()
    done = CliRunner().invoke(app, ["bench", "queries", *args, *(["--json"] if json else [])])
    assert done.exit_code == 0
    if json:
        report = loads(done.stdout)
        assert report["edges"] == 200_000
        assert report["owner"]["backward p95, ms"] > 0
    else:
        assert "backward p95, ms" in done.stdout
        assert "other process" in done.stdout
