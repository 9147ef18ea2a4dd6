"""The weather case deployed: results as plain Python makes them, each traced to its one scan."""

from __future__ import annotations

import shlex
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import headwater as hw
from headwater.compose import Composition
from headwater.compose.kinds import Function, Job
from headwater.deploy import Host
from headwater.deploy.units.alerts import SERVER
from headwater.examples.weather import flow_file, generate, plain
from headwater.examples.weather import map as maps
from headwater.examples.weather.forecast import forecast
from headwater.examples.weather.stations import INDIANA
from headwater.examples.weather.storms import LIGHT, SEVERE
from tests.deploy.mail_server import MailServer, serving

pytestmark = pytest.mark.spark

OTHERS = ("KABR", "KILX", "KLOT")
"""Stations beside those of Indiana: nothing comes of their scans."""
LOWER = 30
"""From this intensity on it is severe after a change."""
RAIN, STORMS = "rain@example.org", "storms@example.org"
PATIENCE = 120.0


@pytest.fixture(scope="module")
def sweeps() -> list[pa.Table]:
    """Storms come up over Indiana: first light ones, then severe ones, in more and more scans."""
    stations = (*INDIANA.values(), *OTHERS)
    return list(generate.sweeps(20, seed=9, stations=stations))[4:10]


@pytest.fixture
def mail(monkeypatch: pytest.MonkeyPatch) -> Iterator[MailServer]:
    with serving() as server:
        monkeypatch.setenv(SERVER, server.place)
        yield server


@pytest.fixture
def host(tmp_path: Path, calm: SparkSession) -> Iterator[Host]:
    with Host(tmp_path / "flows", streams=tmp_path / "streams", spark=calm) as made:
        yield made
        assert made.trouble is None


def quick(name: str) -> Composition:
    """A flow with a forecast that takes a moment."""
    flow = Composition.read(flow_file(name))
    if "forecast" not in flow:
        return flow
    job = flow["forecast"]
    assert isinstance(job, Job)
    command = f"{shlex.quote(sys.executable)} -m headwater.examples.weather.forecast"
    return flow.replace("forecast", replace(job, run=f"{command} --hours 1 --members 1"))


def severe_from(flow: Composition, level: int) -> Composition:
    """The flow with another intensity from which on it is severe."""
    node = flow["find35"]
    assert isinstance(node, Function)
    return flow.replace("find35", replace(node, static={"level": level}))


def drained(host: Host) -> None:
    assert host.drain(PATIENCE), [
        (unit.record.id, unit.state, unit.error)
        for deployment in host.deployments.values()
        for unit in deployment.units
    ]


