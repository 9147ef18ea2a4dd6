"""The grid of a scan, and kilometres from a station instead of degrees.

A scan is a square of `SIDE` × `SIDE` cells around its station, `CELL` kilometres each; the first
row is the northernmost, the first column the westernmost. Nearby, the earth is flat.

>>> east, north = kilometres(40.0, -86.0, (39.71, -86.28))
>>> round(float(east)), round(float(north))
(24, 32)
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from headwater.examples.weather.stations import KM

Numbers: TypeAlias = npt.NDArray[np.float64]
Real: TypeAlias = float | Numbers

SIDE = 40
CELL = 10.0
CELLS = SIDE * SIDE

_LINE = (np.arange(SIDE) - (SIDE - 1) / 2) * CELL
EAST: Numbers = np.tile(_LINE, SIDE)
"""Kilometres from the station to each cell's centre, eastwards."""
NORTH: Numbers = np.repeat(-_LINE, SIDE)
"""The same northwards."""


def kilometres(lat: Real, lon: Real, of: tuple[Real, Real]) -> tuple[Numbers, Numbers]:
    """How far east and north places are of another."""
    east = (np.asarray(lon) - of[1]) * KM * np.cos(np.radians(of[0]))
    return east, (np.asarray(lat) - of[0]) * KM


def degrees(east: Real, north: Real, of: tuple[Real, Real]) -> tuple[Numbers, Numbers]:
    """The latitude and longitude of places so far east and north of another."""
    lon = of[1] + np.asarray(east) / (KM * np.cos(np.radians(of[0])))
    return of[0] + np.asarray(north) / KM, lon
