"""`headwater demo`, as a person runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headwater.cli.demo import MARKER


def test_the_demo_shows_an_alert_its_reports_and_the_way_back(tmp_path: Path) -> None:
    """In a process of its own, with a Spark of its own."""
    command = [sys.executable, "-m", "headwater"]
    done = subprocess.run(
        [*command, "demo", "traffic", "--reports", "6000"],
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
