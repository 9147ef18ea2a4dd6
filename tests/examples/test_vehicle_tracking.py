"""Vehicle tracking: fast cars and cars in the area with their positions, as plain Python has it."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.examples import vehicle_tracking
from tests.examples.windows import SECOND, Sets, grouped, records, seconds, told
from tests.support.streams import Lab

SOUTH, NORTH, WEST, EAST = vehicle_tracking.AREA


def metres_an_hour(first: dict[str, Any], last: dict[str, Any]) -> int:
    north = (last["lat"] - first["lat"]) * 111_320.0
    east = (last["lon"] - first["lon"]) * 85_400.0
    return int(sqrt(north * north + east * east) * 3600e6 / (last["at"] - first["at"]))


def expected(positions: list[dict[str, Any]], delay: int = 0) -> dict[str, Sets]:
    """Both sinks' rows with their sets of ids, for the windows that are over."""
    over = max(row["at"] for row in positions) - delay * SECOND

    speeds = []
    for (car, window), rows in grouped(
        positions, lambda row: row["car"], lambda row: row["at"], 15, 5
    ).items():
        first, last = (choose(rows, key=lambda row: row["at"]) for choose in (min, max))
        if last["at"] > first["at"]:
            ids = {row["id"] for row in rows}
            speeds.append((car, window[1] - 1, metres_an_hour(first, last), ids))
    fast: Sets = {}
    for (car, window), rows in grouped(
        speeds, lambda row: row[0], lambda row: row[1], 120, 60
    ).items():
        mean = sum(row[2] for row in rows) / len(rows)
        if window[1] <= over and mean > 70_000:
            fast[car, seconds(window), len(rows), mean / 1_000] = set().union(*(r[3] for r in rows))

    inside = [r for r in positions if SOUTH <= r["lat"] <= NORTH and WEST <= r["lon"] <= EAST]
    counts = grouped(inside, lambda row: row["car"], lambda row: row["at"], 300, 150)
    area = {
        (car, seconds(window), len(rows)): {row["id"] for row in rows}
        for (car, window), rows in counts.items()
        if window[1] <= over and len(rows) > 9
    }
    return {"high_speed": fast, "in_area": area}


@pytest.mark.spark
def test_results_and_sets(flow: hw.Flow, lab: Lab) -> None:
    vehicle_tracking.generate(lab.home / "data", 2_000, speeding=0.4, files=4, disorder=5)
    options = {"maxFilesPerTrigger": 1}
    vehicle_tracking.sinks(flow, lab.home / "data", watermark="5 seconds", options=options)
    found = lab.tell(flow)
    sets = expected(records(lab.home / "data"), delay=5)
    for sink in vehicle_tracking.SINKS:
        assert found[sink] == told("positions", sets[sink]), sink
        assert len(found[sink]) > 3, sink


def test_cars_drive_through_the_city(tmp_path: Path) -> None:
    vehicle_tracking.generate(tmp_path, 20_000)
    positions = records(tmp_path)
    cars: dict[int, list[dict[str, Any]]] = {}
    for row in positions:
        cars.setdefault(row["car"], []).append(row)
    for track in cars.values():
        assert {b["at"] - a["at"] for a, b in pairwise(track)} == {3 * SECOND}
        speeds = [metres_an_hour(a, b) for a, b in pairwise(track)]
        assert max(speeds) < 112_000
    assert all(abs(row["lat"] - 39.92) < 0.05 for row in positions)
    assert all(abs(row["lon"] - 116.32) < 0.06 for row in positions)


def test_results_of_the_sizes_in_the_paper(tmp_path: Path) -> None:
    """30 to 160 records for a fast car, 25 to 250 for one in the area, fewer at its borders."""
    vehicle_tracking.generate(tmp_path, 20_000)
    sets = expected(records(tmp_path))
    # The very first windows begin before the stream does.
    fast = [len(ids) for (_, window, *_), ids in sets["high_speed"].items() if window[0] >= 0]
    area = [len(ids) for ids in sets["in_area"].values()]
    assert min(fast) >= 30
    assert max(fast) <= 50
    assert sum(area) / len(area) > 25
    assert max(area) <= 100
