"""Detection and clustering: against a search cell by cell, and against the true sky."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import HeadwaterError
from headwater.examples.weather import plain
from headwater.examples.weather.components import clusters
from headwater.examples.weather.plane import CELLS, SIDE, kilometres
from headwater.examples.weather.radar import SCHEMA, Radar
from headwater.examples.weather.sky import Sky
from headwater.examples.weather.stations import by_id
from headwater.examples.weather.storms import FOUND, LIGHT, SEVERE, STORMS, cluster, find
from headwater.streams.schema import parse


def storms_of(scans: pa.Table, level: float, least: int = 3) -> pa.Table:
    return cluster(scans.append_column("cells", find(scans, level)["cells"]), least)


def by_search(high: np.ndarray) -> list[set[tuple[int, int]]]:
    """Clusters as one would find them with a pencil."""
    left = {(int(y), int(x)) for y, x in np.argwhere(high)}
    found = []
    while left:
        cells, ready = set(), [min(left)]
        while ready:
            cell = ready.pop()
            if cell in left:
                left.remove(cell)
                cells.add(cell)
                ready += [(cell[0] + dy, cell[1] + dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]
        found.append(cells)
    return found


@given(st.data())
def test_clusters_are_the_cells_that_touch(data: st.DataObject) -> None:
    side = data.draw(st.integers(1, 9))
    share = data.draw(st.sampled_from([0.1, 0.3, 0.5, 0.9]))
    seed = data.draw(st.integers(0, 2**32))
    high = np.random.default_rng(seed).random((3, side, side)) < share
    grid, cell = np.nonzero(high.reshape(3, -1))
    if not len(grid):
        return
    first = clusters(grid, cell, side)
    found: dict[int, set[tuple[int, int, int]]] = {}
    for place, of in enumerate(first.tolist()):
        row, column = divmod(int(cell[place]), side)
        found.setdefault(of, set()).add((int(grid[place]), row, column))
    expected = [{(n, *c) for c in cells} for n in range(3) for cells in by_search(high[n])]
    assert sorted(map(sorted, found.values())) == sorted(map(sorted, expected))


def test_a_spiral_is_one_cluster() -> None:
    """The longest way through a grid: what makes one-step-at-a-time methods slow or wrong."""
    high = np.zeros((SIDE, SIDE), bool)
    for ring in range(0, SIDE // 2, 4):
        high[ring, ring : SIDE - ring] = high[ring : SIDE - ring, SIDE - 1 - ring] = True
        high[SIDE - 1 - ring, ring : SIDE - ring] = True
        high[ring + 2 : SIDE - ring, ring] = True
        high[ring + 2, ring : ring + 3] = high[ring + 2 : ring + 5, ring + 2] = True
    cell = np.flatnonzero(high)
    first = clusters(np.zeros(len(cell), np.int64), cell, SIDE)
    assert len(set(first.tolist())) == len(by_search(high))


def test_the_results_have_the_columns_that_the_flow_files_declare(scans: pa.Table) -> None:
    found = find(scans, LIGHT)
    assert found.schema.equals(parse(FOUND))
    storms = cluster(scans.append_column("cells", found["cells"]))
    assert storms.schema.equals(parse(STORMS))
    assert storms["number"].to_pylist() == [len(each) for each in storms["storms"].to_pylist()]
    nothing = scans.slice(0, 0).append_column("cells", found["cells"].slice(0, 0))
    assert cluster(nothing).schema.equals(parse(STORMS))


def test_a_scan_does_not_depend_on_its_batch(scans: pa.Table) -> None:
    whole = storms_of(scans, SEVERE)
    pieces = []
    for start in range(0, len(scans), 500):
        (batch,) = scans.slice(start, 500).combine_chunks().to_batches()
        with_cells = batch.append_column("cells", find(batch, SEVERE)["cells"].combine_chunks())
        pieces.append(cluster(with_cells))
    assert pa.concat_tables(pieces).equals(whole)


def nearest(event: dict[str, Any], sky: Sky, storm: dict[str, Any]) -> float:
    """Kilometres from a storm that was found to the next true one."""
    start = 1_748_779_200  # of the first scan
    truth = sky.at(event["at"].timestamp() - start)
    east, north = kilometres(truth.lat, truth.lon, (storm["lat"], storm["lon"]))
    return float(np.hypot(east, north)[truth.alive].min())


def test_severe_storms_are_where_true_ones_are(scans: pa.Table, sky: Sky) -> None:
    events = plain.storms_in(scans, SEVERE).to_pylist()
    storms = [(event, storm) for event in events for storm in event["storms"]]
    apart = np.array([nearest(event, sky, storm) for event, storm in storms])
    assert len(storms) > 200
    # Between two that run together, the centre is neither's.
    assert np.mean(apart < 10) > 0.9
    assert apart.max() < 60


def test_a_lonely_storm_is_found_with_its_place_and_strength() -> None:
    station = by_id("KIND")
    one = [np.array([value]) for value in (-3_600.0, 7_200.0, station.lat, station.lon)]
    still = [np.zeros(1), np.zeros(1)]
    sky = Sky((10.0, 0.0), *one, *still, peak=np.array([55.0]), radius=np.array([10.0]))
    ids = np.flatnonzero([row == "KIND" for row in _stations()])
    scans = Radar(sky).scans(ids)
    for level in (LIGHT, SEVERE):
        (event,) = plain.storms_in(scans, level).to_pylist()
        (storm,) = event["storms"]
        east, north = kilometres(storm["lat"], storm["lon"], (station.lat, station.lon))
        assert np.hypot(east, north) < 2
        assert abs(storm["dbz"] - 55) <= 2
    quiet = Radar(Sky.plan(storms=0)).scans(np.arange(242))
    assert sum(storms_of(quiet, LIGHT)["number"].to_pylist()) == 0


def _stations() -> list[str]:
    from headwater.examples.weather.stations import STATIONS

    return [station.id for station in STATIONS]


def test_severe_storms_are_also_rain_and_the_strongest_comes_first(scans: pa.Table) -> None:
    light, severe = (storms_of(scans, level)["storms"].to_pylist() for level in (LIGHT, SEVERE))
    for all_of, strong in zip(light, severe, strict=True):
        assert max((s["dbz"] for s in strong), default=0) <= max(
            (s["dbz"] for s in all_of), default=0
        )
        assert sum(s["cells"] for s in strong) <= sum(s["cells"] for s in all_of)
        assert [s["dbz"] for s in strong] == sorted((s["dbz"] for s in strong), reverse=True)
    assert all(storm["cells"] >= 3 for event in light for storm in event)


def test_clutter_is_no_storm() -> None:
    grid = np.full(CELLS, -5, np.int8)
    grid[[100, 101, 900]] = 50  # two that touch, one alone
    row = {"scan": 1, "at": None, "station": "KIND", "file": "x"}
    row |= {"dbz": grid.tolist(), "velocity": grid.tolist()}
    scans = pa.Table.from_pylist([row], schema=parse(SCHEMA))
    assert storms_of(scans, SEVERE)["number"].to_pylist() == [0]
    assert storms_of(scans, SEVERE, least=1)["storms"].to_pylist()[0][0]["cells"] == 2


def test_bad_scans_are_named(scans: pa.Table) -> None:
    row = scans.slice(0, 1).to_pylist()[0]
    short = pa.Table.from_pylist([row | {"dbz": [1, 2]}], schema=parse(SCHEMA))
    with pytest.raises(HeadwaterError, match="dbz must have 1600 values"):
        find(short)
    with pytest.raises(HeadwaterError, match="neither dbz nor a file"):
        find(scans.select(["scan"]))
    with pytest.raises(HeadwaterError, match="nowhere.npy is not the file of a scan"):
        find(pa.table({"file": ["nowhere.npy"]}))
    elsewhere = scans.filter(pa.array(np.array(storms_of(scans, SEVERE)["number"]) > 0)).slice(0, 1)
    cells = elsewhere.append_column("cells", find(elsewhere, SEVERE)["cells"])
    with pytest.raises(HeadwaterError, match="no radar station is called 'XXXX'"):
        cluster(cells.set_column(2, "station", pa.array(["XXXX"])))
