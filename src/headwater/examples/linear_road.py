"""Linear Road: position reports of vehicles on expressways; flows for stopped ones and accidents.

Each vehicle reports its position every 30 seconds. Most drive through; a share of them stops, now
and then in pairs at one position, which is an accident. The stream is a pure function of its
parameters: the report with a given `tid` is the same in every format and however many files there
are.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     [file.name for file in generate(folder, reports=1_000, files=3)]
['reports-00000.parquet', 'reports-00001.parquet', 'reports-00002.parquet']
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from headwater.errors import HeadwaterError
from headwater.examples import stream
from headwater.examples.stream import SECOND, TIMESTAMP

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from headwater import Flow, Frame
    from headwater.examples.stream import Ints

SCHEMA = (
    "tid bigint, ts timestamp, type int, vid int, speed int, "
    "xway int, lane int, dir int, seg int, pos int"
)
"""The reports' columns, for Spark."""

SOURCE = "reports"
SINKS = ("stopped", "accidents")

START = stream.START
"""The first report's time, in seconds since the epoch: 2025-01-01T00:00:00Z."""

INTERVAL = 30
"""Seconds between two reports of a vehicle."""

TRIP = 60
"""Reports of a vehicle between its entry and its exit: half an hour."""

_ROAD = 528_000  # feet: 100 segments of a mile
_SEGMENT = 5_280
_FEET_PER_MPH = 44  # feet driven in INTERVAL seconds at one mile an hour
_EXPRESSWAYS = 4
_AT_ONCE = 10_000  # at most so many vehicles on the road; more reports then mean more hours
_STEPS = 120  # else so many reports per vehicle's place on the road: an hour
_STANDS = (4, 20)  # reports for which a vehicle stands at one position
_HOP = 2_640  # feet between two stops of a vehicle

_ARROW = pa.schema(
    [
        ("tid", pa.int64()),
        ("ts", TIMESTAMP),
        *((n, pa.int32()) for n in ("type", "vid", "speed", "xway", "lane", "dir", "seg", "pos")),
    ]
)


def generate(
    path: str | os.PathLike[str],
    reports: int = 60_000,
    stopped: float = 0.12,
    files: int = 32,
    seed: int = 7,
    format: Literal["parquet", "csv"] = "parquet",
    disorder: int = 0,
) -> list[Path]:
    """Writes `reports` position reports into the folder `path` as `files` files in time order.

    `stopped` is the share of vehicles that stop, for at least four reports at one position, a
    third of them in accidents. With `disorder` a report arrives up to that many seconds after its
    time (a watermark of as many seconds keeps every report).
    """
    if format not in ("parquet", "csv"):
        raise HeadwaterError(f"format {format!r} is unknown: use 'parquet' or 'csv'")
    stream.require(SOURCE, reports, files, disorder, stopped=stopped)
    road = _Road.plan(reports, stopped, seed)
    times = road.times(np.arange(reports, dtype=np.int64)) * SECOND
    order = stream.arrivals(times, disorder, seed)
    return stream.write(path, SOURCE, order, files, road.reports, format)


def sinks(
    flow: Flow,
    path: str | os.PathLike[str],
    *,
    only: Collection[str] = SINKS,
    watermark: str = "0 seconds",
    **source: Any,
) -> None:
    """Adds the reports in a folder, and an alert for stopped vehicles and one for accidents.

    *stopped*: a vehicle that stands still for 120 seconds, from four reports. *accidents*: two
    such vehicles or more at one position at one time, from the results of *stopped*.
    """
    reports = stream.source(flow, SOURCE, path, SCHEMA, {"watermark": watermark, **source})
    still = stopped(reports)
    stream.add(flow, {"stopped": lambda: still, "accidents": lambda: _accidents(still)}, only)


def flow(
    path: str | os.PathLike[str],
    *,
    name: str = "traffic",
    format: str = "parquet",
    watermark: str = "0 seconds",
    options: Mapping[str, str] | None = None,
) -> Flow:
    """The flow that raises an alert for each vehicle that stands still for 120 seconds.

    `options` are those of Spark's reader, for example `{"maxFilesPerTrigger": "4"}`.
    """
    return _flow("stopped", path, name, format, watermark, options)


def accident_flow(
    path: str | os.PathLike[str],
    *,
    name: str = "accidents",
    format: str = "parquet",
    watermark: str = "0 seconds",
    options: Mapping[str, str] | None = None,
) -> Flow:
    """The flow that raises an alert where two vehicles or more stand at one place at one time.

    It aggregates the results of the stopped-vehicle flow by position and window.
    """
    return _flow("accidents", path, name, format, watermark, options)


