"""The generator: stations, storms that cross them, scans as files and as a stream."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headwater.errors import HeadwaterError
from headwater.examples.weather import generate
from headwater.examples.weather.plane import kilometres
from headwater.examples.weather.radar import METADATA, SCHEMA, Radar
from headwater.examples.weather.sky import Sky
from headwater.examples.weather.stations import INDIANA, LATS, LONS, STATIONS, by_id
from headwater.examples.weather.storms import find
from headwater.streams import Streams
from headwater.streams.binding import parse
from headwater.streams.declaration import Producer
from headwater.streams.intake import publish_file


def test_there_are_121_stations_three_of_them_in_indiana() -> None:
    assert len({station.id for station in STATIONS}) == len(STATIONS) == 121
    for station in STATIONS:
        assert len(station.id) == 4
        assert station.id[0] == "K"
        assert 24 < station.lat < 50
        assert -125 < station.lon < -66
    inside = [s.id for s in STATIONS if 37.8 < s.lat < 41.8 and -88.1 < s.lon < -84.8]
    assert sorted(INDIANA.values()) == sorted(set(inside) - {"KLVX", "KLOT"})
    with pytest.raises(HeadwaterError, match="no radar station is called 'KXYZ'"):
        by_id("KXYZ")


def test_scans_are_a_function_of_their_parameters() -> None:
    whole = pa.concat_tables(generate.sweeps(3))
    assert whole.equals(pa.concat_tables(generate.sweeps(3)))
    assert not whole.equals(pa.concat_tables(generate.sweeps(3, seed=8)))
    of_indiana = tuple(INDIANA.values())
    alone = pa.concat_tables(generate.sweeps(3, stations=of_indiana))
    theirs = np.isin(whole["station"].to_pylist(), of_indiana)
    assert alone.equals(whole.filter(pa.array(theirs)))


def test_every_station_scans_every_five_minutes_and_the_file_says_so(scans: pa.Table) -> None:
    rows = scans.select(["scan", "at", "station", "file"]).to_pylist()
    assert [row["scan"] for row in rows] == list(range(18 * 121))
    times = [row["at"] for row in rows]
    assert times == sorted(times)
    for row, later in zip(rows, rows[121:], strict=False):
        assert row["station"] == later["station"]
        assert (later["at"] - row["at"]).total_seconds() == 300
    assert all(row["file"] == f"Level2_{row['station']}_{row['at']:%Y%m%d_%H%M}" for row in rows)
    assert len({row["file"] for row in rows}) == len(rows)


def test_storms_are_born_grow_move_across_stations_and_die(sky: Sky) -> None:
    truth = sky.at(np.arange(-7_200, 18_000, 300.0))
    for storm in range(len(sky)):
        alive = np.flatnonzero(truth.alive[:, storm])
        strength = truth.dbz[alive, storm]
        top = int(strength.argmax())
        assert 0 < top < len(alive) - 1
        assert (np.diff(strength[: top + 1]) > 0).all()
        assert (np.diff(strength[top:]) < 0).all()
        assert (np.diff(truth.lon[alive, storm]) > 0).all()  # the wind is from the west
    east, north = kilometres(truth.lat[..., None], truth.lon[..., None], (LATS, LONS))
    nearest = np.hypot(east, north).argmin(axis=2)
    changed = (nearest[1:] != nearest[:-1]) & truth.alive[1:] & truth.alive[:-1]
    assert changed.any(axis=0).mean() > 0.2


def test_json_lines_become_the_same_stream(tmp_path: Path, registry: Streams) -> None:
    file = tmp_path / "scans.jsonl"
    assert generate.main([str(file), "--sweeps", "2"]) == 0
    done = publish_file(registry, "radar", file, schema=SCHEMA, create=True)
    assert (done.published, done.rejected) == (242, 0)
    assert registry.table("radar").equals(pa.concat_tables(generate.sweeps(2)))


def test_xml_says_where_the_scans_are(tmp_path: Path, registry: Streams) -> None:
    file = tmp_path / "scans.xml"
    generate.write(file, 1)
    lines = file.read_text().splitlines()
    place = tmp_path / "scans" / "Level2_KABR_20250601_1200.npy"
    assert lines[0].startswith("<radar><scan>0</scan>")
    assert lines[0].endswith(f"<file>{place}</file></radar>")
    bound = ("scan: INTEGER", "at: TIMESTAMP", "station: STRING", "file: STRING")
    pairs = [each.split(": ") for each in bound]
    bindings = [parse(f"{name} := /radar/{name} : {kind}") for name, kind in pairs]
    done = publish_file(registry, "radar", file, bindings=bindings, create=True)
    assert (done.published, done.rejected) == (121, 0)
    assert registry.declaration("radar").schema == METADATA
    (whole,) = generate.sweeps(1)
    assert find(registry.table("radar"), 20).equals(find(whole, 20))


def test_scans_are_published_at_a_rate(
    registry: Streams, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()
    arguments = ["--publish", "radar", "--streams", str(registry.folder), "--sweeps", "1"]
    assert generate.main([*arguments, "--rate", "400"]) == 0
    assert time.monotonic() - began > 0.2  # the last of four pieces starts after 120 / 400 s
    assert capsys.readouterr().out == "121 scans\n"
    assert registry.declaration("radar").event_time == "at"
    assert registry.table("radar").equals(next(generate.sweeps(1)))
    assert generate.main(arguments) == 1
    assert "radar" in capsys.readouterr().err


def test_a_stream_that_a_flow_has_declared_is_published_to(registry: Streams) -> None:
    registry.create("radar", SCHEMA, event_time="at", id="scan", producer=Producer("someone"))
    assert generate.publish(registry, "radar", 1) == 121
    assert registry.table("radar").equals(next(generate.sweeps(1)))


def test_what_can_not_be_made_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HeadwaterError, match="must end in .jsonl or .xml"):
        generate.write(tmp_path / "scans.csv")
    (tmp_path / "scans.xml").touch()
    with pytest.raises(HeadwaterError, match="is there already"):
        generate.write(tmp_path / "scans.xml")
    with pytest.raises(HeadwaterError, match="sweeps=0"):
        next(generate.sweeps(0))
    with pytest.raises(HeadwaterError, match="scan -1 is none"):
        Radar(Sky.plan()).scans(np.array([-1]))
