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

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt
    from pyspark.sql import Column

    from headwater import Flow, Frame

    Ints = npt.NDArray[np.int64]

SCHEMA = (
    "tid bigint, ts timestamp, type int, vid int, speed int, "
    "xway int, lane int, dir int, seg int, pos int"
)
"""The reports' columns, for Spark."""

START = 1_735_689_600
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
        ("ts", pa.timestamp("us", tz="UTC")),
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
    time (a watermark of as many seconds keeps every report). Spark reads files in the order of
    their modification times, so these are a second apart.
    """
    if format not in ("parquet", "csv"):
        raise HeadwaterError(f"format {format!r} is unknown: use 'parquet' or 'csv'")
    if reports < 1 or not 1 <= files <= reports:
        raise HeadwaterError(
            f"can't write {reports} reports to {files} files: there must be at least one report "
            "in each file"
        )
    if not 0 <= stopped <= 1:
        raise HeadwaterError(f"stopped={stopped} is not a share between 0 and 1")
    if disorder < 0:
        raise HeadwaterError(f"disorder={disorder} is not a number of seconds")
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise HeadwaterError(f"{folder} is not empty: generate reports into a new folder")

    road = _Road.plan(reports, stopped, seed)
    order = road.arrivals(reports, disorder)
    bounds = np.linspace(0, reports, files + 1).astype(np.int64)
    written = []
    for number in range(files):
        tids = order[bounds[number] : bounds[number + 1]]
        target = folder / f"reports-{number:05d}.{format}"
        _write(road.reports(tids), target, format, START + number)
        written.append(target)
    return written


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
    flow, reports = _reports(path, name, format, watermark, options)
    flow.sink("stopped", _stopped(reports))
    return flow


def accident_flow(
    path: str | os.PathLike[str],
    *,
    name: str = "accidents",
    format: str = "parquet",
    watermark: str = "0 seconds",
    options: Mapping[str, str] | None = None,
) -> Flow:
    """The flow that raises an alert where two vehicles or more stand at one place at one time.

    It aggregates the results of the stopped-vehicle flow by place and window.
    """
    from pyspark.sql import functions as F

    flow, reports = _reports(path, name, format, watermark, options)
    place = [F.max(column).alias(column) for column in ("xway", "dir")]
    accidents = (
        _stopped(reports, *place)
        .withColumnRenamed("lo", "pos")
        .groupBy("xway", "dir", "pos", F.window(F.window_time("window"), "30 seconds"))
        .agg(F.count("*").alias("vehicles"))
        .filter("vehicles >= 2")
    )
    flow.sink("accidents", accidents)
    return flow


def _reports(
    path: str | os.PathLike[str],
    name: str,
    format: str,
    watermark: str,
    options: Mapping[str, str] | None,
) -> tuple[Flow, Frame]:
    import headwater as hw

    flow = hw.Flow(name)
    reports = flow.source(
        "reports",
        format=format,
        path=os.fspath(path),
        schema=SCHEMA,
        event_time="ts",
        watermark=watermark,
        id="tid",
        options=dict(options or {}),
    )
    return flow, reports


def _stopped(reports: Frame, *more: Column) -> Frame:
    """A row for each vehicle and window of four reports in which it stood at one position."""
    from pyspark.sql import functions as F

    return (
        reports.filter("speed = 0")
        .groupBy("vid", F.window("ts", "120 seconds", "30 seconds"))
        .agg(F.count("*").alias("n"), F.min("pos").alias("lo"), F.max("pos").alias("hi"), *more)
        .filter("n = 4 and lo = hi")
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

    def arrivals(self, reports: int, disorder: int) -> Ints:
        """The tids in the order in which they arrive."""
        tids = np.arange(reports, dtype=np.int64)
        if disorder == 0:
            return tids
        delay = np.random.default_rng((self.seed, 1)).uniform(0, disorder, reports)
        return np.argsort(self.times(tids) + delay, kind="stable")

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
            "ts": (START + self.times(tids)) * 1_000_000,
            "type": np.zeros_like(tids),
            "vid": vehicle,
            "speed": np.where(standing, 0, self.speed[vehicle] + jitter),
            "xway": self.xway[vehicle],
            "lane": np.where(standing, self.lane[vehicle], lane),
            "dir": self.direction[vehicle],
            "seg": pos // _SEGMENT,
            "pos": pos,
        }
        return pa.table(
            [_column(columns[field.name], field.type) for field in _ARROW], schema=_ARROW
        )


def _column(values: Ints, type: Any) -> Any:
    if pa.types.is_timestamp(type):
        return pa.array(values.astype("datetime64[us]"), type)
    return pa.array(values.astype(type.to_pandas_dtype()))


def _write(table: pa.Table, target: Path, format: str, mtime: int) -> None:
    """Writes a file under a name that Spark overlooks, then renames it: it appears complete."""
    hidden = target.with_name(f".{target.name}.writing")
    if format == "parquet":
        import pyarrow.parquet

        pyarrow.parquet.write_table(table, hidden)
    else:
        import pyarrow.csv

        seconds = table.column("ts").cast(pa.timestamp("s", tz="UTC"))
        table = table.set_column(1, "ts", seconds)
        pyarrow.csv.write_csv(
            table, hidden, pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
        )
    os.utime(hidden, (mtime, mtime))
    hidden.replace(target)
