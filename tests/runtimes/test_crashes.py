"""A runtime killed in the middle: every event has its output exactly once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from headwater import streams
from headwater.runtimes.jobs import JobQueue, State
from headwater.runtimes.jobs.process import Process
from tests.runtimes.lab import Told, alive, events, job, running, until

COMMAND = """
echo $HEADWATER_EXECUTION >> "$HEADWATER_FOLDER/runs"
sleep 0.$(( ${HEADWATER_EXECUTION##*e} % 3 ))5
cat
"""
NUMBERS = range(20)


def host(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.runtimes.host", str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    )


def started(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"


def killed(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def groups(folder: Path) -> list[int]:
    """Process groups of the commands that run."""
    files = (folder / "queue" / "work").glob("*/pid")
    told = [file.read_text() for file in files if Process(file.parent)._held()]
    return [int(pid) for pid in told if pid]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    registry = streams.open(tmp_path / "streams")
    registry.create("forecasts", "id bigint, n bigint")
    with JobQueue(tmp_path / "queue", job(COMMAND, slots=4, folder=str(tmp_path))) as queue:
        queue.enqueue(events(*NUMBERS))
        assert queue.enqueue(events(*NUMBERS)) == []
    return tmp_path


@pytest.mark.parametrize("commands_too", [False, True])
def test_exactly_once_after_kills(folder: Path, commands_too: bool) -> None:
    moments = random.Random(7)
    for _ in range(3):
        process = host(folder)
        started(process)
        time.sleep(moments.uniform(0.02, 0.25))
        killed(process)
        for group in groups(folder) if commands_too else ():
            os.killpg(group, signal.SIGKILL)
    process = host(folder)
    out, _ = process.communicate(timeout=60)
    assert out == "started\ndone\n"
    rows = streams.open(folder / "streams").table("forecasts").to_pylist()
    assert sorted(row["n"] for row in rows) == list(NUMBERS)
    assert len({row["id"] for row in rows}) == len(NUMBERS)
    runs = Counter((folder / "runs").read_text().split())
    assert set(runs) == {f"forecast@1/e{n}" for n in NUMBERS}
    if commands_too:
        assert runs.total() > len(NUMBERS)
    else:  # Commands outlive their runtime, and the next finds them: none was begun twice.
        assert runs.total() == len(NUMBERS)
    with JobQueue(folder / "queue") as queue:
        assert queue.counts()[State.finished] == len(NUMBERS)
        assert queue.totals().done == len(NUMBERS)


def test_a_command_found_again_still_has_its_time_limit(tmp_path: Path) -> None:
    streams.open(tmp_path / "streams").create("forecasts", "id bigint, n bigint")
    made = job("sleep 60", timeout=1.0, retries=0)
    with JobQueue(tmp_path / "queue", made) as queue:
        queue.enqueue(events(1))
        process = host(tmp_path)
        started(process)
        until(lambda: queue.counts()[State.running] == 1 and groups(tmp_path))
        (group,) = groups(tmp_path)
        killed(process)
        told = Told()
        with running(queue, told) as runtime:
            assert runtime.running == 1
            assert runtime.wait(10)
    assert "did not end within 1 s" in (told.failed["forecast@1/e1"].reason or "")
    until(lambda: not alive(group))


def test_what_ended_while_no_runtime_was_there_is_taken(tmp_path: Path) -> None:
    streams.open(tmp_path / "streams").create("forecasts", "id bigint, n bigint")
    with JobQueue(tmp_path / "queue", job("sleep 0.3; cat")) as queue:
        queue.enqueue(events(1))
        process = host(tmp_path)
        started(process)
        until(lambda: queue.counts()[State.running] == 1 and groups(tmp_path))
        killed(process)
        until(lambda: (tmp_path / "queue" / "work" / "1-main-1" / "exit").exists())
        told = Told()
        with running(queue, told) as runtime:
            assert runtime.wait(10)
        assert told.values == {"forecast@1/e1": [{"n": 1}]}
        assert queue.execution("forecast@1/e1").attempts == 1
