"""What a piece of work costs: seconds, CPU seconds and peak memory, of Python and of Spark's JVM.

CPU is counted for both processes and all their descendants, looked at again and again: a worker of
Spark's that ends takes its own count with it. Peak memory is the sum of both
processes' high-water marks, which the kernel sets back where it permits, else of what they held
when looked at. A JVM keeps what it once took, so it collects its garbage before each measurement.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_LOOK_EVERY = 0.1  # seconds between two looks

# /proc/<pid>/stat, counted from behind the command's name: its parent, the ticks that it spent
# itself, as user and as system, and when it began.
_PARENT = 1
_SPENT = slice(11, 13)
_BEGAN = 19


@dataclass(frozen=True, slots=True)
class Usage:
    """Seconds on the clock, seconds of CPU, and the peak of memory in bytes."""

    seconds: float
    cpu: float
    memory: int

    def __add__(self, other: Usage) -> Usage:
        """One after the other."""
        return Usage(
            self.seconds + other.seconds, self.cpu + other.cpu, max(self.memory, other.memory)
        )


class Reading:
    """A measurement under way; its `usage` is there when it is over."""

    usage: Usage


class Meter:
    """Measures blocks of code in this process and, with a session, in its JVM."""

    def __init__(self, spark: SparkSession | None = None) -> None:
        self._spark = spark
        self.pids = [os.getpid()]
        if spark is not None and spark._jvm is not None:
            self.pids.append(int(spark._jvm.java.lang.ProcessHandle.current().pid()))

    @contextmanager
    def measure(self) -> Iterator[Reading]:
        """Measures what happens inside the `with`."""
        self._collect_garbage()
        reading = Reading()
        marked = [pid for pid in self.pids if _reset_peak(pid)]
        unmarked = [pid for pid in self.pids if pid not in marked]
        with _Watch(self.pids, unmarked) as watch:
            begin = time.perf_counter()
            yield reading
            seconds = time.perf_counter() - begin
        memory = sum(status(pid, "VmHWM") for pid in marked) + watch.peak
        reading.usage = Usage(seconds, watch.cpu, memory)

    def _collect_garbage(self) -> None:
        if self._spark is not None and self._spark._jvm is not None:
            self._spark._jvm.java.lang.System.gc()


Spent = dict[tuple[int, int], int]
"""Ticks of CPU by process: its number and when it began, since numbers are used again."""


def spent(pids: list[int]) -> Spent:
    """What these processes and all their descendants have spent so far, each by itself."""
    parents: dict[int, int] = {}
    own: dict[int, tuple[int, int]] = {}
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # ended meanwhile
        pid = int(entry.name)
        parents[pid] = int(fields[_PARENT])
        own[pid] = int(fields[_BEGAN]), sum(map(int, fields[_SPENT]))
    return {
        (pid, began): ticks for pid, (began, ticks) in own.items() if _below(pid, pids, parents)
    }


def _below(pid: int, tops: list[int], parents: dict[int, int]) -> bool:
    while pid not in tops and pid in parents:
        pid = parents[pid]
    return pid in tops


def _reset_peak(pid: int) -> bool:
    """Sets a process's high-water mark back to what it holds now, where that is permitted."""
    try:
        (_PROC / str(pid) / "clear_refs").write_text("5")
    except OSError:
        return False
    return True


def status(pid: int, name: str) -> int:
    """A size of /proc/<pid>/status, in bytes; 0 once the process has ended."""
    try:
        lines = (_PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:")), 0)


class _Watch:
    """Looks at processes from a thread: what they spend, and the highest sum of their memory."""

    def __init__(self, pids: list[int], unmarked: list[int]) -> None:
        self.peak = 0
        self._pids = pids
        self._unmarked = unmarked
        self._before: Spent = {}
        self._latest: Spent = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="headwater-meter", daemon=True)

    @property
    def cpu(self) -> float:
        """CPU seconds since the watch began, those of ended processes as last seen."""
        ticks = sum(now - self._before.get(who, 0) for who, now in self._latest.items())
        return ticks / _TICKS

    def __enter__(self) -> _Watch:
        self._before = spent(self._pids)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while True:
            over = self._over.wait(_LOOK_EVERY)
            self._latest |= spent(self._pids)
            self.peak = max(self.peak, sum(status(pid, "VmRSS") for pid in self._unmarked))
            if over:
                return
