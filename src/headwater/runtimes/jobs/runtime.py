"""`JobRuntime`: runs what is ready in a queue, slot by slot, and tells what came of it."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headwater.errors import RunError
from headwater.runtimes.jobs.events import encoded
from headwater.runtimes.jobs.inside import Thread
from headwater.runtimes.jobs.locking import hold
from headwater.runtimes.jobs.preparing import launch, results, said
from headwater.runtimes.jobs.process import Process
from headwater.runtimes.jobs.states import OVER
from headwater.runtimes.jobs.telling import Teller

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.runtimes.jobs.ledger import Task
    from headwater.runtimes.jobs.process import Ended
    from headwater.runtimes.jobs.queue import JobQueue
    from headwater.runtimes.jobs.telling import Failed, Finished, Line

_SAMPLE = 1.0
"""Seconds between two samples of the queue's length."""
_BREATH = 0.2
"""Seconds between two looks when nothing runs: another process may have enqueued."""


@dataclass(slots=True)
class _Running:
    task: Task
    work: Process | Thread
    timed_out: bool = False


class JobRuntime:
    """Runs the executions of one queue; of a queue there is one at a time.

    `on_finished(execution, outputs)` and `on_failed(execution)` are called at least once for each
    execution that is over: publish under `execution.name`, and it is exactly once. Before that,
    `on_provenance(line)` gets the lines that `headwater.prov.emit` would write.
    """

    def __init__(
        self,
        queue: JobQueue,
        *,
        on_finished: Finished | None = None,
        on_failed: Failed | None = None,
        on_provenance: Line | None = None,
        session: Callable[[], Any] | None = None,
        poll: float = 0.05,
        grace: float = 5.0,
        keep_work: bool = False,
    ) -> None:
        """`session` gives a Spark session for Spark steps to run here, instead of one each.

        `poll` is how often running steps are looked at, `grace` how long one that is to end has for
        it, both in seconds; with `keep_work` the folders of finished steps stay.
        """
        self.queue = queue
        self._session, self._poll, self._grace, self._keep = session, poll, grace, keep_work
        self._teller = Teller(queue, on_finished, on_failed, on_provenance)
        self._running: list[_Running] = []
        self._work = queue.folder / "work"
        self._boot = _boot()
        self._held: int | None = None
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._ending = threading.Event()
        self._last = 0.0
        self.trouble: str | None = None
        """What went wrong with the runtime itself last, or with a callback."""

    # --- from outside -------------------------------------------------------------------------

    def start(self) -> JobRuntime:
        """Begin; steps that ran when a runtime ended are found again, or begun again."""
        if self._thread is not None:
            raise RunError(f"the runtime of {self.queue.folder} has started already")
        self._held = hold(self.queue.folder / "runtime.lock")
        self._ending.clear()
        self._work.mkdir(exist_ok=True)
        self._recover()
        self._teller.start()
        self._thread = threading.Thread(target=self._loop, name="headwater-jobs", daemon=True)
        self._thread.start()
        return self

    def stop(self, running: Literal["finish", "leave", "kill"] = "finish") -> None:
        """End: when what runs has finished; at once, and the next runtime finds it; or killed."""
        if self._thread is None:
            return
        self._ending.set()
        self._wake.set()
        self._thread.join()
        while self._running and running != "leave":
            for each in self._running if running == "kill" else ():
                each.work.kill(0.0)
            if not self._collect(cut_off=running == "kill"):
                time.sleep(self._poll)
        for each in self._running:
            each.work.leave()
        self._running.clear()
        self._teller.stop()
        self._sample()
        self._thread = None
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def pause(self) -> None:
        """Start nothing more; what runs goes on to its end."""
        self.queue.pause()

    def resume(self) -> None:
        """Go on."""
        self.queue.resume()
        self._wake.set()

    def wake(self) -> None:
        """Look at once: something was enqueued."""
        self._wake.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until every execution is over and told; false if that took too long."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            counts = self.queue.counts()
            if not any(n for state, n in counts.items() if state not in OVER) and self._teller.idle:
                return True
            if until is not None and time.monotonic() > until:
                return False
            time.sleep(self._poll)

    @property
    def running(self) -> int:
        """Steps that run at this moment."""
        return len(self._running)

    def __enter__(self) -> JobRuntime:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    # --- the loop -----------------------------------------------------------------------------

    def _loop(self) -> None:
        while not self._ending.is_set():
            try:
                done = self._collect()
                begun, due = self._begin()
                self._sample()
                self.trouble = self._teller.trouble
            except Exception as error:  # noqa: BLE001 - a full disk must not end it for good
                self.trouble = f"{type(error).__name__}: {error}"
                done, begun, due = False, False, None
                self._ending.wait(1.0)
            if done:
                self._teller.wake()
            elif not begun:
                breath = self._poll if self._running else _BREATH
                left = breath if due is None else max(0.0, min(breath, due - time.time()))
                self._wake.wait(left)
                self._wake.clear()

    def _begin(self) -> tuple[bool, float | None]:
        """Start what is ready while there are slots; whether anything, and when a retry is due."""
        ledger = self.queue.ledger
        due = ledger.due(time.time())
        begun = False
        slots = self.queue.job.slots
        while len(self._running) < slots and not self.queue.paused and not self._ending.is_set():
            task = ledger.take(self._boot)
            if task is None:
                break
            self._launch(task)
            begun = True
        return begun, due

    def _launch(self, task: Task) -> None:
        former = f"{task.number}-{task.step.name}-{task.attempt - 1}"
        shutil.rmtree(self._work / former, ignore_errors=True)
        try:
            if task.step.spark is not None and self._session is not None:
                self._running.append(_Running(task, Thread(task, self._session)))
            else:
                work = launch(task, self._work / task.folder)
                self._running.append(_Running(task, work))
        except OSError as error:
            self.queue.ledger.fail(task, f"can't be started: {error}", "")

    def _collect(self, *, cut_off: bool = False) -> bool:
        """Write down what has ended; whether anything has."""
        ended = []
        for each in self._running:
            how = each.work.ended()
            if how is not None:
                self._over(each, how, cut_off)
                ended.append(each)
            elif (limit := each.task.job.timeout) and time.time() - each.task.started > limit:
                each.timed_out = True
                each.work.kill(self._grace)
        for each in ended:
            self._running.remove(each)
        return bool(ended)

    def _over(self, each: _Running, how: Ended, cut_off: bool) -> None:
        task, ledger, folder = each.task, self.queue.ledger, self._work / each.task.folder
        framework = max(0.0, time.time() - task.started - how.compute)
        if cut_off and how.code != 0:
            ledger.interrupt(task)
            return
        try:
            if each.timed_out:
                raise RunError(f"did not end within {task.job.timeout:g} s and was killed")
            rows = self._made(each, how, folder)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with its output
            told = "" if isinstance(each.work, Thread) else said(folder)
            reason = f"step {task.step.name}: {error}"
            ledger.fail(task, reason, told, how.compute, framework)
            return
        ledger.finish(task, rows, how.compute, framework)
        if not self._keep:
            shutil.rmtree(folder, ignore_errors=True)

    def _made(self, each: _Running, how: Ended, folder: Path) -> list[Any]:
        if isinstance(each.work, Thread):
            if each.work.error is not None:
                raise RunError(f"{type(each.work.error).__name__}: {each.work.error}")
            return list(json.loads(encoded(each.work.rows)))
        if how.code != 0:
            lines = said(folder).splitlines()
            last = f": {lines[-1]}" if lines else ""
            raise RunError(f"{_code(how.code)}{last}")
        return results(each.task, folder)

    def _recover(self) -> None:
        """What was running when a runtime ended: still there, ended meanwhile, or gone."""
        for task in self.queue.ledger.running():
            found = Process(self._work / task.folder)
            if task.boot == self._boot and found.there:
                self._running.append(_Running(task, found))
            else:
                self.queue.ledger.interrupt(task)

    def _sample(self) -> None:
        if time.monotonic() - self._last >= _SAMPLE or self._ending.is_set():
            self._last = time.monotonic()
            self.queue.sample()


def _code(code: int | None) -> str:
    if code is None:
        return "ended without an exit code"
    return f"exit code {code}" if code >= 0 else f"killed by signal {-code}"


def _boot() -> str:
    """This start of the machine: what a process left behind before a crash of it may be cut off."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""
