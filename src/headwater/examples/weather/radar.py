"""Radar scans as events: what each station sees of the sky, every five minutes.

A scan has two grids: how strongly each cell reflects (dBZ), and how fast what is in it moves away
from the station (m/s), as Doppler radars tell. Scans are pure functions of their numbers and the
sky.

>>> from headwater.examples.weather.sky import Sky
>>> scans = Radar(Sky.plan(seed=7)).scans(np.arange(3))
>>> scans["file"].to_pylist()[0], len(scans["dbz"][0])
('Level2_KABR_20250601_1200', 1600)
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.errors import HeadwaterError
from headwater.examples.stream import Ints, noise
from headwater.examples.weather.plane import CELL, CELLS, EAST, NORTH, SIDE, Numbers, kilometres
from headwater.examples.weather.stations import LATS, LONS, STATIONS
from headwater.streams.schema import parse

if TYPE_CHECKING:
    from headwater.examples.weather.sky import Sky

METADATA = "scan bigint, at timestamp, station string, file string"
"""The columns of an event that only says where its scan is."""

SCHEMA = f"{METADATA}, dbz array<tinyint>, velocity array<tinyint>"
"""The columns of an event that holds its scan: grids row by row, from the north-west on."""

START = datetime(2025, 6, 1, 12, tzinfo=UTC)
SWEEP = 300
"""Seconds from one scan of a station to its next."""

_REACH = SIDE * CELL * 0.75 + 50  # kilometres: what is further away is in no cell
_CLUTTER = 2_500  # one cell in so many reflects strongly for no reason


@dataclass(frozen=True, slots=True)
class Radar:
    """All stations under a sky. Scan `n` is of station `n % 121`: they take turns."""

    sky: Sky
    seed: int = 7

    def seconds(self, ids: Ints) -> Ints:
        """When scans are made, in seconds since the start: never falling with the number."""
        sweep, place = np.divmod(ids, len(STATIONS))
        made: Ints = sweep * SWEEP + place * SWEEP // len(STATIONS)
        return made

    def scans(self, ids: Ints) -> pa.Table:
        """The scans with these numbers, as events."""
        ids = np.asarray(ids, np.int64)
        if len(ids) and ids.min() < 0:
            raise HeadwaterError(f"scan {ids.min()} is none: numbers begin with 0")
        dbz, velocity = self.grids(ids)
        schema = parse(SCHEMA)
        lists = [
            pa.ListArray.from_arrays(
                pa.array(np.arange(len(ids) + 1) * CELLS, pa.int32()), pa.array(grid.ravel())
            ).cast(schema.field("dbz").type)
            for grid in (dbz, velocity)
        ]
        return pa.table([*self._metadata(ids), *lists], schema=schema)

    def grids(self, ids: Ints) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
        """Intensities and velocities, a row of cells for each scan."""
        random = noise(np.add.outer(ids * CELLS, np.arange(CELLS)), self.seed)
        background = (random % 17 - 8).astype(np.float64)
        clutter = random // 32 % _CLUTTER == 0
        power = 10 ** (background / 10)
        total, east, north = (power * each for each in (1.0, *self.sky.wind))
        for scan, cells, motion in self._storms(ids):
            total[scan] += cells
            east[scan] += cells * motion[0]
            north[scan] += cells * motion[1]
        dbz = 10 * np.log10(total)
        dbz[clutter] = 20 + random[clutter] // 64 % 25
        # Storms carry their own motion; where there is none, insects and dust show the wind.
        away = (east * EAST + north * NORTH) / total / np.hypot(EAST, NORTH)
        away += random // 128 % 3 - 1
        return _bytes(dbz), _bytes(away)

    def _storms(self, ids: Ints) -> list[tuple[int, Numbers, tuple[float, float]]]:
        """What storms add to the cells of the scans that they are in reach of."""
        place = ids % len(STATIONS)
        sky = self.sky.at(self.seconds(ids).astype(np.float64))
        of = (LATS[place][:, np.newaxis], LONS[place][:, np.newaxis])
        east, north = kilometres(sky.lat, sky.lon, of)
        added = []
        for scan, storm in np.argwhere(sky.alive & (np.hypot(east, north) < _REACH)).tolist():
            x, y = EAST - east[scan, storm], NORTH - north[scan, storm]
            decay = (x * x + y * y) / (2 * sky.radius[scan, storm] ** 2)
            power = 10 ** (sky.dbz[scan, storm] / 10) * np.exp(-decay)
            motion = (float(self.sky.east[storm]), float(self.sky.north[storm]))
            added.append((scan, power, motion))
        return added

    def _metadata(self, ids: Ints) -> list[pa.Array]:
        at = np.datetime64(START.replace(tzinfo=None), "us") + self.seconds(ids) * 1_000_000
        stations = [STATIONS[place].id for place in (ids % len(STATIONS)).tolist()]
        return [
            pa.array(ids),
            pa.array(at, pa.timestamp("us", "UTC")),
            pa.array(stations, pa.string()),
            pa.array(list(map(file_name, stations, at)), pa.string()),
        ]


def file_name(station: str, at: np.datetime64) -> str:
    """The name of a scan's file.

    >>> file_name("KIND", np.datetime64("2025-06-01T12:05:30"))
    'Level2_KIND_20250601_1205'
    """
    day, clock = str(at.astype("datetime64[m]")).split("T")
    return f"Level2_{station}_{day.replace('-', '')}_{clock.replace(':', '')}"


def grids_of(scans: pa.RecordBatch | pa.Table, *names: str) -> list[npt.NDArray[np.int8]]:
    """Grids of events, a row of cells for each: out of the events, or of the files they name."""
    if all(name in scans.schema.names for name in names):
        return [_rows(scans[name], name) for name in names]
    if "file" not in scans.schema.names:
        raise HeadwaterError(f"the scans have neither {' and '.join(names)} nor a file")
    kinds = ("dbz", "velocity")
    loaded = [load(file) for file in scans["file"].to_pylist()]
    whole = np.stack(loaded) if loaded else np.empty((0, 2, CELLS), np.int8)
    return [whole[:, kinds.index(name)] for name in names]


@functools.lru_cache(maxsize=64)
def load(file: str) -> npt.NDArray[np.int8]:
    """The grids of a scan's file, `dbz` and then `velocity`."""
    try:
        grids: npt.NDArray[np.int8] = np.load(file).astype(np.int8)
        return grids.reshape(2, CELLS)
    except (OSError, ValueError) as error:
        raise HeadwaterError(f"{file} is not the file of a scan: {error}") from error


def _rows(column: pa.Array | pa.ChunkedArray, name: str) -> npt.NDArray[np.int8]:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if array.null_count or set(array.value_lengths().to_pylist()) - {CELLS}:
        raise HeadwaterError(f"{name} must have {CELLS} values in each scan")
    values: npt.NDArray[np.int8] = array.flatten().to_numpy(zero_copy_only=False)
    return values.astype(np.int8).reshape(len(array), CELLS)


def _bytes(values: Numbers) -> npt.NDArray[np.int8]:
    return np.clip(np.rint(values), -127, 127).astype(np.int8)
