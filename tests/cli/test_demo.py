"""`headwater demo`, as a person runs it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

import headwater as hw
from headwater import streams as registry
from headwater.cli.demo import MARKER
from tests.support import need


def test_the_demo_shows_an_alert_its_reports_and_the_way_back(tmp_path: Path) -> None:
    """In a process of its own, with a Spark of its own."""
    command = [sys.executable, "-m", "headwater"]
    done = subprocess.run(
        [*command, "demo", "traffic", "--reports", "6000", "--no-serve"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "An alert: vehicle" in done.stdout
    assert "Its 4 reports" in done.stdout
    assert "All alerts that report" in done.stdout
    assert "headwater results traffic/store stopped" in done.stdout
    assert "nanobind" not in done.stderr
    assert "WARN" not in done.stderr
    assert "Traceback" not in done.stderr


def test_the_demo_ends_on_a_page_with_live_traffic(tmp_path: Path) -> None:
    """Until Ctrl-C; then it ends orderly."""
    asked = ["demo", "traffic", "--reports", "6000", "--port", "0", "--speed", "60"]
    log = tmp_path / "log"
    with log.open("w") as out:
        running = subprocess.Popen(
            [sys.executable, "-m", "headwater", *asked], cwd=tmp_path, stdout=out, stderr=out
        )
    try:
        link = _awaited(running, log, r"that alert: (http://127\.0\.0\.1:\d+)(/trace\S+)")
        assert "Its 4 reports" in log.read_text()
        address, path = link.groups()
        with urllib.request.urlopen(f"{address}{path}") as page:
            assert b"<title>Headwater" in page.read()
        status = f"{address}/api/flows/traffic/status"
        before = _events(status)
        until = time.monotonic() + 60
        while _events(status) <= before:
            assert time.monotonic() < until, "traffic goes on"
            time.sleep(0.5)
    finally:
        running.send_signal(signal.SIGINT)
        code = running.wait(60)
    assert code == 0, log.read_text()
    assert "Traceback" not in log.read_text()


@pytest.mark.long
def test_the_demo_on_a_broker_of_its_own(tmp_path: Path) -> None:
    """Reports come from a topic, and each alert of the store is a message of another."""
    command = [sys.executable, "-m", "headwater", "demo", "traffic", "--kafka", "--reports", "6000"]
    done = subprocess.run(
        [*command, "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    need(f"a broker ({done.stderr})", "no broker for the demo" not in done.stderr)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert len(told["backward"]) == 4
    with hw.open(tmp_path / "traffic" / "store") as store:
        alerts = store.results("stopped").num_rows
    assert told["topics"] == {"reports": 6_000, "stopped": alerts}
    assert not (tmp_path / "traffic" / "kafka").exists(), "the broker has ended"


@pytest.mark.long
def test_the_demo_s_page_on_a_broker(tmp_path: Path) -> None:
    asked = ["demo", "traffic", "--kafka", "--reports", "6000", "--port", "0", "--speed", "60"]
    log = tmp_path / "log"
    with log.open("w") as out:
        running = subprocess.Popen(
            [sys.executable, "-m", "headwater", *asked], cwd=tmp_path, stdout=out, stderr=out
        )
    try:
        link = _awaited(running, log, r"that alert: (http://127\.0\.0\.1:\d+)/trace")
        _awaited(running, log, r"topics at 127\.0\.0\.1:\d+: .*reports, .*stopped")
        assert "Its 4 reports" in log.read_text()
        status = f"{link.group(1)}/api/flows/traffic/status"
        before = _events(status)
        until = time.monotonic() + 60
        while _events(status) <= before:
            assert time.monotonic() < until, "traffic goes on"
            time.sleep(0.5)
        streams = tmp_path / "traffic" / "streams"
        assert registry.open(streams).declaration("stopped").log == "kafka:stopped"
    finally:
        running.send_signal(signal.SIGINT)
        code = running.wait(60)
    assert code == 0, log.read_text()
    assert "Traceback" not in log.read_text()
    assert not (tmp_path / "traffic" / "kafka").exists(), "the broker has ended"


def test_a_broker_begins_anew(headwater, tmp_path: Path) -> None:
    failed = headwater("demo", tmp_path / "d", "--kafka", "--keep")
    assert failed.code == 2
    assert "does not go with --keep" in failed.err


def _awaited(running: subprocess.Popen, log: Path, pattern: str) -> re.Match[str]:
    until = time.monotonic() + 180
    while time.monotonic() < until and running.poll() is None:
        if (found := re.search(pattern, log.read_text())) is not None:
            return found
        time.sleep(0.2)
    raise AssertionError(log.read_text())


def _events(status: str) -> int:
    with urllib.request.urlopen(status) as answer:
        return json.load(answer)["nodes"][0]["in"]


def test_json(headwater, demo: Path) -> None:
    """With --keep, an earlier demo is gone on with: nothing is left to run, the trace is shown."""
    before = sorted(file.name for file in (demo / "data").iterdir())
    shown = headwater("demo", demo, "--keep", "--json").json
    assert sorted(file.name for file in (demo / "data").iterdir()) == before
    assert shown["store"] == str(demo / "store")
    assert len(shown["backward"]) == 4
    assert shown["report"] in {row["id"] for row in shown["backward"]}
    assert shown["alert"]["result_id"] in {row["result_id"] for row in shown["forward"]}


def test_a_second_demo_starts_fresh(headwater, spark, tmp_path: Path) -> None:
    for _ in range(2):
        assert headwater("demo", tmp_path / "d", "--reports", 2_000, "--json").code == 0
        leftover = tmp_path / "d" / "leftover"
        assert not leftover.exists()
        leftover.touch()


@pytest.mark.parametrize("content", ["file", "folder"])
def test_what_the_demo_did_not_make_it_does_not_touch(
    headwater, tmp_path: Path, content: str
) -> None:
    mine = tmp_path / "mine"
    if content == "file":
        mine.write_text("mine")
    else:
        mine.mkdir()
        (mine / "notes.txt").write_text("mine")
    failed = headwater("demo", mine)
    assert failed.code == 1
    assert "was not made by `headwater demo`" in failed.err
    assert not (tmp_path / "mine" / MARKER).exists()
    kept = mine if content == "file" else mine / "notes.txt"
    assert kept.read_text() == "mine"
