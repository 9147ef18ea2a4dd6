"""`headwater flow`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from headwater import streams
from headwater.cli.flow import app
from headwater.compose import Composition
from headwater.compose.schema import FILE
from tests.compose.figures import WEATHER, figure_17


@pytest.fixture
def weather(tmp_path: Path) -> Path:
    (tmp_path / "weather.yaml").write_text(WEATHER)
    return tmp_path / "weather.yaml"


def call(*args: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, [str(arg) for arg in args])
    if done.exception and not isinstance(done.exception, SystemExit | typer.Exit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def test_plan_prints_a_table_a_picture_or_json(weather: Path) -> None:
    code, out, _ = call("plan", weather)
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert ["storms", "function", "indiana", "indiana", "1", "functions", "5"] in lines
    assert "  stream weather.storms: from sub-flow 5 to sub-flow 6, 7" in out.splitlines()

    _, picture, _ = call("plan", weather, "--mermaid")
    assert picture.startswith("flowchart LR\n")
    assert picture.count("subgraph") == picture.count("  end\n") == 8
    assert '  n_storms -->|"indiana"| n_strong\n' in picture

    _, text, _ = call("plan", weather, "--json")
    told = json.loads(text)
    assert told["deployable"]
    assert [len(unit["nodes"]) for unit in told["units"]] == [4, 1, 1, 2, 1]


def test_plan_shows_missing_joins_and_fails(tmp_path: Path) -> None:
    file = tmp_path / "figure.yaml"
    file.write_text(figure_17().to_yaml())
    code, out, _ = call("plan", file)
    assert code == 1
    assert "n11_input: {join: {from: [n8, n10], policy: latest, clock: n8}}" in out
    code, out, _ = call("plan", file, "--json")
    assert (code, list(json.loads(out)["joins"][0]["choices"])) == (
        1,
        ["latest-of-slower", "drop-to-slower", "window"],
    )
    assert "n_n11:::missing" in call("plan", file, "--mermaid")[1]


def test_check_tells_each_violation_in_a_line_and_columns_in_a_table(weather: Path) -> None:
    code, out, err = call("check", weather)
    assert (code, err) == (0, "")
    assert "6 valid, 0 invalid, 0 unknown" in out
    weather.write_text(WEATHER.replace("where: \"station = 'KIND'\"", "where: \"staton = 'KIND'\""))
    code, _, err = call("check", weather, "--quiet")
    assert code == 1
    assert err == (
        f"{weather}:4: node 'indianapolis', port 'radar': where names 'staton': 'radar' has no "
        "column 'staton'; did you mean 'station'? [columns]\n"
    )
    code, out, _ = call("check", weather, "--json")
    (violation,) = json.loads(out)["violations"]
    assert (violation["node"], violation["rule"], violation["line"]) == (
        "indianapolis",
        "columns",
        4,
    )


BOUND = """\
flow: indiana
nodes:
  radar: {source: {stream: radar, bind: ["lat := $.place.lat : NUMBER", "lon := $.place.lon"]}}
  near: {filter: {from: radar, where: lat > 38 and lon < 0}}
  quiet: {source: {stream: quiet, bind: ["x := $.y : NUMBER"]}}
  calm: {filter: {from: quiet, where: x > 0}}
"""


def published(folder: Path, *events: dict[str, object]) -> None:
    registry = streams.open(folder)
    for name in ("radar", "quiet", "indiana.near"):
        registry.create(
            name, "at timestamp, place struct<lat: string, long: double>, dbz array<int>"
        )
    for name in ("radar", "indiana.near"):
        registry.publish(name, list(events))


def test_check_shows_the_last_event_of_the_streams_that_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "indiana.yaml"
    file.write_text(BOUND)
    monkeypatch.delenv("HEADWATER_STREAMS", raising=False)
    monkeypatch.chdir(tmp_path)
    code, out, _ = call("check", file)
    assert (code, "last event" in out) == (0, False)

    at = datetime(2025, 6, 1, 12, tzinfo=UTC)
    good = {"at": at, "place": {"lat": "40", "long": -86.0}, "dbz": list(range(50))}
    published(tmp_path / "streams", good, good | {"place": {"lat": "north", "long": -86.0}})
    shown = (
        '{"at": "2025-06-01T12:00:00+00:00", "place": {"lat": "north", "long": -86.0}, '
        '"dbz": [0, 1, 2, "… 47 more"]}'
    )
    for given in ([], ["--streams", "streams"]):
        code, out, err = call("check", file, *given)
        assert code == 1
        start, end = (
            f"{file}:3: node 'radar': property ",
            "; correct its path or its type [property]",
        )
        assert err.splitlines() == [
            f"{start}'lat': the last event has 'north' there, which is no NUMBER: {shown}{end}",
            f"{start}'lon': the last event has nothing at $.place.lon: {shown}{end}",
        ]
        assert f"last event of radar: {shown}" in out.splitlines()
        assert "quiet:" not in out

    code, out, _ = call("check", file, "--json", "--streams", "streams")
    told = json.loads(out)
    assert list(told["last_events"]) == ["radar"]
    assert told["last_events"]["radar"]["dbz"] == list(range(50))
    assert {(each["name"], each["verdict"]) for each in told["columns"]} == {
        ("lat", "invalid"),
        ("lon", "invalid"),
        ("x", "unknown"),
    }
    file.write_text(
        BOUND.replace("place.lon", "place.long").replace("lat : NUMBER", "lat : STRING")
    )
    assert call("check", file)[::2] == (0, "")
    monkeypatch.setenv("HEADWATER_STREAMS", str(tmp_path / "none"))
    assert call("check", file)[0] == 0
    assert call("check", file, "--streams", "none")[0] == 2


def test_a_file_that_is_wrong_is_told_in_lines_or_json(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("flow: x\nnodes:\n  a: {filtr: {}}\n  b: {merge: {}}\n")
    for command in (["check"], ["plan"], ["convert", "--to", "json"]):
        code, out, err = call(*command, file)
        assert (code, out, len(err.splitlines())) == (1, "", 2)
        code, out, _ = call(*command, file, "--json")
        assert (code, len(json.loads(out)["violations"])) == (1, 2)


@pytest.mark.parametrize(("form", "ending"), [("yaml", "yaml"), ("python", "py"), ("json", "json")])
def test_convert_writes_what_reads_back(weather: Path, form: str, ending: str) -> None:
    code, out, _ = call("convert", weather, "--to", form)
    assert code == 0
    other = weather.with_name(f"other.{ending}")
    other.write_text(out)
    assert Composition.read(other) == Composition.parse(WEATHER)
    assert json.loads(call("convert", weather, "--to", form, "--json")[1])["text"] == out


def test_schema_prints_the_published_one() -> None:
    assert call("schema")[1] == FILE.read_text()


@pytest.mark.parametrize(
    "line", ["plan", "convert x.yaml", "convert x.yaml --to xml", "plan x.yaml --json --mermaid"]
)
def test_usage_errors_are_2(line: str) -> None:
    assert call(*line.split())[0] == 2
