"""The capture benchmark at a size that says nothing about speed."""

from __future__ import annotations

from json import loads
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headwater.bench import capture
from headwater.bench.capture import Outcome, Sample
from headwater.cli import app
from headwater.errors import HeadwaterError


def sample(rate: float, results: int = 10) -> Sample:
    return Sample("none", 1.0, rate, 8, results, 40)


def test_medians_and_paired_ratios() -> None:
    none = [sample(rate) for rate in (100.0, 200.0, 120.0)]
    eager = [sample(rate) for rate in (90.0, 100.0, 114.0)]
    outcome = Outcome("csv", "memory", 1_000, none, eager)
    assert (outcome.none_rate, outcome.eager_rate) == (120, 100)
    assert outcome.ratio == pytest.approx(100 / 120)
    assert outcome.ratios == pytest.approx([0.5, 0.9, 0.95])


def test_runs_that_differ_are_void() -> None:
    outcome = Outcome("csv", "memory", 1_000, [sample(1)], [sample(1, results=11)])
    with pytest.raises(HeadwaterError, match="the measurement is void"):
        capture._same_results(outcome)


def test_every_case_is_measured_in_alternation(spark, tmp_path: Path) -> None:
    told: list[str] = []
    outcomes = list(
        capture.measure(
            spark,
            reports=2_000,
            pairs=1,
            batches=2,
            formats=["csv"],
            folder=tmp_path,
            progress=lambda doing, done, total: told.append(f"{done}/{total} {doing}"),
        )
    )
    assert [(outcome.format, outcome.state) for outcome in outcomes] == [
        ("csv", "memory"),
        ("csv", "rocksdb"),
    ]
    assert told[:5] == [
        "0/8 writing csv",
        "0/8 csv, memory, eager: warm-up",
        "1/8 csv, memory, none: warm-up",
        "2/8 csv, memory, none: 1 of 1",
        "3/8 csv, memory, eager: 1 of 1",
    ]
    for outcome in outcomes:
        (none,), (eager,) = outcome.none, outcome.eager
        assert none.results == eager.results > 0
        assert none.edges == 0
        assert eager.edges == 4 * eager.results
        assert 2 <= eager.batches <= 3
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("json", [False, True], ids=["table", "json"])
def test_command(spark, json: bool) -> None:
    args = "--reports 2000 --pairs 1 --batches 1 --format parquet --state memory".split()
    done = CliRunner().invoke(app, ["bench", "capture", *args, *(["--json"] if json else [])])
    assert done.exit_code == 0
    if json:
        report = loads(done.stdout)
        assert report["outcomes"][0]["ratio"] > 0
        assert report["machine"]["pyspark"].startswith("4.")
    else:
        assert "eager/none" in done.stdout
