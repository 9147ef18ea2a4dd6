"""Runs one benchmark after the other, keeps each report as soon as it is there, and goes on later.

Each runs in a process of its own: Spark is chosen once in a process, and what one leaves in memory
is no matter to the next. The tiny ones run in this process, as starting Spark takes longer.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from headwater.bench.everything.sanity import problems
from headwater.bench.everything.sizes import MEASURED, Run, Size
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Report: TypeAlias = dict[str, Any]
"""What a command printed, and under `run` which one it was, in which size, and how it went."""

PATIENCE = 6.0
"""How many times its estimate a run may take before it is ended; a busy machine needs some."""
LEAST = 300.0
"""Seconds that any run may take."""
_TOLD = 12
"""Lines of a failed run's own messages that are looked at for the reason."""


@dataclass(slots=True)
class Budget:
    """Minutes for all runs; sizes are chosen so that those to come fit in what is left."""

    seconds: float
    spent: float = 0.0
    expected: float = 0.0
    """What the runs so far would have taken by their estimates."""

    @property
    def slowness(self) -> float:
        """How many times longer than estimated runs take here."""
        return self.spent / self.expected if self.expected else 1.0

    def size(self, rest: Sequence[Run]) -> Size | None:
        """The largest size in which all the rest is done in time; the smallest if none is.

        Nothing once the time is used up.

        >>> from headwater.bench.everything.parts import chosen
        >>> [Budget(minutes * 60).size(chosen(["storage"])) for minutes in (0, 1, 3, 30)]
        [None, 'small', 'medium', 'full']
        """
        left = self.seconds - self.spent
        if left <= 0:
            return None
        fits: Size = MEASURED[0]
        for size in MEASURED:
            if sum(run.sizes[size].seconds for run in rest) * self.slowness <= left:
                fits = size
        return fits

    def took(self, run: Run, size: Size, seconds: float) -> None:
        """Counts a run."""
        self.spent += seconds
        self.expected += run.sizes[size].seconds


@dataclass(frozen=True, slots=True)
class Folder:
    """Where reports are kept, a file for each run."""

    path: Path
    say: Callable[[str], None] = field(default=lambda line: None)

    def file(self, run: Run) -> Path:
        """The report of a run."""
        return self.path / f"{run.name}.json"

    def kept(self, run: Run, size: Size | None = None) -> Report | None:
        """A report of an earlier call that went well; of this size, or of any that is measured."""
        try:
            report: Report = json.loads(self.file(run).read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        of = report["run"]
        fits = of["size"] == size if size is not None else of["size"] in MEASURED
        return report if fits and "failed" not in of else None

    def reports(self, runs: Sequence[Run]) -> dict[str, Report]:
        """All that is there, by name, failures too."""
        found = {run.name: self.file(run) for run in runs}
        return {name: json.loads(file.read_text()) for name, file in found.items() if file.exists()}

    def keep(self, run: Run, report: Report) -> None:
        """Writes a report, whole or not at all."""
        self.path.mkdir(parents=True, exist_ok=True)
        made = self.file(run).with_suffix(".new")
        made.write_text(json.dumps(report, indent=1) + "\n")
        made.replace(self.file(run))


@contextlib.contextmanager
def ended_whole() -> Iterator[None]:
    """Lets a request to end reach the process that runs apart: it ends with this one."""

    def end(*_: object) -> None:
        sys.exit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def run_all(
    runs: Sequence[Run], folder: Folder, *, size: Size = "small", budget: Budget | None = None
) -> bool:
    """Runs what is not there yet, one after the other; whether all went well.

    With a `budget`, that chooses the sizes.
    """
    well = True
    waiting = [
        run
        for run in runs
        if (size in run.sizes) and folder.kept(run, None if budget else size) is None
    ]
    if len(waiting) < len(runs):
        folder.say(
            f"{len(runs) - len(waiting)} of {len(runs)} are there already, or have no {size}"
        )
    for number, run in enumerate(waiting):
        now = size if budget is None else budget.size(waiting[number:])
        if now is None:
            left = ", ".join(each.name for each in waiting[number:])
            folder.say(f"the time is used up; left for the next call: {left}")
            return False
        folder.say(f"{number + 1}/{len(waiting)} {run.line(now)}")
        report = run_one(run, now, folder.path)
        folder.keep(run, report)
        told = report["run"]
        if budget is not None:
            budget.took(run, now, told["seconds"])
        if "failed" in told:
            well = False
        outcome = f"failed: {told['failed']}" if "failed" in told else "done"
        folder.say(f"{number + 1}/{len(waiting)} {run.name}: {outcome} ({told['seconds']:.0f} s)")
    return well


def run_one(run: Run, size: Size, folder: Path) -> Report:
    """The report of one run; of one that failed, the reason."""
    begin = time.perf_counter()
    told: dict[str, Any] = {"name": run.name, "size": size, "command": run.line(size)}
    report: Report = {}
    try:
        if size == "quick":
            report = here(run.arguments(size))
        else:
            limit = max(LEAST, PATIENCE * run.sizes[size].seconds)
            report = apart(run.arguments(size), folder / f"{run.name}.log", limit)
        if wrong := problems(report):
            told["failed"] = "; ".join(wrong)
    except HeadwaterError as error:
        told["failed"] = " ".join(str(error).split())
    told["seconds"] = round(time.perf_counter() - begin, 1)
    return {"run": told, **report}


def here(arguments: Sequence[str]) -> Report:
    """Runs a benchmark in this process, with the Spark session that there is."""
    from typer.main import get_command

    from headwater.cli.bench import app

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        get_command(app)([*arguments, "--json"], standalone_mode=False)
    return _parsed(out.getvalue(), arguments)


def apart(arguments: Sequence[str], log: Path, limit: float) -> Report:
    """Runs a benchmark in a process of its own, for so many seconds at most."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as scratch, log.open("w") as said:
        out = Path(scratch) / "report.json"
        with out.open("w") as to, _process(arguments, to, said, scratch) as process:
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                raise HeadwaterError(f"not done after {limit:.0f} s; it was ended") from None
        if code:
            last = [line.strip() for line in log.read_text().splitlines() if line.strip()]
            reason = next((x for x in reversed(last[-_TOLD:]) if x.startswith("headwater:")), "")
            reason = reason.removeprefix("headwater: ") or (last[-1] if last else "no message")
            raise HeadwaterError(f"it ended with {code}: {reason} (see {log.name})")
        return _parsed(out.read_text(), arguments)


@contextlib.contextmanager
def _process(
    arguments: Sequence[str], to: IO[str], said: IO[str], scratch: str
) -> Iterator[subprocess.Popen[bytes]]:
    """The command in a session of its own, which ends with all its children whatever happens."""
    environment: Mapping[str, str] = {**os.environ, "TMPDIR": scratch}
    command = [sys.executable, "-m", "headwater", "bench", *arguments, "--json"]
    process = subprocess.Popen(
        command, stdout=to, stderr=said, env=environment, start_new_session=True
    )
    try:
        yield process
    finally:
        for how in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, how)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)


def _parsed(text: str, arguments: Sequence[str]) -> Report:
    try:
        report: Report = json.loads(text)
    except json.JSONDecodeError as error:
        raise HeadwaterError(f"bench {arguments[0]} printed no report: {error}") from error
    return report
