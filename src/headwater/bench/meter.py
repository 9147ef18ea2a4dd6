"""What a piece of work costs: seconds, CPU seconds and peak memory, of Python and of Spark's JVM.

CPU is counted for both processes and all their descendants. Peak memory is the sum of both
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
_LOOK_EVERY = 0.05  # seconds between two looks at the memory where there is no high-water mark

# /proc/<pid>/stat, counted from behind the command's name: its parent, and the ticks of itself and
# of its ended children, as user and as system.
_PARENT = 1
_SPENT = slice(11, 15)


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
        with _Watch(unmarked) as watch:
            cpu = cpu_seconds(self.pids)
            begin = time.perf_counter()
            yield reading
            seconds = time.perf_counter() - begin
            cpu = cpu_seconds(self.pids) - cpu
        memory = sum(_status(pid, "VmHWM") for pid in marked) + watch.peak
        reading.usage = Usage(seconds, cpu, memory)

    def _collect_garbage(self) -> None:
        if self._spark is not None and self._spark._jvm is not None:
            self._spark._jvm.java.lang.System.gc()


def cpu_seconds(pids: list[int]) -> float:
    """CPU seconds so far of these processes and all their descendants, ended ones included."""
    parents: dict[int, int] = {}
    spent: dict[int, int] = {}
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # ended meanwhile
        pid = int(entry.name)
        parents[pid] = int(fields[_PARENT])
        spent[pid] = sum(map(int, fields[_SPENT]))
    return sum(ticks for pid, ticks in spent.items() if _below(pid, pids, parents)) / _TICKS


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


def _status(pid: int, name: str) -> int:
    """A size of /proc/<pid>/status, in bytes; 0 once the process has ended."""
    try:
        lines = (_PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:")), 0)


class _Watch:
    """Looks at processes' memory from a thread, and keeps the highest sum."""

    def __init__(self, pids: list[int]) -> None:
        self.peak = 0
        self._pids = pids
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="headwater-meter", daemon=True)

    def __enter__(self) -> _Watch:
        if self._pids:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._pids:
            self._thread.join()

    def _look(self) -> None:
        while True:
            self.peak = max(self.peak, sum(_status(pid, "VmRSS") for pid in self._pids))
            if self._over.wait(_LOOK_EVERY):
                return
