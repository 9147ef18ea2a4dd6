"""Overheating: two sensors, cleaned, merged and sorted; an alert when several places are hot.

Ariadne's running example. Each sensor's readings lose their outliers and are averaged over three in
a row. Both streams are merged, sorted by time as far as a small buffer allows, and what is hot goes
on. Where two places or more are hot within two units of time, there is an alert.

`python -m headwater.examples.overheating` runs it over a few readings and tells what each alert
came from: readings of both sensors, and rows of the merged stream.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     made = generate(folder, readings=10, files=2)
>>> sorted(file.parent.name + "/" + file.name for file in made)
['s1/00000.parquet', 's1/00001.parquet', 's2/00000.parquet', 's2/00001.parquet']
"""

from __future__ import annotations

import itertools
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from headwater import Flow, Frame, Store

SCHEMA = "id bigint, ti bigint, l int, t double"
"""A reading: its id, its time, the sensor's location, the temperature."""

OUTLIER = 350
HOT = 90
SENSORS = ("s1", "s2")
MERGED = "merged"
"""The stream behind the merge, in terms of which partial provenance is asked."""


def generate(
    folder: str | os.PathLike[str], readings: int = 40, files: int = 4, seed: int = 1
) -> list[Path]:
    """Writes both sensors' readings, so many each: warm, hot for a while, now and then an outlier.

    Readings of one time unit, in one sensor, may come in the order of a slow network.
    """
    written = []
    for number, sensor in enumerate(SENSORS, start=1):
        random = np.random.default_rng(seed * 10 + number)
        times = np.arange(readings, dtype=np.int64)
        heat = np.where((times // 10) % 2 == 1, 95.0, 80.0) + random.normal(0, 4, readings)
        heat[random.random(readings) < 0.08] = 399.0
        order = np.argsort(times + random.integers(0, 3, readings), kind="stable")
        table = pa.table(
            {
                "id": pa.array(order + 1),
                "ti": times[order],
                "l": pa.array(np.full(readings, number, np.int32)),
                "t": np.round(heat[order], 1),
            }
        )
        place = Path(folder) / sensor
        place.mkdir(parents=True, exist_ok=True)
        bounds = np.linspace(0, readings, files + 1).astype(int)
        for i, (low, high) in enumerate(itertools.pairwise(bounds)):
            file = place / f"{i:05}.parquet"
            pq.write_table(table.slice(low, high - low), file)
            # Spark takes files in order of their times; both sensors' files take turns.
            os.utime(file, (1_700_000_000 + 2 * i + number,) * 2)
            written.append(file)
    return written


def flow(folder: str | os.PathLike[str], options: dict[str, str] | None = None) -> Flow:
    """The flow over the readings in a folder."""
    from pyspark.sql import functions as F

    import headwater as hw

    made = hw.Flow("overheating")
    s1, s2 = (
        made.source(
            sensor,
            format="parquet",
            path=Path(folder) / sensor,
            schema=SCHEMA,
            id="id",
            options=options or {"maxFilesPerTrigger": "1"},
        )
        for sensor in SENSORS
    )

    def cleaned(readings: Frame) -> Frame:
        return (
            readings.filter(f"t <= {OUTLIER}")
            .count_window(3, 1)
            .agg(F.min("ti").alias("ti"), F.min("l").alias("l"), F.avg("t").alias("t"))
        )

    alerts = (
        cleaned(s1)
        .merge(cleaned(s2))
        .named(MERGED)
        .b_sort(4, "ti")
        .filter(f"t > {HOT}")
        .value_window(2, 1, "ti")
        .agg(F.min("ti").alias("since"), F.size(F.collect_set("l")).alias("places"))
        .filter("places >= 2")
    )
    made.sink("alerts", alerts)
    return made


def told(store: Store) -> list[str]:
    """Each alert with the readings behind it, in lines."""
    lines = []
    results = store.results("alerts").sort_by("since")
    for alert in results.to_pylist():
        behind = store.backward("alerts", alert["result_id"]).to_pylist()
        readings = {s: sorted(r["id"] for r in behind if r["source"] == s) for s in SENSORS}
        said = ", ".join(f"{s}: {' '.join(map(str, ids))}" for s, ids in readings.items())
        lines.append(f"since {alert['since']}: {alert['places']} places hot, from {said}")
    return lines


def main() -> None:
    """Runs the flow twice, traced to the sensors and to the merged stream, and prints both."""
    import headwater as hw

    with tempfile.TemporaryDirectory(prefix="headwater-overheating-") as name:
        folder = Path(name)
        generate(folder / "data")
        flow(folder / "data").start(folder / "store", available_now=True).wait()
        with hw.open(folder / "store") as store:
            print(*told(store), sep="\n")
        whole = flow(folder / "data")
        partly = {"eager": [MERGED]}
        whole.start(folder / "partial", capture=partly, available_now=True).wait()
        with hw.open(folder / "partial") as store:
            for alert in store.results("alerts").sort_by("since").to_pylist():
                rows = store.backward("alerts", alert["result_id"], columns=False)
                print(f"since {alert['since']}: from {rows.num_rows} rows of {MERGED!r}")


if __name__ == "__main__":
    main()
