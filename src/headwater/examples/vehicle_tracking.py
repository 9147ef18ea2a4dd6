"""Vehicle tracking: positions of a fleet; flows for fast cars and for cars that stay in an area.

Each car reports its position every three seconds. It drives up and down a road of its own through
the city, at another speed every four minutes, now and then too fast. The area is a square around
the city's centre that every road crosses.

Ananke's Vehicle Tracking queries (its Figure 12a), over a synthetic fleet in place of GeoLife's
traces. A result of *high_speed* comes from about 43 positions, one of *in_area* from 10 to 100.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     [file.name for file in generate(folder, positions=1_000, files=2)]
['positions-00000.parquet', 'positions-00001.parquet']
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.examples import stream
from headwater.examples.stream import SECOND, TIMESTAMP

if TYPE_CHECKING:
    import os
    from collections.abc import Collection
    from pathlib import Path

    from headwater import Flow, Frame
    from headwater.examples.stream import Floats, Ints

SCHEMA = "id bigint, ts timestamp, car int, lat double, lon double"
"""The positions' columns, for Spark; latitude and longitude are in degrees."""

SOURCE = "positions"
SINKS = ("high_speed", "in_area")

INTERVAL = 3
"""Seconds between two positions of a car."""

FAST = 70
"""What the mean speed of two minutes must exceed, in kilometres an hour."""

MANY = 9
"""More positions of a car than these, in the area within five minutes, are a result."""

CENTRE = (39.92, 116.32)
"""Latitude and longitude."""

AREA = (39.91, 39.93, 116.305, 116.335)
"""The area's lowest and highest latitude, lowest and highest longitude."""

METRES = (111_320.0, 85_400.0)
"""Metres in a degree of latitude, and in one of longitude at the centre.

The city is small enough to be flat, and such arithmetic is the same to the last bit everywhere.
"""

_STEPS = 400  # positions of a car, 20 minutes, unless there are more than so many cars
_CARS = (8, 10_000)
_PHASE = 240  # seconds at one speed
_ROAD = 4_000.0  # metres from a road's middle to its end
_ASIDE = 600.0  # metres by which roads pass the centre, at most
_SLOW = (20.0, 60.0)  # km/h
_SPEEDING = (78.0, 110.0)

_ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", TIMESTAMP),
        ("car", pa.int32()),
        ("lat", pa.float64()),
        ("lon", pa.float64()),
    ]
)


def generate(
    path: str | os.PathLike[str],
    positions: int = 60_000,
    speeding: float = 0.2,
    files: int = 32,
    seed: int = 7,
    disorder: int = 0,
) -> list[Path]:
    """Writes `positions` positions into the folder `path` as `files` files in time order.

    `speeding` is the share of time for which a car is too fast. With `disorder` a position arrives
    up to that many seconds after its time (a watermark of as many seconds keeps every one).
    """
    stream.require(SOURCE, positions, files, disorder, speeding=speeding)
    fleet = _Fleet.plan(positions, speeding, seed)
    times = fleet.times(np.arange(positions, dtype=np.int64))
    order = stream.arrivals(times, disorder, seed)
    return stream.write(path, SOURCE, order, files, fleet.positions)


def sinks(
    flow: Flow,
    path: str | os.PathLike[str],
    *,
    only: Collection[str] = SINKS,
    watermark: str = "0 seconds",
    **source: Any,
) -> None:
    """Adds the positions in a folder, and an alert for fast cars and one for the area.

    *high_speed*: a car whose speeds, each over 15 seconds, have a mean above 70 km/h within 120
    seconds. *in_area*: a car with more than nine positions in the area within 300 seconds.
    """
    positions = stream.source(flow, SOURCE, path, SCHEMA, {"watermark": watermark, **source})
    frames = {"high_speed": lambda: _high_speed(positions), "in_area": lambda: _in_area(positions)}
    stream.add(flow, frames, only)


