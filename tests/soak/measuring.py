"""What a soak used at most: memory, threads and open files of the service, and its disk."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

from tests.soak.world import World

EVERY = 2.0


class Measuring(threading.Thread):
    """Looks at the service every other second."""

    def __init__(self, world: World) -> None:
        super().__init__(daemon=True, name="measuring")
        self._world, self._ending = world, threading.Event()
        self.most: dict[str, float] = {}

    def run(self) -> None:
        """Measures until it is told to end."""
        while not self._ending.wait(EVERY):
            for name, pid in (("service", self._world.served.pid), ("JVM", self._world.jvm())):
                with contextlib.suppress(OSError):
                    if pid is not None:
                        self._note(f"memory of the {name}, MiB", _status(pid, "VmRSS") / 1024)
                        self._note(f"threads of the {name}", _status(pid, "Threads"))
                        files = len(os.listdir(f"/proc/{pid}/fd"))
                        self._note(f"open files of the {name}", files)
            with contextlib.suppress(OSError):
                self._note("disk, MiB", _used(self._world.home) / (1 << 20))

    def _note(self, name: str, value: float) -> None:
        self.most[name] = max(self.most.get(name, 0.0), value)

    def end(self) -> None:
        """Measures no more."""
        self._ending.set()
        self.join()


def _status(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return 0


def _used(folder: Path) -> int:
    """Bytes in files below a folder, of a file with several names once; not what fills the disk."""
    seen: dict[tuple[int, int], int] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            if name == "ballast":
                continue
            with contextlib.suppress(OSError):
                told = os.lstat(os.path.join(place, name))
                seen[told.st_dev, told.st_ino] = told.st_blocks * 512
    return sum(seen.values())
