"""`kill -9` in the middle of a reduction, and again: no edge or dead letter is lost or doubled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.store import EmbeddedWriter, copying
from headwater.testing.prov_graphs import dependencies
from tests.reduce.streams import END, delayed, dependencies_in, job, letters_in, put, write


def run(home: Path, *arguments: object) -> int:
    """Run the reduction in a process group of its own, so that a kill takes its JVM along."""
    command = [sys.executable, "-m", "tests.restart.reducing", home, *arguments]
    with subprocess.Popen(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            _, errors = process.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert process.returncode in (0, -signal.SIGKILL), errors[-3_000:]
    assert "leaked" not in errors, errors[-3_000:]
    return process.returncode


def batches_of(store: Path) -> list[int]:
    with EmbeddedWriter.open(store) as writer, writer.working("reading") as connection:
        rows = connection.execute("SELECT batch FROM job_batches ORDER BY batch").fetchall()
    return [batch for (batch,) in rows]


@pytest.mark.parametrize(
    ("strategy", "ends", "kills"),
    [
        ("watermark", True, [("inside", 1), ("finishing", 0)]),
        pytest.param(
            "grouping",
            True,
            [("before", 1), ("after", 2), ("finishing", 0)],
            marks=pytest.mark.long,
        ),
        pytest.param("watermark", False, [("inside", 1), ("after", 3)], marks=pytest.mark.long),
        pytest.param(
            "watermark",
            True,
            [("after", 0), ("before", 3), ("inside", 4), ("finishing", 0)],
            marks=pytest.mark.long,
        ),
        pytest.param(
            "grouping",
            False,
            [("inside", 0), ("after", 1), ("inside", 2), ("finishing", 0)],
            marks=pytest.mark.long,
        ),
        pytest.param(
            "watermark into a lake",
            True,
            [("before", 1), ("after", 3), ("inside", 4), ("finishing", 0)],
            marks=pytest.mark.long,
        ),
        pytest.param(
            "grouping into a lake",
            False,
            [("after", 1), ("inside", 2), ("finishing", 0)],
            marks=pytest.mark.long,
        ),
    ],
)
def test_killed_again_and_again(
    tmp_path: Path, strategy: str, ends: bool, kills: list[tuple[str, int]]
) -> None:
    told = job(80, seed=21)
    lines = delayed(told, seed=22, within=60)
    for n in (50, 150, 250):
        lines.insert(n, {"type": f"nonsense-{n}"})
    write(tmp_path / "in", lines, files=4)
    if ends:
        put(tmp_path / "in", 9, END + '{"type": "after"}\n')
    for point, batch in kills:
        assert run(tmp_path, strategy, point, batch) == -signal.SIGKILL
    assert run(tmp_path, strategy) == 0
    store = tmp_path / "store"
    if strategy.endswith("lake"):
        copying.copy(f"delta:{tmp_path / 'lake'}", store)
    assert dependencies_in(store, "J") == dependencies(told)
    batches = batches_of(store)
    assert batches == list(range(len(batches))), "each batch once, none missing"
    assert len(batches) > 4
    own = tmp_path / "lake" / "_headwater" if strategy.endswith("lake") else store
    letters = letters_in(own / "jobs" / "J" / "dead-letters")
    reasons = [letter["reason"] for letter in letters]
    expected = [f"type 'nonsense-{n}' is unknown" for n in (50, 150, 250)]
    assert reasons == expected + ["job 'J' is finished"] * ends