def _flow(
    sink: str,
    path: str | os.PathLike[str],
    name: str,
    format: str,
    watermark: str,
    options: Mapping[str, str] | None,
) -> Flow:
    import headwater as hw

    made = hw.Flow(name)
    options = dict(options or {})
    sinks(made, path, only=[sink], format=format, watermark=watermark, options=options)
    return made


def stopped(reports: Frame) -> Frame:
    """A row for each vehicle and window of four reports in which it stood at one position."""
    from pyspark.sql import functions as F

    return (
        reports.filter("type = 0 and speed = 0")
        .groupBy("vid", F.window("ts", "120 seconds", "30 seconds"))
        .agg(F.count("*").alias("n"), F.min("pos").alias("lo"), F.max("pos").alias("hi"))
        .filter("n = 4 and lo = hi")
    )


def _accidents(stopped: Frame) -> Frame:
    """A row for each position and half minute in which several vehicles stood there.

    In a half minute a vehicle has one row of `stopped`, so these are as many as the vehicles.
    """
    from pyspark.sql import functions as F

    return (
        stopped.withColumnRenamed("lo", "pos")
        .groupBy("pos", F.window(F.window_time("window"), "30 seconds"))
        .agg(F.count("*").alias("vehicles"))
        .filter("vehicles > 1")
    )


@dataclass(frozen=True, slots=True)
class _Road:
    """All vehicles of a stream, by number; a place on the road is filled by one after the other.

    Places 2i and 2i + 1 change vehicles at the same time, so that two can meet in an accident.
    """

    places: int
    seed: int
    offset: Ints  # by place: how far into its trip the first vehicle is
    speed: Ints  # by vehicle, as all below
    start: Ints
    lane: Ints
    direction: Ints
    xway: Ints
    stands: Ints  # reports that the vehicle stands at a time, 0: it never does

    @classmethod
    def plan(cls, reports: int, stopped: float, seed: int) -> _Road:
        """Draws the vehicles for a stream of so many reports."""
        rng = np.random.default_rng(seed)
        places = min(_AT_ONCE, max(8, reports // _STEPS))
        places += places % 2
        steps = -(-reports // places)
        vehicles = places * (steps // TRIP + 2)

        offset = np.repeat(rng.integers(0, TRIP, places // 2), 2)
        speed = rng.integers(40, 91, vehicles)
        start = rng.integers(0, _ROAD - TRIP * 100 * _FEET_PER_MPH, vehicles)
        lane = rng.integers(1, 4, vehicles)
        direction = rng.integers(0, 2, vehicles)
        xway = rng.integers(0, _EXPRESSWAYS, vehicles)
        stands = rng.integers(_STANDS[0], _STANDS[1] + 1, vehicles)

        stopping = round(stopped * vehicles)
        pairs = rng.permutation(vehicles // 2)[: stopping // 6]
        first, second = 2 * pairs, 2 * pairs + 1
        for column in (start, lane, direction, xway, stands):
            column[second] = column[first]
        alone = rng.permutation(np.setdiff1d(np.arange(vehicles), np.r_[first, second]))
        stands[alone[stopping - 2 * len(pairs) :]] = 0
        return cls(places, seed, offset, speed, start, lane, direction, xway, stands)

    def times(self, tids: Ints) -> Ints:
        """The reports' times in seconds since START: never falling with the tid."""
        step, place = np.divmod(tids, self.places)
        seconds: Ints = step * INTERVAL + place * INTERVAL // self.places
        return seconds

    def reports(self, tids: Ints) -> pa.Table:
        """The reports with these tids."""
        step, place = np.divmod(tids, self.places)
        trip, index = np.divmod(step + self.offset[place], TRIP)
        vehicle = trip * self.places + place

        # A stopping vehicle drives for one report, stands for `stands`, drives again, ...
        stands = self.stands[vehicle]
        stops = stands > 0
        stop, moment = np.divmod(index + stands, stands + 1)
        stood = stop * _HOP + np.where(moment == stands, _HOP // 2, 0)
        standing = stops & (moment < stands)

        driven = np.where(stops, stood, index * self.speed[vehicle] * _FEET_PER_MPH)
        pos = self.start[vehicle] + driven
        pos = np.where(self.direction[vehicle] == 0, pos, _ROAD - 1 - pos)
        jitter = (tids * 2_654_435_761 + self.seed >> 16) % 11 - 5
        lane = np.where(index == 0, 0, np.where(index == TRIP - 1, 4, self.lane[vehicle]))
        columns = {
            "tid": tids,
            "ts": self.times(tids) * SECOND,
            "type": np.zeros_like(tids),
            "vid": vehicle,
            "speed": np.where(standing, 0, self.speed[vehicle] + jitter),
            "xway": self.xway[vehicle],
            "lane": np.where(standing, self.lane[vehicle], lane),
            "dir": self.direction[vehicle],
            "seg": pos // _SEGMENT,
            "pos": pos,
        }
        return stream.table(columns, _ARROW)
