"""The forecast: motions and places against the true sky; the command as a job runs it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.examples.weather import plain
from headwater.examples.weather.forecast import FORECAST, forecast, main
from headwater.examples.weather.plane import kilometres
from headwater.examples.weather.radar import START
from headwater.examples.weather.sky import Sky
from headwater.examples.weather.storms import SEVERE
from headwater.streams import Streams


@pytest.fixture(scope="module")
def severe(scans: pa.Table) -> list[dict[str, Any]]:
    """Events with severe storms in Indiana."""
    return plain.detected([scans], SEVERE)


def true_path(sky: Sky, event: dict[str, Any], storm: dict[str, Any]) -> tuple[int, float]:
    """The true storm nearest to one that was found, and how far the second nearest is."""
    truth = sky.at((event["at"] - START).total_seconds())
    east, north = kilometres(truth.lat, truth.lon, (storm["lat"], storm["lon"]))
    distance = np.where(truth.alive, np.hypot(east, north), np.inf)
    order = np.argsort(distance)
    return int(order[0]), float(distance[order[1]])


def test_storms_are_forecast_where_they_go(scans: pa.Table, sky: Sky) -> None:
    missed, still = [], []
    for event in plain.storms_in(scans, SEVERE).to_pylist()[::31]:
        made = forecast(event, hours=1, members=3, every=60)
        for number, storm in enumerate(event["storms"]):
            which, second = true_path(sky, event, storm)
            ahead = [t for t in made["tracks"] if t["storm"] == number and t["minutes"] == 60]
            if second < 60 or not ahead:  # run together, or gone
                continue
            seconds = (event["at"] - START).total_seconds() + 3_600
            age = seconds - sky.born[which]
            lat = sky.lat[which] + sky.north[which] * age / 1_000 / 111.195
            moved = sky.east[which] * age / 1_000
            lon = sky.lon[which] + moved / (111.195 * np.cos(np.radians(sky.lat[which])))
            east, north = kilometres(lat, lon, (ahead[0]["lat"], ahead[0]["lon"]))
            missed.append(float(np.hypot(east, north)))
            east, north = kilometres(lat, lon, (storm["lat"], storm["lon"]))
            still.append(float(np.hypot(east, north)))
    assert len(missed) > 10
    assert np.median(missed) < 8
    assert np.median(still) > 30  # what saying "it stays" would miss by


def test_a_forecast_is_the_same_again_and_has_its_columns(
    severe: list[dict[str, Any]], registry: Streams
) -> None:
    event = severe[-1]
    made = forecast(event, members=2)
    assert made == forecast(event, members=2)
    registry.create("forecasts", FORECAST, event_time="at", id="scan")
    assert registry.publish("forecasts", made).events == 1
    assert made["until"] - made["at"] == timedelta(hours=3)
    first = [point for point in made["tracks"] if point["minutes"] == 0]
    assert [point["storm"] for point in first] == list(range(event["number"]))
    for point, storm in zip(first, event["storms"], strict=True):
        east, north = kilometres(point["lat"], point["lon"], (storm["lat"], storm["lon"]))
        assert np.hypot(east, north) < 2
        assert abs(point["dbz"] - storm["dbz"]) < 0.1
    spreads = [point["spread"] for point in made["tracks"] if point["storm"] == 0]
    assert spreads == sorted(spreads)
    assert spreads[-1] > 1


def test_no_storms_no_tracks(scans: pa.Table) -> None:
    event = {**scans.slice(0, 1).to_pylist()[0], "number": 0, "storms": []}
    assert forecast(event, seconds=60)["tracks"] == []


def test_the_command_reads_an_event_and_prints_a_line(severe: list[dict[str, Any]]) -> None:
    event = json.dumps(severe[0], default=lambda at: at.isoformat())
    command = [sys.executable, "-m", "headwater.examples.weather.forecast", "--seconds", "1.5"]
    few = [*command[:-2], "--members", "1", "--hours", "1"]
    done = subprocess.run(
        [*few, "--seconds", "1"], input=event, capture_output=True, text=True, check=True
    )
    (line,) = done.stdout.splitlines()
    made = json.loads(line)
    assert made["scan"] == severe[0]["scan"]
    assert datetime.fromisoformat(made["at"]) == severe[0]["at"]
    assert made["members"] > 1  # the second was used


@pytest.mark.parametrize("given", ["", "no JSON", "[]", '{"station": "KIND"}', '{"station": "X"}'])
def test_what_is_no_event_is_refused_in_a_line(
    given: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(given))
    assert main([]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
