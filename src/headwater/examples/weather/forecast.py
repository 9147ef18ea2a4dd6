"""The forecast of a severe storm: a command for the long job of the weather flow.

`python -m headwater.examples.weather.forecast --seconds 20` reads an event of severe storms on its
standard input, and prints the forecast as one JSON line. It stands for a model that takes hours on
many machines, and is small, but computes what it says:

1. The motion of each storm is fitted to the velocities of its cells, and a little to all others.
2. The intensities of each storm are carried along, in short steps over a larger grid (a
   semi-Lagrangian scheme: each cell takes what comes from where its air was a step before).
3. This is repeated with other motions that the radar can't tell from these: the members of an
   ensemble. With `--seconds`, there are as many as that time allows.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.errors import HeadwaterError
from headwater.examples.weather.advection import BORDER, carried, spread
from headwater.examples.weather.components import clusters
from headwater.examples.weather.plane import (
    CELLS,
    EAST,
    NORTH,
    SIDE,
    Numbers,
    degrees,
    kilometres,
)
from headwater.examples.weather.radar import grids_of
from headwater.examples.weather.stations import by_id
from headwater.examples.weather.storms import SEVERE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FORECAST = (
    "scan bigint, at timestamp, station string, until timestamp, members int, "
    "tracks array<struct<storm: int, minutes: int, lat: double, lon: double, dbz: double, "
    "spread: double>>"
)
"""The columns of a forecast. `spread` says how many kilometres the members are apart."""

_DOUBT = 1.0  # metres a second by which members differ
_LITTLE = 0.003  # what a cell outside of a storm counts for its motion


def forecast(
    event: Mapping[str, Any],
    *,
    hours: float = 3.0,
    members: int = 8,
    seconds: float = 0.0,
    every: int = 30,
) -> dict[str, Any]:
    """The forecast for the storms of an event: a point of each track every so many minutes.

    With `seconds`, members are added until that time is over, so another call may have more.
    """
    if hours <= 0 or members < 1 or seconds < 0 or every < 1:
        raise HeadwaterError(
            f"hours={hours}, members={members}, seconds={seconds}, every={every}: hours, members "
            "and every are more than 0, seconds not less"
        )
    began = time.monotonic()
    station = by_id(event.get("station", ""))
    place = (station.lat, station.lon)
    dbz, velocity = _grids(event)
    storms = _cells_of(dbz, event.get("storms") or [], place)
    motions = np.array([motion(velocity, storm) for storm in storms]).reshape(-1, 2)
    fields = [spread(np.where(storm, 10.0 ** (dbz / 10), 0.0)) for storm in storms]
    moments = [every * n for n in range(int(hours * 60 / every) + 1)]
    random = np.random.default_rng(int(event.get("scan") or 0))
    runs: list[Numbers] = []
    while len(runs) < members or time.monotonic() - began < seconds:
        # The first member is the best guess, the others doubt it.
        doubt = random.normal(0, _DOUBT, motions.shape) if runs else 0.0
        runs.append(carried(fields, motions + doubt, moments))
        if not len(storms):
            break
    at = datetime.fromisoformat(str(event["at"]))
    return {
        "scan": event.get("scan"),
        "at": at,
        "station": station.id,
        "until": at + timedelta(hours=hours),
        "members": len(runs),
        "tracks": _tracks(np.stack(runs), moments, place),
    }


def motion(velocity: Numbers, storm: Numbers) -> tuple[float, float]:
    """The motion, east and north in m/s, whose part away from the station fits what was seen.

    A radar sees nothing of a motion across its beam. The air around a storm moves about as it does,
    and is seen from other sides, so it counts a little.

    >>> away = (12 * EAST + 5 * NORTH) / np.hypot(EAST, NORTH)
    >>> [round(part) for part in motion(away, np.zeros(CELLS))]
    [12, 5]
    """
    distance = np.hypot(EAST, NORTH)
    weight = np.sqrt(np.where(storm, 1.0, _LITTLE))
    sides = np.stack([EAST / distance, NORTH / distance], axis=1)
    (east, north), *_ = np.linalg.lstsq(
        sides * weight[:, np.newaxis], velocity * weight, rcond=None
    )
    return float(east), float(north)


def _grids(event: Mapping[str, Any]) -> tuple[Numbers, Numbers]:
    """Both grids of an event, or of the file that it names."""
    whole = {name: pa.array([event[name]]) for name in ("dbz", "velocity") if event.get(name)}
    if len(whole) < 2:
        whole = {"file": pa.array([event["file"]])} if event.get("file") else {}
    dbz, velocity = grids_of(pa.table(whole), "dbz", "velocity")
    return dbz[0].astype(np.float64), velocity[0].astype(np.float64)


def _cells_of(
    dbz: Numbers, storms: Sequence[Mapping[str, Any]], place: tuple[float, float]
) -> list[Numbers]:
    """For each storm of an event, which cells it has: those of the severe cluster nearest to it."""
    high = np.flatnonzero(dbz >= SEVERE)
    if not len(high):
        return []
    first = clusters(np.zeros(len(high), np.int64), high, SIDE)
    found = []
    for storm in storms:
        east, north = kilometres(storm["lat"], storm["lon"], place)
        near = np.argmin(np.hypot(EAST[high] - east, NORTH[high] - north))
        cells = np.zeros(CELLS)
        cells[high[first == first[near]]] = 1.0
        found.append(cells)
    return found


def _tracks(
    runs: Numbers, moments: Sequence[int], place: tuple[float, float]
) -> list[dict[str, Any]]:
    """The mean of the members for each storm and moment; what has left the grid is left out."""
    tracks = []
    for storm in range(runs.shape[1]):
        for number, minutes in enumerate(moments):
            east, north, dbz = runs[:, storm, number].T
            if np.abs([east, north]).max() > BORDER or dbz.max() < 0:
                break
            lat, lon = degrees(east.mean(), north.mean(), place)
            apart = float(np.hypot(east.std(), north.std()))
            tracks.append(
                {
                    "storm": storm,
                    "minutes": minutes,
                    "lat": round(float(lat), 3),
                    "lon": round(float(lon), 3),
                    "dbz": round(float(dbz.mean()), 1),
                    "spread": round(apart, 1),
                }
            )
    return tracks


def main(arguments: Sequence[str] | None = None) -> int:
    """Reads an event and prints its forecast."""
    import argparse

    parser = argparse.ArgumentParser(
        prog="python -m headwater.examples.weather.forecast",
        description="Forecast the storms of the event on standard input.",
    )
    parser.add_argument("--hours", type=float, default=3.0, help="how far ahead; 3 by default")
    parser.add_argument("--members", type=int, default=8, help="of the ensemble, at least; 8")
    parser.add_argument("--seconds", type=float, default=0.0, help="how long to add members; 0")
    given = parser.parse_args(arguments)
    try:
        try:
            event = json.loads(sys.stdin.readline())
            made = forecast(event, **vars(given))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise HeadwaterError(
                f"standard input has no event with storms: {error!r}; give one JSON line"
            ) from error
    except HeadwaterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(json.dumps(made, default=datetime.isoformat))
    return 0


if __name__ == "__main__":
    sys.exit(main())