def by_scan(events: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Events by their scans, of which each has one."""
    assert max(Counter(event["scan"] for event in events).values(), default=1) == 1
    return {event["scan"]: event for event in events}


def of(host: Host, stream: str) -> dict[int, dict[str, Any]]:
    return by_scan(host.streams.table(stream).to_pylist())


def expected(scans: list[pa.Table], level: int) -> dict[int, dict[str, Any]]:
    return by_scan(plain.detected(scans, level))


def assert_same(made: dict[int, dict[str, Any]], wanted: dict[int, dict[str, Any]]) -> None:
    """The same events, as far as they have the same columns."""
    assert made.keys() == wanted.keys()
    for scan, event in made.items():
        own = {k: v for k, v in event.items() if k in wanted[scan]}
        assert own == {k: wanted[scan][k] for k in own}
        assert "at" in own


def mailed(mail: MailServer, to: str) -> dict[int, int]:
    """The ids of the events that were mailed to someone, by their scans: none twice."""
    found: list[tuple[int, int]] = []
    for message in mail.messages:
        if message["To"] == to:
            body = message.get_body()
            assert body is not None
            lines = [line.strip() for line in body.get_content().splitlines()]
            ids = [int(line.split()[1]) for line in lines if line.startswith("event ")]
            scans = [int(line.split()[1]) for line in lines if line.startswith("scan: ")]
            found += zip(scans, ids, strict=True)
    assert len(dict(found)) == len(found)
    return dict(found)


def assert_exact(host: Host, scans: list[pa.Table], ends: dict[int, set[str]]) -> None:
    """Every event of every stream leads back to its scan alone, every scan to its ends alone."""
    store = hw.open(host.store)
    for name in host.streams.names():
        if name != "radar":
            for scan, event in of(host, name).items():
                back = store.backward(entity=f"hw:streams/{name}/{event['event_id']}")
                assert back["id"].to_pylist() == [f"hw:streams/radar/{scan}"]
    for scan in pa.concat_tables(scans)["scan"].to_pylist():
        reached = store.forward(entity=f"hw:streams/radar/{scan}")["id"].to_pylist()
        assert Counter(reached) == Counter(ends.get(scan, set()))


def weather_ends(host: Host, mail: MailServer) -> dict[int, set[str]]:
    """What comes of each scan at last: mails and forecasts."""
    ends: dict[int, set[str]] = {}
    for stream, to in (("weather.light", RAIN), ("weather.warning", STORMS)):
        for scan, event_id in mailed(mail, to).items():
            ends.setdefault(scan, set()).add(f"hw:streams/{stream}/{event_id}")
    for scan, event in of(host, "forecasts").items():
        ends.setdefault(scan, set()).add(f"hw:streams/forecasts/{event['event_id']}")
    for scan, event in of(host, "weather.cluster35").items():
        if not event["number"]:  # searched, and dropped by the filter behind it
            ends[scan].add(f"hw:streams/weather.cluster35/{event['event_id']}")
    return ends


def searched_by(host: Host, forecast_id: int) -> str:
    """Which version of the search for severe storms is behind a forecast."""
    steps = hw.open(host.store).backward(entity=f"hw:streams/forecasts/{forecast_id}", steps=True)
    used = {row["id"].split("/")[1]: str(row["job"]) for row in steps.to_pylist()}
    assert used["radar"] == "weather.indianapolis.v1"
    assert used["weather.severe"] == "weather.forecast.v1"
    return used["weather.indiana"]


def forecasts(severe: dict[int, dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """What the job makes of events."""
    return {scan: forecast(event, hours=1, members=1) for scan, event in severe.items()}


def trickle(host: Host, sweeps: list[pa.Table], published: list[float]) -> None:
    """Publish scans one by one."""
    for scans in sweeps:
        for place in range(len(scans)):
            host.streams.publish("radar", scans.slice(place, 1))
            published.append(time.monotonic())
            time.sleep(0.15)


def test_the_weather_flow_changed_and_undone(
    host: Host, mail: MailServer, sweeps: list[pa.Table]
) -> None:
    flow = quick("weather")
    deployed = host.deploy(flow)
    sweeps = sweeps[1:5]
    first, during, after, last = ([scans] for scans in sweeps)
    host.streams.publish("radar", *first)
    drained(host)
    light, severe = (expected(first, level) for level in (LIGHT, SEVERE))
    assert 0 < len(severe) < len(light) == len(INDIANA)
    assert_same(of(host, "weather.light"), light)
    assert_same(of(host, "weather.severe"), severe)
    assert_same(of(host, "forecasts"), forecasts(severe))
    assert mailed(mail, RAIN).keys() == light.keys()
    assert mailed(mail, STORMS).keys() == severe.keys()
    assert_exact(host, first, weather_ends(host, mail))

    # A lower intensity while scans come, and back.
    published: list[float] = []
    thread = threading.Thread(target=trickle, args=(host, during, published))
    thread.start()
    began = time.monotonic()
    host.deploy(severe_from(flow, LOWER))
    ended = time.monotonic()
    thread.join()
    assert [at for at in published if began < at < ended]
    host.streams.publish("radar", *after)
    drained(host)
    deployed.undo()
    host.streams.publish("radar", *last)
    drained(host)
    assert [unit.record.id for unit in deployed.units if "find35" in unit.record.id] == ["find35@3"]
    assert {unit.record.version for unit in deployed.units if "find35" not in unit.record.id} == {1}

    # Each scan was searched by one version, with its intensity, and what is behind follows.
    scans = pa.concat_tables(map(plain.indiana, sweeps))["scan"].to_pylist()
    assert list(of(host, "weather.cluster35")) == scans
    made = of(host, "forecasts")
    version = {scan: searched_by(host, event["event_id"]) for scan, event in made.items()}
    low, high = expected(sweeps, LOWER), expected(sweeps, SEVERE)
    by_second = {scan for scan in made if version[scan] == "weather.find35.v2"}
    assert expected(after, LOWER).keys() <= by_second
    assert not by_second & (expected(first, LOWER).keys() | expected(last, LOWER).keys())
    for scan in expected(last, SEVERE):
        assert version[scan] == "weather.find35.v3"
    wanted = {scan: (low if scan in by_second else high)[scan] for scan in made}
    assert high.keys() <= made.keys()
    assert_same(of(host, "weather.severe"), wanted)
    assert_same(made, forecasts(wanted))
    assert mailed(mail, RAIN).keys() == expected(sweeps, LIGHT).keys()
    assert mailed(mail, STORMS).keys() == wanted.keys()
    assert_exact(host, sweeps, weather_ends(host, mail))

    drawn = [of(host, stream) for stream in ("weather.light", "weather.warning", "forecasts")]
    assert_same(drawn[1], wanted)
    assert maps.from_streams(host.streams) == maps.draw(*(each.values() for each in drawn))


def test_two_flows_meet_in_a_stream(
    host: Host, mail: MailServer, sweeps: list[pa.Table], tmp_path: Path
) -> None:
    """Forecasts are deployed later, stopped and resumed; the detection of storms goes on."""
    storms = host.deploy(quick("storms"))
    units = storms.units
    first, second, third = (in_files(scans, tmp_path) for scans in (sweeps[0], *sweeps[4:]))
    host.streams.publish("radar", first)
    drained(host)
    assert "forecasts" not in host.streams

    later = host.deploy(quick("forecasts"))
    drained(host)
    assert_same(of(host, "forecasts"), forecasts(expected([first], SEVERE)))
    later.stop()
    host.streams.publish("radar", second)
    drained(host)
    found = expected([first, second], SEVERE)
    assert_same(of(host, "IndianaStorm35dB"), found)
    assert mailed(mail, STORMS).keys() == found.keys()
    assert of(host, "forecasts").keys() == expected([first], SEVERE).keys()
    later.resume()
    host.streams.publish("radar", third)
    drained(host)
    assert all(now is before for now, before in zip(storms.units, units, strict=True))

    scans = [first, second, third]
    found = expected(scans, SEVERE)
    assert 0 < len(found) < 3 * len(INDIANA)
    assert_same(of(host, "IndianaStorm35dB"), found)
    assert_same(of(host, "forecasts"), forecasts(found))
    assert mailed(mail, RAIN).keys() == expected(scans, LIGHT).keys()
    ends: dict[int, set[str]] = {}
    for stream, to in (("storms.storm20", RAIN), ("storms.storm35", STORMS)):
        for scan, event_id in mailed(mail, to).items():
            ends.setdefault(scan, set()).add(f"hw:streams/{stream}/{event_id}")
    for stream in ("forecasts", "storms.cluster35"):
        for scan, event in of(host, stream).items():
            if stream == "forecasts" or not event["number"]:
                ends.setdefault(scan, set()).add(f"hw:streams/{stream}/{event['event_id']}")
    assert_exact(host, scans, ends)


def in_files(scans: pa.Table, folder: Path) -> pa.Table:
    """Events that only say where their scans are."""
    files = []
    for event in scans.to_pylist():
        files.append(str(folder / f"{event['file']}.npy"))
        np.save(files[-1], np.array([event["dbz"], event["velocity"]], np.int8))
    told = scans.select(["scan", "at", "station"])
    return told.append_column("file", pa.array(files, pa.string()))
