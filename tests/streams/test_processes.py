"""Processes publish to one stream, and some are killed: no event is lost, half or double."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from headwater import streams
from headwater.streams import Streams
from headwater.streams.measure import measure
from tests.streams.job import SIZE


def start(folder: Path, writer: str, batches: int, *kill: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.streams.job", folder, writer, batches, *kill]
    return subprocess.Popen(
        [str(word) for word in command], stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
    )


def acknowledged(process: subprocess.Popen[str]) -> int:
    """How many batches the process said are safe, once it has ended."""
    out, _ = process.communicate(timeout=60)
    return len(out.splitlines())


@pytest.fixture
def opened(opened: Streams) -> Streams:
    opened.create("numbers", "number bigint")
    return opened


@pytest.fixture
def fast(tmp_path: Path) -> Streams:
    """A stream that waits for no disk, so that its publishers meet more often."""
    made = streams.open(tmp_path / "fast")
    made.create("numbers", "number bigint", options={"sync": "false"})
    return made


def numbers(opened: Streams) -> list[int]:
    read = opened.table("numbers")["number"].to_pylist()
    # What Spark would see: all files whole, and the same events.
    files = sorted(opened.path("numbers").glob("*.parquet"))
    assert [n for file in files for n in pq.read_table(file)["number"].to_pylist()] == read
    return read


@pytest.mark.parametrize("point", ["write", "rename", "index", "safe"])
def test_a_publisher_killed_between_any_two_steps_goes_on(opened: Streams, point: str) -> None:
    killed = start(opened.folder, "job", 6, point, 3)
    safe = acknowledged(killed)
    assert killed.returncode == -signal.SIGKILL
    assert safe == 3
    there = numbers(opened)
    assert there[: safe * SIZE] == list(range(safe * SIZE))
    assert len(there) == (safe + (point in ("index", "safe"))) * SIZE
    again = start(opened.folder, "job", 6)
    assert acknowledged(again) == 6
    assert numbers(opened) == list(range(6 * SIZE))
    lines = (opened.path("numbers") / "_index").read_text().splitlines()
    assert len(lines) == 6


def test_publishers_killed_at_any_moment_beside_others(opened: Streams) -> None:
    """Both publish the same batches under the same keys; one is killed again and again."""
    steady = start(opened.folder, "job", 100)
    for _ in range(2):
        victim = start(opened.folder, "job", 100)
        assert victim.stdout is not None
        victim.stdout.readline()
        time.sleep(0.03)
        os.kill(victim.pid, signal.SIGKILL)
        victim.communicate()
    assert acknowledged(steady) == 100
    assert numbers(opened) == list(range(100 * SIZE))


def test_processes_and_threads_publish_at_once() -> None:
    found = measure(4, 0.3, processes=2)  # which counts what is there
    assert found.events > 0
    assert measure(8, 0.2, waiting=True).files < 200


def test_processes_that_publish_at_once_keep_out_of_each_others_way(fast: Streams) -> None:
    writers = [start(fast.folder, f"job {n}", 60) for n in range(3)]
    assert [acknowledged(each) for each in writers] == [60] * 3
    assert sorted(numbers(fast)) == sorted(3 * list(range(60 * SIZE)))
    files = sorted(fast.path("numbers").glob("*.parquet"))
    times = [file.stat().st_mtime_ns // 1_000_000 for file in files]
    assert len(times) == 180
    assert all(a < b for a, b in itertools.pairwise(times))  # Spark goes by these
