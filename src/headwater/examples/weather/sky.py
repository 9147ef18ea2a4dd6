"""The sky: storms that are born, drift with the wind, grow and die. The truth behind the scans.

>>> sky = Sky.plan(storms=3, hours=2, seed=7)
>>> truth = sky.at(3_600.0)
>>> truth.alive.shape
(3,)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headwater.errors import HeadwaterError
from headwater.examples.weather.plane import Numbers, degrees
from headwater.examples.weather.stations import LATS, LONS

HOUR = 3_600.0
_BEFORE = HOUR  # storms are under way when the first scan is made
_FRONT = ((37.6, -89.2), (41.4, -87.9))  # west of Indiana, from south to north


@dataclass(frozen=True, slots=True)
class Moment:
    """Where the storms are at some moments, and how strong; the last axis is the storms'."""

    lat: Numbers
    lon: Numbers
    dbz: Numbers
    """The intensity at a storm's centre."""
    radius: Numbers
    """Kilometres in which a storm loses 2.2 dB; twice as far it is four times that."""
    alive: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Sky:
    """Every storm of a day, an array for each of their properties. Times are in seconds."""

    wind: tuple[float, float]
    """Metres a second, eastwards and northwards: where there is no storm."""
    born: Numbers
    life: Numbers
    lat: Numbers
    lon: Numbers
    east: Numbers
    """Metres a second: storms follow the wind, but not quite."""
    north: Numbers
    peak: Numbers
    """The greatest intensity, reached at half of the life."""
    radius: Numbers

    @classmethod
    def plan(cls, storms: int = 60, hours: float = 2.0, seed: int = 7) -> Sky:
        """Draws the storms of some hours: a quarter of them on a front before Indiana."""
        if storms < 0 or hours <= 0:
            raise HeadwaterError(f"storms={storms} in hours={hours}: give 0 or more, and above 0")
        rng = np.random.default_rng((seed, 44))
        wind = (float(rng.uniform(11, 15)), float(rng.uniform(2, 6)))
        near = rng.integers(0, len(LATS), storms)
        away = rng.uniform(-250, 250, (2, storms))
        lat, lon = degrees(away[0], away[1], (LATS[near], LONS[near]))
        along, beside = rng.uniform(0, 1, storms), rng.normal(0, 0.35, storms)
        (south, west), (top, right) = _FRONT
        front = np.arange(storms) % 4 == 0
        born = rng.uniform(-_BEFORE, hours * HOUR, storms)
        return cls(
            wind=wind,
            born=np.where(front, np.abs(born), born),
            life=rng.uniform(1.0, 3.0, storms) * HOUR,
            lat=np.where(front, south + along * (top - south), lat),
            lon=np.where(front, west + along * (right - west) + beside, lon),
            east=wind[0] + rng.normal(0, 2.0, storms),
            north=wind[1] + rng.normal(0, 2.0, storms),
            peak=rng.uniform(28, 62, storms),
            radius=rng.uniform(6, 11, storms),
        )

    def __len__(self) -> int:
        return len(self.born)

    def at(self, seconds: float | Numbers) -> Moment:
        """The storms at a moment or at several, in seconds since the first scan."""
        age = np.asarray(seconds)[..., np.newaxis] - self.born
        lat, lon = degrees(self.east * age / 1_000, self.north * age / 1_000, (self.lat, self.lon))
        alive = (age > 0) & (age < self.life)
        strength = np.where(alive, np.sin(np.pi * np.clip(age / self.life, 0, 1)), 0.0)
        return Moment(
            lat=lat,
            lon=lon,
            dbz=np.where(alive, self.peak * np.sqrt(strength), -np.inf),
            radius=self.radius * (0.6 + 0.4 * strength),
            alive=alive,
        )