def _high_speed(positions: Frame) -> Frame:
    """A row for each car and window of two minutes in which it was too fast.

    First and last position are the least and the greatest, by time first: these don't depend on
    the order in which positions arrive. So that means don't either, speeds are whole metres an
    hour.
    """
    from pyspark.sql import functions as F

    where = F.struct("ts", "lat", "lon")
    north = f"((z.lat - a.lat) * {METRES[0]}D)"
    east = f"((z.lon - a.lon) * {METRES[1]}D)"
    metres = f"sqrt({north} * {north} + {east} * {east})"
    micros = "(unix_micros(z.ts) - unix_micros(a.ts))"
    return (
        positions.groupBy("car", F.window("ts", "15 seconds", "5 seconds"))
        .agg(F.min(where).alias("a"), F.max(where).alias("z"))
        .filter("z.ts > a.ts")
        .selectExpr("car", "window", f"cast({metres} * 3600e6D / {micros} as int) as speed")
        .groupBy("car", F.window(F.window_time("window"), "120 seconds", "60 seconds"))
        .agg(F.count("*").alias("speeds"), F.avg("speed").alias("mean"))
        .filter(f"mean > {FAST * 1_000}")
        .selectExpr("car", "window", "speeds", "mean / 1000 as kmh")
    )


def _in_area(positions: Frame) -> Frame:
    """A row for each car and window of five minutes with many positions in the area."""
    from pyspark.sql import functions as F

    south, north, west, east = AREA
    return (
        positions.filter(f"lat between {south} and {north} and lon between {west} and {east}")
        .groupBy("car", F.window("ts", "300 seconds", "150 seconds"))
        .agg(F.count("*").alias("n"))
        .filter(f"n > {MANY}")
    )


@dataclass(frozen=True, slots=True)
class _Fleet:
    """All cars of a stream: where their roads are and how far along they have come."""

    cars: int
    speed: Floats  # by car and phase, metres a second
    driven: Floats  # by car and phase, metres before it
    heading: Floats  # by car, as below
    aside: Floats

    @classmethod
    def plan(cls, positions: int, speeding: float, seed: int) -> _Fleet:
        """Draws the cars for a stream of so many positions."""
        rng = np.random.default_rng(seed)
        cars = int(np.clip(positions // _STEPS, *_CARS))
        phases = (positions // cars + 1) * INTERVAL // _PHASE + 1
        shape = (cars, phases)
        fast = rng.random(shape) < speeding
        kmh = np.where(fast, rng.uniform(*_SPEEDING, shape), rng.uniform(*_SLOW, shape))
        speed = kmh / 3.6
        begun = rng.uniform(0, 4 * _ROAD, (cars, 1))
        driven = begun + np.cumsum(speed * _PHASE, axis=1) - speed * _PHASE
        heading = rng.uniform(0, 2 * np.pi, cars)
        return cls(cars, speed, driven, heading, rng.uniform(-_ASIDE, _ASIDE, cars))

    def times(self, ids: Ints) -> Ints:
        """The positions' times in microseconds since START: never falling with the id."""
        step, car = np.divmod(ids, self.cars)
        millis = step * INTERVAL * 1_000 + car * INTERVAL * 1_000 // self.cars
        micros: Ints = millis * 1_000
        return micros

    def positions(self, ids: Ints) -> pa.Table:
        """The positions with these ids."""
        times = self.times(ids)
        car = ids % self.cars
        phase, since = np.divmod(times / SECOND, _PHASE)
        index = phase.astype(np.int64)
        driven = self.driven[car, index] + since * self.speed[car, index]
        # Up the road and down again: from one end to the other and back.
        along = np.abs(driven % (4 * _ROAD) - 2 * _ROAD) - _ROAD
        heading, aside = self.heading[car], self.aside[car]
        north = along * np.cos(heading) - aside * np.sin(heading)
        east = along * np.sin(heading) + aside * np.cos(heading)
        columns = {
            "id": ids,
            "ts": times,
            "car": car,
            "lat": np.round(CENTRE[0] + north / METRES[0], 6),
            "lon": np.round(CENTRE[1] + east / METRES[1], 6),
        }
        return stream.table(columns, _ARROW)
