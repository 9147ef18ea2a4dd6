"""A soak from its beginning to the checker's verdict."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from headwater.errors import HeadwaterError
from tests.soak import schedule, verdict
from tests.soak.clock import Clock
from tests.soak.disk import small_disk
from tests.soak.faults import Faults
from tests.soak.measuring import Measuring
from tests.soak.report import Report
from tests.soak.world import World

Say = Callable[[str], None]


def soak(
    folder: Path,
    minutes: float,
    seed: int,
    rate: float = 40.0,
    kinds: Sequence[str] = schedule.KINDS,
    say: Say = print,
) -> Report:
    """Run for so many minutes, then check everything; the folder keeps what it was about."""
    report = Report(seed, minutes, datetime.now(UTC))
    folder.mkdir(parents=True, exist_ok=True)
    clock = Clock(folder)
    with small_disk(folder / "disk") as no_disk:
        world = World(folder, seed, rate, clock.environment)
        faults = Faults(world, clock, no_disk)
        report.impossible = {k: why for k in kinds if (why := faults.impossible(k)) is not None}
        try:
            _run(
                world,
                faults,
                report,
                minutes,
                [k for k in kinds if k not in report.impossible],
                say,
            )
            say("checking")
            _check(world, faults, report)
        finally:
            world.abandon()
            if no_disk is None:  # what is in memory would be gone
                _keep(world)
    report.wrong += [f"{o.kind}: {line}" for o in report.outcomes for line in o.wrong]
    return report


def _run(
    world: World, faults: Faults, report: Report, minutes: float, kinds: list[str], say: Say
) -> None:
    begun = time.monotonic()
    world.begin()
    measuring, asking = Measuring(world), Asking(world)
    measuring.start()
    asking.start()
    notes = world.folder / "reader.json"
    command = [sys.executable, "-m", "tests.soak.reading", str(world.home), str(notes)]
    with (world.folder / "reader.log").open("ab") as log:
        reader = subprocess.Popen([*command, str(world.seed)], stdout=log, stderr=log)
    faults.reader_pid = reader.pid
    try:
        for fault in schedule.faults(world.seed, kinds):
            left = minutes * 60 - (time.monotonic() - begun)
            if left <= fault.after:
                time.sleep(max(0.0, left))
                break
            time.sleep(fault.after)
            outcome = faults.do(fault)
            report.outcomes.append(outcome)
            at = time.monotonic() - begun
            say(f"{at:6.0f} s  {outcome.kind}: {outcome.detail} ({outcome.seconds:.0f} s)")
            for line in outcome.wrong:
                say(f"          WRONG {line}")
            if world.publisher.error is not None:
                report.wrong.append(world.publisher.error)
                break
        if reader.poll() is not None:
            report.wrong.append("the reader of the store ended by itself")
    finally:
        report.seconds = time.monotonic() - begun
        reader.kill()
        reader.wait()
        asking.end()
        say("ending: waiting until all is through")
    try:
        world.close()
    except (AssertionError, OSError, subprocess.TimeoutExpired, HeadwaterError) as error:
        # What there is can be checked all the same.
        report.wrong.append(f"it did not come to its end: {type(error).__name__}: {error}")
    measuring.end()
    report.most = measuring.most
    report.wrong += asking.wrong
    with contextlib.suppress(FileNotFoundError):
        told = json.loads(notes.read_text())
        report.wrong += told["wrong"]
        report.others |= {f"reader of the store: {k}": n for k, n in told["counts"].items()}
        report.others["reader of the store: refused"] = sum(told["refused"].values())
    report.others |= {f"reader by REST: {k}": n for k, n in asking.counts.items()}
    report.others["publisher by REST: sent again"] = world.publisher.again
    report.others |= {f"publisher by REST: {k}": n for k, n in world.publisher.troubles.items()}
    report.others["hot changes done"] = faults.changes


def _check(world: World, faults: Faults, report: Report) -> None:
    """Have another process say what is wrong: it shares nothing with this one but the disk."""
    verdict.note(world, faults.hostile_events)
    with (world.folder / "verdict.log").open("wb") as log:
        command = [sys.executable, "-m", "tests.soak.verdict", str(world.folder)]
        done = subprocess.run(command, stdout=log, stderr=log, check=False)
    if done.returncode:
        said = (world.folder / "verdict.log").read_text().strip().splitlines()
        report.wrong.append(f"the checker failed: {said[-1] if said else done.returncode}")
        return
    found = verdict.read(world.folder)
    report.checked = found.counts
    report.wrong += found.wrong


def _keep(world: World) -> None:
    kept = world.folder / "kept"
    subprocess.run(["rm", "-rf", str(kept)], check=False)
    subprocess.run(["cp", "-a", str(world.home), str(kept)], check=False)


class Asking(threading.Thread):
    """A reader by REST: whatever happens, an answer is no fault of the service's own."""

    PATHS = (
        "/api/health",
        "/api/flows",
        "/api/streams",
        "/api/streams/stopped/events?limit=20",
        "/api/graph?limit=200",
        "/api/graph/flows",
        "/api/store",
        "/metrics",
    )

    def __init__(self, world: World) -> None:
        super().__init__(daemon=True, name="reader by REST")
        self._world, self._ending = world, threading.Event()
        self.counts = {"answers": 0, "refused": 0, "no answer": 0}
        self.wrong: list[str] = []

    def run(self) -> None:
        """Asks until it is told to end."""
        turn = 0
        while not self._ending.wait(0.4):
            path = self.PATHS[turn % len(self.PATHS)]
            turn += 1
            try:
                self._world.served.call("GET", path)
                self.counts["answers"] += 1
            except AssertionError as error:
                self.counts["refused"] += 1
                if f"{path}: 500" in str(error) and len(self.wrong) < 20:
                    self.wrong.append(f"reader by REST: {str(error)[:400]}")
            except ValueError:  # of metrics, which are not JSON
                self.counts["answers"] += 1
            except Exception:  # noqa: BLE001 - killed in the middle of an answer
                self.counts["no answer"] += 1

    def end(self) -> None:
        """Asks no more."""
        self._ending.set()
        self.join()
