"""The folder and the environment of a try, and what is found there when it has ended."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.errors import RunError
from headwater.runtimes.jobs.events import encoded
from headwater.runtimes.jobs.process import (
    EVENT,
    OUTPUT,
    PARAMETERS,
    STDERR,
    STDOUT,
    WORK,
    Process,
    start,
)

if TYPE_CHECKING:
    from headwater.runtimes.jobs.ledger import Task

_TAIL = 4_000
"""Bytes of what a command said that are kept."""


def launch(task: Task, folder: Path) -> Process:
    """Write what a step needs into its folder, and start it."""
    (folder / WORK).mkdir(parents=True)
    (folder / EVENT).write_text(encoded(given(task)), encoding="utf-8")
    (folder / PARAMETERS).write_text(encoded(task.parameters), encoding="utf-8")
    _link(task, folder / WORK)
    return start(folder, _command(task), _environment(task, folder))


def given(task: Task) -> Any:
    """What a step reads: the event or the events, and what the steps before it made."""
    values = [event.value for event in task.events]
    event = values if task.job.windowed else values[0]
    return {"event": event, **task.inputs} if task.step.after else event


def results(task: Task, folder: Path) -> list[dict[str, Any]]:
    """The events that a step made; raises if they are not what they should be."""
    file = folder / OUTPUT
    if not file.exists():
        file = folder / STDOUT
    rows = []
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise RunError(f"line {number} of its output is not JSON: {error}") from error
            if not isinstance(row, dict):
                raise RunError(f"line {number} of its output is not an object, {_start(line)}")
            rows.append(row)
    conforming(task, rows)
    return rows


def conforming(task: Task, rows: list[dict[str, Any]]) -> None:
    """Refuse output that does not fit the node's schema."""
    if task.job.schema is None or task.step is not task.job.steps[-1] or not rows:
        return
    from headwater.streams.schema import parse
    from headwater.streams.sifting import sift

    _, reasons = sift(rows, parse(task.job.schema))
    if reasons:
        place, reason = next(iter(reasons.items()))
        raise RunError(f"event {place + 1} of its output does not fit the schema: {reason}")


def said(folder: Path) -> str:
    """The end of what it wrote to its standard error."""
    try:
        with (folder / STDERR).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
            return file.read().decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return ""


def _command(task: Task) -> str:
    step = task.step
    if step.run is not None:
        return step.run
    place, kind = (step.call, "call") if step.call is not None else (step.spark, "spark")
    words = [sys.executable, "-m", "headwater.runtimes.jobs.call", kind, str(place)]
    return f"exec {shlex.join(words)}"


def _environment(task: Task, folder: Path) -> dict[str, str]:
    home = task.job.folder or os.getcwd()
    paths = [home, os.environ.get("PYTHONPATH", "")]
    if task.step.run is None:
        paths += [path for path in sys.path if path]
    return {
        **os.environ,
        # The same Python and its tools, whatever shell this was started from.
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")]),
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "HEADWATER_EVENT": str(folder / EVENT),
        "HEADWATER_PARAMETERS": str(folder / PARAMETERS),
        "HEADWATER_OUTPUT": str(folder / OUTPUT),
        "HEADWATER_EXECUTION": task.key,
        "HEADWATER_ATTEMPT": str(task.attempt),
        "HEADWATER_INPUTS": "1" if task.step.after else "0",
        "HEADWATER_FOLDER": home,
    }


def _link(task: Task, work: Path) -> None:
    """Files of the job's folder that a command names are there in its own, too."""
    if task.step.run is None or task.job.folder is None:
        return
    for found in Path(task.job.folder).iterdir():
        if found.name in task.step.run:
            (work / found.name).symlink_to(found.absolute())


def _start(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return text if len(text) <= 60 else f"{text[:57]}..."
