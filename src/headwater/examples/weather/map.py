"""A map of Indiana, as SVG: stations, the storms that were found, and where they are forecast.

`python -m headwater.examples.weather.map storms.svg --streams streams` draws what streams hold;
without `--streams`, the storms of the example's own sky.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.errors import HeadwaterError
from headwater.examples.weather.outline import STATE
from headwater.examples.weather.plane import CELL, SIDE
from headwater.examples.weather.stations import INDIANA, KM, STATIONS, Station, by_id

if TYPE_CHECKING:
    from headwater.streams import Streams

Event = Mapping[str, Any]

LIGHT = ("IndianaStorm20dB", "weather.light", "storms.storm20")
SEVERE = ("IndianaStorm35dB", "weather.warning")
FORECASTS = ("forecasts",)
"""The streams that are drawn, unless others are named: of each kind the first that there is."""

_NORTH, _SOUTH, _WEST, _EAST = 42.2, 36.9, -90.4, -82.6
_WIDTH, _TOP, _FOOT = 760, 40, 44
_SCALE = (_WIDTH - 20) / ((_EAST - _WEST) * float(np.cos(np.radians(39.8))))  # pixels a degree
_HEIGHT = round((_NORTH - _SOUTH) * _SCALE) + _TOP + _FOOT

_STYLE = """\
    .panel { fill: #ffffff; stroke: #d0d7de; }
    text { fill: #1f2328; font: 12px -apple-system, "Segoe UI", Helvetica, sans-serif; }
    .state { fill: #f6f8fa; stroke: #59636e; stroke-width: 1.5; }
    .range { fill: none; stroke: #8c959f; stroke-dasharray: 2 5; }
    .station { fill: #59636e; } .id { fill: #59636e; font-size: 11px; }
    .light { fill: #0969da; fill-opacity: 0.25; stroke: #0969da; }
    .severe { fill: #cf222e; fill-opacity: 0.35; stroke: #cf222e; }
    .past { fill: #cf222e; fill-opacity: 0.35; }
    .track { fill: none; stroke: #bc4c00; stroke-width: 2; stroke-dasharray: 6 4; }
    .doubt { fill: #bc4c00; fill-opacity: 0.15; stroke: #bc4c00; }
    @media (prefers-color-scheme: dark) {
      .panel { fill: #0d1117; stroke: #3d444d; } text { fill: #e6edf3; }
      .state { fill: #151b23; stroke: #9198a1; } .range { stroke: #656c76; }
      .station, .id { fill: #9198a1; }
      .light { fill: #4493f8; stroke: #4493f8; } .severe, .past { fill: #f85149; }
      .severe { stroke: #f85149; } .track, .doubt { stroke: #db6d28; } .doubt { fill: #db6d28; }
    }"""


def draw(light: Iterable[Event], severe: Iterable[Event], forecasts: Iterable[Event]) -> str:
    """The map of events: of each station the last ones, and dots where severe storms were before.

    Of the forecasts, those of the last scan of a station are drawn.
    """
    rain, strong, told = list(light), list(severe), list(forecasts)
    last = {station: _latest(rain + strong, station) for station in INDIANA.values()}
    now = max((at for at in last.values() if at is not None), default=None)
    when = "no storms" if now is None else f"{now:%Y-%m-%d %H:%M} UTC"
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
            f'width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="Storms over Indiana">'
        ),
        f"  <style>\n{_STYLE}\n  </style>",
        (
            f'  <defs><clipPath id="view"><rect x="10" y="{_TOP}" width="{_WIDTH - 20}" '
            f'height="{_HEIGHT - _TOP - _FOOT}"/></clipPath></defs>'
        ),
        f'  <rect class="panel" x="1" y="1" width="{_WIDTH - 2}" height="{_HEIGHT - 2}" rx="10"/>',
        f'  <text x="16" y="26">Storms over Indiana, {when}</text>',
        '  <g clip-path="url(#view)">',
        f'  <path class="state" d="{_path(STATE)} Z"/>',
        *_ranges(),
        *_past(strong, last),
        *_storms("light", _current(rain, last)),
        *_storms("severe", _current(strong, last)),
        *_tracks(_current(told, last)),
        *_stations(),
        "  </g>",
        *_legend(),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def from_streams(
    registry: Streams,
    light: str | None = None,
    severe: str | None = None,
    forecasts: str | None = None,
) -> str:
    """The map of what streams hold, those of a deployed flow too; those named must be there."""
    return draw(
        _events(registry, light, LIGHT),
        _events(registry, severe, SEVERE),
        _events(registry, forecasts, FORECASTS),
    )


def _events(registry: Streams, named: str | None, usual: Sequence[str]) -> list[Event]:
    there = registry.names()
    name = named or next((each for each in usual if each in there), None)
    if name is None:
        return []
    declared = registry.declaration(name).arrow.names
    grids = ("dbz", "velocity", "cells")  # large, and not drawn
    kept = [column for column in declared if column not in grids]
    batches = registry.read(name)
    return [event for batch in batches for event in batch.table.select(kept).to_pylist()]


def example(sweeps: int = 20, seed: int = 7) -> str:
    """The map of the example's own sky: what the flow would find, worked out here."""
    from headwater.examples.weather import generate, plain, storms
    from headwater.examples.weather.forecast import forecast

    made = list(generate.sweeps(sweeps, seed=seed, stations=tuple(INDIANA.values())))
    light, severe = (plain.detected(made, level) for level in (storms.LIGHT, storms.SEVERE))
    last = {event["station"]: event for event in severe}
    return draw(light, severe, [forecast(event, hours=2) for event in last.values()])


def _at(event: Event) -> datetime:
    at = event["at"]
    return at if isinstance(at, datetime) else datetime.fromisoformat(at)


def _latest(events: Iterable[Event], station: str) -> datetime | None:
    return max((_at(event) for event in events if event["station"] == station), default=None)


def _current(events: Iterable[Event], last: Mapping[str, datetime | None]) -> list[Event]:
    return [event for event in events if _at(event) == last.get(event["station"])]


def _ranges() -> Iterator[str]:
    for name in INDIANA.values():
        x, y = _pixels(by_id(name).lat, by_id(name).lon)
        half = SIDE * CELL / 2 / KM * _SCALE
        yield (
            f'  <rect class="range" x="{x - half:.1f}" y="{y - half:.1f}" '
            f'width="{2 * half:.1f}" height="{2 * half:.1f}"/>'
        )


def _past(events: Iterable[Event], last: Mapping[str, datetime | None]) -> Iterator[str]:
    for event in events:
        if _at(event) != last.get(event["station"]):
            for storm in event["storms"]:
                yield _circle("past", storm, 1.5)


def _storms(kind: str, events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        for storm in event["storms"]:
            # As large as a circle of as many cells.
            radius = float(np.sqrt(storm["cells"] / np.pi)) * CELL / KM * _SCALE
            said = f"{event['station']}: {storm['dbz']} dBZ, {storm['cells']} cells"
            yield _circle(kind, storm, radius, said)


def _tracks(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        storms: dict[int, list[Mapping[str, Any]]] = {}
        for point in event["tracks"]:
            storms.setdefault(point["storm"], []).append(point)
        for points in storms.values():
            path = _path([(point["lat"], point["lon"]) for point in points])
            yield f'  <path class="track" d="{path}"/>'
            end = points[-1]
            said = f"{event['station']}: in {end['minutes']} minutes, {end['dbz']} dBZ"
            yield _circle("doubt", end, max(3.0, end["spread"] / KM * _SCALE), said)


def _stations() -> Iterator[str]:
    for station in STATIONS:
        if _inside(station):
            x, y = _pixels(station.lat, station.lon)
            yield f'  <circle class="station" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
            yield f'  <text class="id" x="{x + 5:.1f}" y="{y - 4:.1f}">{station.id}</text>'


def _inside(station: Station) -> bool:
    return _SOUTH < station.lat < _NORTH and _WEST < station.lon < _EAST - 0.3


def _legend() -> Iterator[str]:
    y = _HEIGHT - 18
    told = (
        ("light", "rain, 20 dBZ"),
        ("severe", "severe, 35 dBZ"),
        ("past", "severe before"),
        ("doubt", "forecast"),
        ("station", "radar station"),
    )
    for number, (kind, text) in enumerate(told):
        x, radius = 24 + number * 145, 6 if kind in ("light", "severe", "doubt") else 3
        yield f'  <circle class="{kind}" cx="{x}" cy="{y - 4}" r="{radius}"/>'
        yield f'  <text x="{x + 12}" y="{y}">{text}</text>'


def _circle(kind: str, place: Mapping[str, Any], radius: float, said: str = "") -> str:
    x, y = _pixels(place["lat"], place["lon"])
    tag = f'  <circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"'
    return f"{tag}><title>{said}</title></circle>" if said else f"{tag}/>"


def _path(places: Sequence[tuple[float, float]]) -> str:
    points = (_pixels(lat, lon) for lat, lon in places)
    return "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _pixels(lat: float, lon: float) -> tuple[float, float]:
    wide = float(np.cos(np.radians(39.8)))
    return 10 + (lon - _WEST) * wide * _SCALE, _TOP + (_NORTH - lat) * _SCALE


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the map to a file."""
    import argparse

    parser = argparse.ArgumentParser(
        prog="python -m headwater.examples.weather.map",
        description="Draw the storms found over Indiana, and their forecasts.",
    )
    parser.add_argument("file", type=Path, help="the SVG to write")
    parser.add_argument("--streams", metavar="DIR", help="the streams folder; else the example's")
    parser.add_argument("--light", metavar="NAME", help="a stream of storms of 20 dBZ")
    parser.add_argument("--severe", metavar="NAME", help="a stream of storms of 35 dBZ")
    parser.add_argument("--forecasts", metavar="NAME", help="a stream of forecasts")
    given = parser.parse_args(arguments)
    try:
        if given.streams is None:
            text = example()
        else:
            from headwater import streams

            registry = streams.open(given.streams)
            text = from_streams(registry, given.light, given.severe, given.forecasts)
    except HeadwaterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    given.file.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
