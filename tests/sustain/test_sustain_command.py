"""`headwater flow sustain`: its table, its JSON, its exit codes; the picture of the docs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from headwater.cli.sustain import sustain
from headwater.sustain import pictures
from tests.compose.figures import WEATHER

GIVEN = ["--rates", "radar=300/min", "--service", "storms=200ms,forecast=30 seconds"]
SHARES = ["--cardinality", "indianapolis=0.1,evansville=0.1", "--cardinality", "strong=0.05"]


@pytest.fixture
def weather(tmp_path: Path) -> str:
    (tmp_path / "weather.yaml").write_text(WEATHER)
    return str(tmp_path / "weather.yaml")


def call(*args: str) -> tuple[int, str, str]:
    app = typer.Typer()
    app.command()(sustain)
    done = CliRunner().invoke(app, list(args))
    if done.exception and not isinstance(done.exception, SystemExit | typer.Exit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def test_the_table_and_the_verdict(weather: str) -> None:
    code, out, _ = call(weather, *GIVEN, *SHARES, "--slots", "storms=4")
    assert code == 0
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line.strip()}
    assert rows["storms"][1:6] == ["1/s", "0.2", "s", "4", "0.05"]
    assert "flow weather: sustainable\n" in out
    assert "  node forecast is full when all sources send 1.33 times as much\n" in out
    assert "  source radar has to stay below 6.67/s while the others are as given\n" in out


def test_json_and_exit_code_1_when_it_cant_keep_up(weather: str) -> None:
    code, out, _ = call(weather, *GIVEN, *SHARES, "--slots", "forecast=1", "--json")
    told = json.loads(out)
    assert (code, told["outlook"], told["bottleneck"]) == (1, "unsustainable", "forecast")
    assert {each["node"]: each["waiting"] for each in told["forecasts"]}["forecast"] == "Infinity"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--rates", "radar=5/x"], "'5/x' is not a rate"),
        (["--rates", "radar"], "'radar' is not NODE=VALUE"),
        (["--slots", "storms=4,storms=5"], "is there twice"),
        (["--slots", "storms=many"], "'many' is not a number"),
    ],
)
def test_usage(weather: str, args: list[str], said: str) -> None:
    code, _, error = call(weather, *args)
    assert code == 2
    assert said in " ".join(error.replace("│", " ").split())


def test_the_picture_is_that_of_the_docs() -> None:
    drawn = Path(__file__).parents[2] / "docs" / "images" / "sustain.svg"
    assert drawn.read_text(encoding="utf-8") == pictures.picture()
