"""Ariadne's *Complex* network (Figures 1 and 19): overheating, seen by several sensors.

Two streams of readings are cleaned of outliers and averaged by sensor over the last readings, the
front window. United, they raise an alert when three sensors or more are above 90 degrees within two
seconds. Ariadne's sort before the last window is needless here: time windows know no order.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headwater.bench import streams
from headwater.bench.harness import Case
from headwater.bench.lab import OPTIONS, Lab
from headwater.bench.report import RATES, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater import Flow

FRONTS = (2, 5, 10, 20, 50)
RECORDS = 100_000
STREAMS = ("north", "south")


def tables(lab: Lab, fronts: Sequence[int] = FRONTS) -> Iterator[Table]:
    """One table: each size of the front windows, in each mode."""
    records = lab.records or RECORDS
    each = records // len(STREAMS)
    lab.writing(f"{records:,} readings")
    for number, name in enumerate(STREAMS):
        folder = lab.folder / f"readings-{name}"
        streams.readings(folder, each, lab.files, first_sensor=number * streams.SENSORS)
    table = Table(
        f"Ariadne's Complex network (Figure 19), {records:,} readings, medians of {lab.pairs}",
        {"front window": ",", **RATES},
    )
    cases = [
        Case({"front window": front}, records, lab.captured(partial(flow, lab, front)))
        for front in fronts
    ]
    for outcome in lab.compare(cases):
        table.add(outcome)
    yield table


def flow(lab: Lab, front: int) -> Flow:
    """The network with front windows of so many seconds."""
    from pyspark.sql import functions as F

    import headwater as hw

    flow = hw.Flow("overheating", lab.spark)
    averages = []
    for name in STREAMS:
        readings = flow.source(
            name,
            format="parquet",
            path=lab.folder / f"readings-{name}",
            schema=streams.READINGS,
            event_time="ts",
            watermark="0 seconds",
            id="id",
            options=OPTIONS,
        )
        averages.append(
            readings.filter("temperature <= 350")
            .groupBy("sensor", F.window("ts", f"{front} seconds", "1 second"))
            .agg(F.avg("temperature").alias("temperature"))
        )
    north, south = averages
    alerts = (
        north.union(south)
        .filter("temperature > 90")
        .groupBy(F.window(F.window_time("window"), "2 seconds"))
        .agg(F.size(F.collect_set("sensor")).alias("sensors"))
        .filter("sensors >= 3")
    )
    flow.sink("alerts", alerts)
    return flow
