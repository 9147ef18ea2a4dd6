"""The map, and what the page on weather shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lxml import etree

from headwater.compose import Composition
from headwater.examples.weather import flow_file, plain
from headwater.examples.weather import map as maps
from headwater.examples.weather.forecast import forecast
from headwater.examples.weather.stations import INDIANA
from headwater.examples.weather.storms import LIGHT, SEVERE
from headwater.streams import Streams

DOCS = Path(__file__).parents[3] / "docs"


def circles(svg: str, kind: str) -> int:
    """How many circles of a class there are, without that of the legend."""
    root = etree.fromstring(svg.encode())
    return len(root.findall(f".//{{*}}g/{{*}}circle[@class='{kind}']"))


@pytest.fixture(scope="module")
def events(scans: pa.Table) -> list[list[dict[str, Any]]]:
    light, severe = (plain.detected([scans], level) for level in (LIGHT, SEVERE))
    return [light, severe, [forecast(event, hours=1, members=1) for event in severe[-3:]]]


def test_all_that_was_found_is_drawn(events: list[list[dict[str, Any]]]) -> None:
    svg = maps.draw(*events)
    light, severe, forecasts = events
    last = {event["station"]: event["at"] for event in light}
    for kind, all_of in (("light", light), ("severe", severe)):
        now = [event for event in all_of if event["at"] == last[event["station"]]]
        assert circles(svg, kind) == sum(event["number"] for event in now) > 0
    before = [event for event in severe if event["at"] != last[event["station"]]]
    assert circles(svg, "past") == sum(event["number"] for event in before)
    current = [made for made in forecasts if made["at"] == last[made["station"]]]
    tracks = {(made["station"], point["storm"]) for made in current for point in made["tracks"]}
    assert circles(svg, "doubt") == len(tracks) > 0
    for station in INDIANA.values():
        assert f">{station}</text>" in svg


def test_no_storms_are_a_map_too() -> None:
    svg = maps.draw([], [], [])
    assert "no storms" in svg
    assert circles(svg, "severe") == 0


def test_streams_are_drawn_as_events_are(
    events: list[list[dict[str, Any]]],
    registry: Streams,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from headwater.examples.weather.radar import SCHEMA
    from headwater.examples.weather.storms import STORMS

    for name, found in zip((maps.LIGHT[0], maps.SEVERE[0]), events, strict=False):
        registry.create(name, f"{SCHEMA}, {STORMS}")
        registry.publish(name, found)
    file = tmp_path / "map.svg"
    assert maps.main([str(file), "--streams", str(registry.folder)]) == 0
    assert file.read_text() == maps.draw(*events[:2], [])
    assert maps.main([str(file), "--streams", str(registry.folder), "--forecasts", "none"]) == 1
    assert "no stream 'none'" in capsys.readouterr().err


def test_the_picture_of_the_page_is_current() -> None:
    current = (DOCS / "images" / "weather.svg").read_text()
    assert current == maps.example(), (
        "run python -m headwater.examples.weather.map docs/images/weather.svg"
    )


@pytest.mark.parametrize("name", ["weather", "cascade"])
def test_the_plans_of_the_page_are_current(name: str) -> None:
    page = (DOCS / "weather.md").read_text()
    plan = Composition.read(flow_file(name)).plan()
    assert plan.to_text() in page or plan.to_mermaid() in page
