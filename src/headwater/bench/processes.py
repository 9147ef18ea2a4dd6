"""Memory and CPU of a process with all below it: of Spark's driver, its JVM and its workers."""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.bench.meter import spent, status

if TYPE_CHECKING:
    from collections.abc import Sequence

ALL = "all"
"""The sum of all processes, beside `driver`, `JVM` and `workers`."""

_LOOK_EVERY = 0.5  # seconds between two looks


def total_cpu(pid: int) -> float:
    """Seconds of CPU of a process and all below it, those that have ended included.

    A process that has ended is counted by the one that waited for it, so that two looks are enough
    and nothing has to watch meanwhile.
    """
    ticks = 0
    for below, _ in spent([pid]):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{below}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Peaks:
    """The highest memory of a driver, its JVM and all their descendants, looked at in a thread."""

    pids: Sequence[int]
    """The driver's and the JVM's."""
    highest: dict[str, int] = field(default_factory=dict)
    _recent: dict[str, int] = field(default_factory=dict)
    _over: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _thread: threading.Thread | None = None

    def since(self) -> dict[str, int]:
        """The highest since the last time this was asked."""
        self._look()
        with self._lock:
            recent, self._recent = self._recent, {}
        return recent

    def __enter__(self) -> Peaks:
        self._thread = threading.Thread(target=self._watch, name="headwater-peaks", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        assert self._thread is not None
        self._thread.join()

    def _watch(self) -> None:
        while True:
            self._look()
            if self._over.wait(_LOOK_EVERY):
                return

    def _look(self) -> None:
        driver, *jvm = self.pids
        now = {"driver": held(driver), "JVM": sum(map(held, jvm))}
        others = {pid for pid, _ in spent(list(self.pids))} - {*self.pids}
        now["workers"] = sum(map(held, others))
        now[ALL] = sum(now.values())
        with self._lock:
            for peaks in (self.highest, self._recent):
                peaks |= {who: max(size, peaks.get(who, 0)) for who, size in now.items()}


def held(pid: int) -> int:
    """Bytes of memory of a process, its share of pages that others have too; 0 once it ended."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return next((int(line.split()[1]) << 10 for line in file if line[:4] == "Pss:"), 0)
    except OSError:
        return status(pid, "VmRSS")
