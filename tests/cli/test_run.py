"""`headwater run module:flow`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import pytest

from headwater.examples import linear_road

numbers = count()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new module in the working directory, with a flow over 2,000 reports."""
    linear_road.generate(tmp_path / "data", reports=2_000, files=4)
    name = f"job{next(numbers)}"
    (tmp_path / f"{name}.py").write_text(
        "from headwater.examples import linear_road\n"
        "def make():\n"
        f"    return linear_road.flow({str(tmp_path / 'data')!r}, name='traffic',\n"
        "                            options={'maxFilesPerTrigger': '2'})\n"
        "def broken():\n"
        "    return 1 / 0\n"
        "answer = 42\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    return name


@pytest.mark.parametrize("capture", ["eager", "none", "auto"])
def test_a_function_that_returns_a_flow(headwater, spark, module: str, capture: str) -> None:
    args = ["run", f"{module}:make", "--store", "prov", "--capture", capture, "--available-now"]
    done = headwater(*args, "--json")
    assert done.code == 0
    assert done.json["flow"] == "traffic"
    assert done.json["batches"] >= 2
    assert done.json["results"] > 0
    assert (done.json["edges"] > 0) == (capture == "eager")
    again = headwater(*args, "--json")
    assert again.code == 0
    assert again.json["results"] == 0


def test_a_flow_object(headwater, spark, module: str) -> None:
    Path(f"{module}_flow.py").write_text(f"import {module}\nflow = {module}.make()\n")
    done = headwater("run", f"{module}_flow:flow", "--store", "prov", "--available-now")
    assert done.code == 0
    assert "traffic" in done.err
    assert headwater("results", "prov").code == 0


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("nosuchmodule:flow", "no module 'nosuchmodule'"),
        ("{}:nothing", "has no 'nothing'"),
        ("{}:answer", "is a int, not a Flow"),
        ("{}:broken", "ZeroDivisionError"),
    ],
)
def test_what_is_no_flow(headwater, spark, module: str, target: str, says: str) -> None:
    failed = headwater("run", target.format(module), "--store", "prov")
    assert failed.code == 1
    assert says in failed.err
    assert not Path("prov").exists()


def test_the_users_line_is_named(headwater, spark, module: str) -> None:
    failed = headwater("run", f"{module}:broken", "--store", "prov")
    assert f"{module}.py:6" in failed.err


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)]
)
def test_ctrl_c_stops_cleanly(module: str, number: signal.Signals) -> None:
    """The signal goes to the whole process group, JVM and workers, as a terminal sends it."""
    command = [sys.executable, "-m", "headwater"]
    args = ["run", f"{module}:make", "--store", "prov", "--json"]
    running = subprocess.Popen(
        [*command, *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    commits = Path("prov") / "checkpoints" / "traffic" / "commits"
    end = time.monotonic() + 120
    while running.poll() is None and time.monotonic() < end and not (commits / "1").exists():
        time.sleep(0.2)
    send = os.killpg if number == signal.SIGINT else os.kill
    send(running.pid, number)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 0, err
    assert '"batches"' in out
    assert "Traceback" not in err
