"""`headwater bench capture`: its options, and what it prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from headwater.bench import capture
from headwater.bench.harness import MODES
from headwater.bench.report import RATES, Table
from headwater.bench.suites import SUITES
from headwater.cli import app
from headwater.cli.bench.capture import Suite
from headwater.cli.bench.common import Mode


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """What the command asks for by suite; nothing is measured."""
    asked = {}

    def measure(spark: Any, suite: str, **options: Any) -> Iterator[Table]:
        asked[suite] = options
        row = {"window": 10, "mode": "eager", "records/s": 12_345, "ratio": 0.9}
        yield Table(f"Suite {suite}", {"window": ",", **RATES}, [row], ["a note"])

    monkeypatch.setattr(capture, "measure", measure)
    return asked


def test_a_table_for_each_suite(spark, asked) -> None:
    args = "--suite basic --suite slides --mode eager --records 2000 --pairs 2"
    done = CliRunner().invoke(app, ["bench", "capture", *args.split()])
    assert done.exit_code == 0, done.output
    for text in ("Suite basic", "Suite slides", "12,345", "0.900", "a note", "cores"):
        assert text in done.stdout
    assert list(asked) == ["basic", "slides"]
    assert asked["basic"]["modes"] == ["eager"]
    assert (asked["basic"]["records"], asked["basic"]["pairs"]) == (2_000, 2)


def test_linear_road_is_the_default_and_has_options_of_its_own(spark, asked) -> None:
    args = "--format csv --state rocksdb"
    assert CliRunner().invoke(app, ["bench", "capture", *args.split()]).exit_code == 0
    assert list(asked) == ["linear-road"]
    assert asked["linear-road"]["formats"] == ["csv"]
    assert asked["linear-road"]["states"] == ["rocksdb"]


def test_all_is_every_suite(spark, asked) -> None:
    assert CliRunner().invoke(app, ["bench", "capture", "--suite", "all"]).exit_code == 0
    assert list(asked) == list(SUITES)
    assert asked["basic"]["modes"] == list(MODES)


def test_the_command_knows_every_suite_and_mode() -> None:
    assert [each.value for each in Suite] == [*SUITES, "all"]
    assert [each.value for each in Mode] == list(MODES)
