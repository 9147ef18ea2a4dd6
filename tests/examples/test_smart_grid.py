"""Smart Grid: blackouts and anomalies with their readings, as plain Python computes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.examples import smart_grid
from tests.examples.windows import SECOND, Sets, grouped, records, seconds, told
from tests.support.streams import Lab, write

DAY = 86_400
HOUR = 3_600


def expected(readings: list[dict[str, Any]], delay: int = 0) -> dict[str, Sets]:
    """Both sinks' rows with their sets of ids, for the days that are over."""
    over = max(row["at"] for row in readings) - delay * SECOND
    days = grouped(readings, lambda row: row["meter"], lambda row: row["at"], DAY)
    dead: dict[tuple[int, int], list[set[int]]] = {}
    anomalies: Sets = {}
    for (meter, day), rows in days.items():
        if day[1] > over:
            continue
        ids = {row["id"] for row in rows}
        total = sum(row["value"] for row in rows)
        if total == 0:
            dead.setdefault(day, []).append(ids)
        for last in rows if total > 200 else []:
            value = last["value"]
            if last["at"] >= day[1] - HOUR * SECOND and abs(total - value) > 200:
                anomalies[meter, (day[1] - 1) / SECOND, total, value] = ids | {last["id"]}
    blackouts = {
        (seconds(day), len(meters)): set().union(*meters)
        for day, meters in dead.items()
        if len(meters) > 7
    }
    return {"blackout": blackouts, "anomaly": anomalies}


@pytest.mark.spark
def test_results_and_sets(flow: hw.Flow, lab: Lab) -> None:
    smart_grid.generate(lab.home / "data", 3_000, files=4, disorder=2 * HOUR)
    options = {"maxFilesPerTrigger": 1}
    smart_grid.sinks(flow, lab.home / "data", watermark="2 hours", options=options)
    found = lab.tell(flow)
    sets = expected(records(lab.home / "data"), delay=2 * HOUR)
    for sink in smart_grid.SINKS:
        assert found[sink] == told("readings", sets[sink]), sink
        assert len(found[sink]) > 1, sink


def table(*days: str) -> str:
    """Readings at 0:00, 12:00 and 23:59 by day and meter; each day is a batch."""
    batches, number = [], 0
    for day, line in enumerate(days):
        lines = []
        for meter, values in enumerate(line.split("|")):
            for hour, minute, value in zip((0, 12, 23), (0, 0, 59), values.split(), strict=True):
                number += 1
                at = day * DAY + hour * HOUR + minute * 60
                lines.append(f"{number} | {at} | {hour} | {meter} | {value}")
        batches.append("\n".join(lines))
    return "\n--\n".join(batches)


@pytest.mark.spark
def test_by_hand(flow: hw.Flow, lab: Lab) -> None:
    """Eight dead meters are a blackout and seven are not; 200 apart is no anomaly and 201 is."""
    dead, alive = "0 0 0", "0 1 0"
    write(
        lab.home / "data",
        smart_grid.SCHEMA,
        table(
            "|".join([dead] * 8 + [alive]),
            "|".join([dead] * 7 + ["0 200 1", "100 101 900"]),
            "|".join([alive] * 9),
        ),
    )
    smart_grid.sinks(flow, lab.home / "data", options={"maxFilesPerTrigger": 1})
    found = lab.tell(flow)
    assert found["blackout"] == [(((0.0, DAY), 8), {"readings": set(range(1, 25))})]
    last = 2 * DAY - 1e-6
    # The second day has readings 28 to 54; the last meter's are its last three.
    assert found["anomaly"] == [((8, last, 1101, 900), {"readings": {52, 53, 54}})]


def test_days_of_each_kind(tmp_path: Path) -> None:
    smart_grid.generate(tmp_path, 20_000)
    readings = records(tmp_path)
    assert all(row["hour"] == row["at"] // SECOND // HOUR % 24 for row in readings)
    sets = expected(readings)
    assert {len(ids) / meters for (_, meters), ids in sets["blackout"].items()} == {24}
    assert {len(found) for found in sets["anomaly"].values()} == {24}
    days = grouped(readings, lambda row: row["meter"], lambda row: row["at"], DAY)
    high = [rows for rows in days.values() if sum(row["value"] for row in rows) > 200]
    # Half of them are high by what was added in the last hour, which is no anomaly.
    assert len(sets["anomaly"]) < 0.7 * len(high)
