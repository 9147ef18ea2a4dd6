"""The clock of a process that can be set without setting the machine's (`clock.c`)."""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("clock.c")
_NUMBER = struct.Struct("=q")


class Clock:
    """By how many seconds the time of some processes is off; `why_not` says why it can't be."""

    def __init__(self, folder: Path) -> None:
        self._file, library = folder / "clock", folder / "clock.so"
        self._file.write_bytes(_NUMBER.pack(0))
        self.why_not: str | None = None
        self.environment: dict[str, str] = {}
        """What a process has to be started with."""
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None:
            self.why_not = "there is no C compiler for tests/soak/clock.c"
            return
        command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE), "-ldl"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            self.why_not = f"tests/soak/clock.c does not compile: {done.stderr.strip()[:200]}"
            return
        self.environment = {"LD_PRELOAD": str(library), "HEADWATER_CLOCK": str(self._file)}

    def jump(self, seconds: int) -> None:
        """Have the clock be off by this much from now on."""
        with self._file.open("r+b") as file, mmap.mmap(file.fileno(), _NUMBER.size) as there:
            there[:] = _NUMBER.pack(seconds)
