"""`headwater bench replay`: answers by replay, over a small source."""

from __future__ import annotations

from json import loads

import pytest
from typer.testing import CliRunner

from headwater.cli.app import app

pytestmark = pytest.mark.spark


def test_command(spark) -> None:
    args = "--records 20000 --asked 50 --repeats 1 --mode ancestors --mode intervals --json"
    done = CliRunner().invoke(app, ["bench", "replay", *args.split()])
    assert done.exit_code == 0, done.output
    rows = loads(done.stdout)["rows"]
    assert [row["mode"] for row in rows] == ["ancestors", "intervals"]
    for row in rows:
        assert row["its records"] == 4, "an alert has four reports"
        assert row["asked"] == 50
        assert 4 <= row["rows read"] < 20_000, "a slice, not the whole source"
        assert row["rows read"] <= row["rows read for all"]
