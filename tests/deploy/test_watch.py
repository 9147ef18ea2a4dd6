"""`headwater flow watch`, on what a host has written down."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from headwater.deploy.mailbox import HOST
from headwater.streams.files import try_hold, write_json
from tests.cli.conftest import call
from tests.deploy.fakes import FakeDeployment


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a job could not keep up, and a unit has failed."""
    folder = tmp_path_factory.mktemp("watched")
    deployment = FakeDeployment(folder, takes=2)
    deployment.run(120, service=2)
    deployment.watch._written = 0.0
    deployment.units[0].error = "input 'radar': no stream 'radar'"
    deployment.watch.tick(time.time() + 120)
    return folder / "flows"


def test_programs_get_status_and_history(flows: Path) -> None:
    told = call("flow", "watch", "weather", "--flows", flows, "--once", "--json").json
    assert told["hosted"] is False
    (flow,) = told["flows"]
    assert (flow["flow"], flow["version"], flow["wanted"]) == ("weather", 1, "running")
    assert [row["node"] for row in flow["nodes"]] == ["radar", "solve", "solved"]
    assert flow["nodes"][1]["verdict"] == "growing"
    assert len(flow["history"]["nodes"]["solve"]) >= 120


def test_people_get_a_table_with_a_row_for_each_node(flows: Path) -> None:
    shown = call("flow", "watch", "--flows", flows, "--once")
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert lines[0].startswith("no process runs the flows of"), "what is shown is old"
    assert "flow weather · version 1 · units: 1 failed" in shown.out
    (solve,) = [line for line in lines if line.startswith("solve ")]
    for part in ("job", "solve@1", "119", "59", "▆", "∞", "2 s", "75%", "growing", "full in"):
        assert part in solve, part
    assert "unit solve@1 failed: input 'radar': no stream 'radar'" in lines


def test_it_says_whether_someone_runs_the_flows(flows: Path) -> None:
    held = try_hold(flows / HOST)
    assert held is not None
    try:
        old = json.loads((flows / "weather" / "status.json").read_bytes())
        write_json(flows / "weather" / "status.json", {**old, "at": time.time()})
        shown = call("flow", "watch", "--flows", flows, "--once").out
        assert shown.startswith("flow weather")
        write_json(flows / "weather" / "status.json", {**old, "at": time.time() - 60})
        shown = call("flow", "watch", "--flows", flows, "--once").out
        assert re.match(r"measured \d\d s ago: the process that runs them is busy", shown)
    finally:
        held.close()


def test_the_matrix_has_a_line_for_each_unit(flows: Path) -> None:
    head, solve = call("flow", "watch", "--flows", flows, "--matrix").out.splitlines()
    ago, lengths = head.split("\t"), solve.split("\t")
    assert (ago[0], ago[-2:]) == ("weather seconds", ["-1", "0"])
    assert lengths[0] == "solve"
    assert len(lengths) == len(ago)
    assert int(lengths[-1]) == 60


def test_metrics_are_those_of_the_status(flows: Path) -> None:
    text = call("flow", "watch", "--flows", flows, "--prometheus").out
    labels = 'flow="weather",node="solve",version="1"'
    for line in (
        f"headwater_events_in_total{{{labels}}} 119",
        f"headwater_events_out_total{{{labels}}} 59",
        f"headwater_events_in_transit{{{labels}}} 60",
        f"headwater_compute_seconds_total{{{labels}}} 118",
        f'headwater_queue_state{{{labels},state="growing"}} 1',
        'headwater_unit_running{flow="weather",unit="solve@1"} 0',
        'headwater_stream_events_total{flow="weather",stream="radar"} 0',
    ):
        assert line in text.splitlines()
    assert 'node="solved"' in text
    assert text.count("# TYPE headwater_events_in_total") == 1


def test_what_is_not_there_is_said_in_one_line(flows: Path, tmp_path: Path) -> None:
    nothing = call("flow", "watch", "--flows", tmp_path, "--once")
    assert nothing.code == 1
    assert nothing.err == (
        f"headwater: no flow is deployed in {tmp_path}; use `headwater flow deploy FILE`\n"
    )
    other = call("flow", "watch", "traffic", "--flows", flows, "--once")
    assert (other.code, other.out) == (1, "")
    assert "there is weather" in other.err
    assert call("flow", "watch", "--flows", flows, "--json", "--matrix").code == 2
