"""Smart grid: hourly readings of meters; flows for blackouts and for days that don't add up.

Each meter reports once an hour what was used since. On most days that is a little; on some days
meters report nothing at all, every third day more than seven of them, which is a blackout. And
some days are high, either throughout or by what is added in their last hour.

Ananke's Smart Grid queries, after GeneaLog. A blackout comes from the 24 readings of each of its
meters. An anomaly comes from 24 readings as well: the last hour's reading, which the day is
joined with, is one of the day's.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     [file.name for file in generate(folder, readings=1_000, files=2)]
['readings-00000.parquet', 'readings-00001.parquet']
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
    from headwater.examples.stream import Bools, Ints

SCHEMA = "id bigint, ts timestamp, hour int, meter int, value int"
"""The readings' columns, for Spark; `hour` is that of the day, 0 to 23."""

SOURCE = "readings"
SINKS = ("blackout", "anomaly")

HIGH = 200
"""What a day's sum, and its distance from the last hour's reading, must exceed."""

FEW = 7
"""More meters than these without any use on a day are a blackout."""

_HOUR = 3_600 * SECOND
_HOURS = 24 * 10  # readings of a meter, unless there are more than so many meters
_METERS = (16, 500)
_EVERY = 3  # days from blackout to blackout

_ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", TIMESTAMP),
        *((name, pa.int32()) for name in ("hour", "meter", "value")),
    ]
)


def generate(
    path: str | os.PathLike[str],
    readings: int = 60_000,
    high: float = 0.1,
    files: int = 32,
    seed: int = 7,
    disorder: int = 0,
) -> list[Path]:
    """Writes `readings` readings into the folder `path` as `files` files in time order.

    `high` is the share of days of a meter that are high, every other one of them an anomaly. With
    `disorder` a reading arrives up to that many seconds after its time (a watermark of as many
    seconds keeps every reading).
    """
    stream.require(SOURCE, readings, files, disorder, high=high)
    grid = _Grid.plan(readings, high, seed)
    times = grid.times(np.arange(readings, dtype=np.int64))
    order = stream.arrivals(times, disorder, seed)
    return stream.write(path, SOURCE, order, files, grid.readings)


def sinks(
    flow: Flow,
    path: str | os.PathLike[str],
    *,
    only: Collection[str] = SINKS,
    watermark: str = "0 seconds",
    **source: Any,
) -> None:
    """Adds the readings in a folder, and an alert for blackouts and one for anomalies.

    *blackout*: a day on which more than seven meters had no use at all. *anomaly*: a meter's day
    with a sum above 200 that is also more than 200 away from the reading of the day's last hour.
    """
    readings = stream.source(flow, SOURCE, path, SCHEMA, {"watermark": watermark, **source})
    days = _days(readings)
    frames = {"blackout": lambda: _blackout(days), "anomaly": lambda: _anomaly(readings, days)}
    stream.add(flow, frames, only)


def _days(readings: Frame) -> Frame:
    """The sum of each meter's day."""
    from pyspark.sql import functions as F

    return readings.groupBy("meter", F.window("ts", "1 day")).agg(F.sum("value").alias("total"))


def _blackout(days: Frame) -> Frame:
    """A row for each day on which more than a few meters had no use."""
    from pyspark.sql import functions as F

    return (
        days.filter("total = 0")
        .groupBy(F.window(F.window_time("window"), "1 day"))
        .agg(F.count("*").alias("meters"))
        .filter(f"meters > {FEW}")
    )


def _anomaly(readings: Frame, days: Frame) -> Frame:
    """A row for each high day of a meter, and its last reading, when they are far apart.

    A day's time is the last microsecond of its window; its last hour is the one up to that time.
    """
    from pyspark.sql import functions as F

    high = days.filter(f"total > {HIGH}").select(
        "meter", "total", F.window_time("window").alias("day")
    )
    last = readings.filter("hour = 23").select(F.col("meter").alias("of"), "ts", "value")
    within = (last.ts <= high.day) & (last.ts > high.day - F.expr("interval 1 hour"))
    return (
        high.join(last, (high.meter == last.of) & within)
        .filter(f"abs(total - value) > {HIGH}")
        .select("meter", "day", "total", "value")
    )


@dataclass(frozen=True, slots=True)
class _Grid:
    """All meters of a stream and what each of their days is like: a row of meters for each day."""

    meters: int
    seed: int
    dead: Bools
    throughout: Bools
    at_last: Bools

    @classmethod
    def plan(cls, readings: int, high: float, seed: int) -> _Grid:
        """Draws the days for a stream of so many readings."""
        rng = np.random.default_rng(seed)
        meters = int(np.clip(readings // _HOURS, *_METERS))
        days = readings // (24 * meters) + 1
        ranks = rng.permuted(np.tile(np.arange(meters), (days, 1)), axis=1)
        out = rng.integers(FEW + 1, FEW + 3, days)
        quiet = rng.integers(0, FEW + 1, days)
        count = np.where(np.arange(days) % _EVERY == 1, out, quiet)
        dead = ranks < count[:, np.newaxis]
        highest = ranks >= meters - max(2 * bool(high), round(high * meters))
        odd = ranks % 2 == 1
        return cls(meters, seed, dead, highest & odd & ~dead, highest & ~odd & ~dead)

    def times(self, ids: Ints) -> Ints:
        """The readings' times in microseconds since START: never falling with the id."""
        hour, meter = np.divmod(ids, self.meters)
        micros: Ints = hour * _HOUR + meter * 3_600 // self.meters * SECOND
        return micros

    def readings(self, ids: Ints) -> pa.Table:
        """The readings with these ids."""
        hours, meter = np.divmod(ids, self.meters)
        day, hour = np.divmod(hours, 24)
        noise = stream.noise(ids, self.seed)
        value = 1 + noise % 5
        value = np.where(self.throughout[day, meter], 10 + noise % 11, value)
        last = self.at_last[day, meter] & (hour == 23)
        value = np.where(last, 180 + noise % 41, value)
        columns = {
            "id": ids,
            "ts": self.times(ids),
            "hour": hour,
            "meter": meter,
            "value": np.where(self.dead[day, meter], 0, value),
        }
        return stream.table(columns, _ARROW)
