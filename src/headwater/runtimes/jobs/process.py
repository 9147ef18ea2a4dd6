"""A command at work: in a folder and a process group of its own, found again after a crash.

The command runs under a small script of the shell's that leaves its exit code behind, and both hold
a lock on a file, which they inherit. So whoever looks, this process or the next, knows: there is an
exit code, and it has ended; or the lock is held, and it runs; or neither, and it was killed.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_SCRIPT = """
echo $$ > "$2/pid"
( eval "$1" )
code=$?
echo $code > "$2/exit.part" && mv "$2/exit.part" "$2/exit"
"""

EVENT, PARAMETERS, OUTPUT = "event.json", "parameters.json", "output.jsonl"
STDOUT, STDERR, WORK = "stdout", "stderr", "work"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a try ended."""

    code: int | None
    """The exit code, below 0 for a signal; None if it left none behind."""
    compute: float
    """Seconds that it worked."""


def start(folder: Path, command: str, environment: Mapping[str, str]) -> Process:
    """Start a command whose files are in a folder already."""
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with (
            (folder / EVENT).open("rb") as given,
            (folder / STDOUT).open("wb") as out,
            (folder / STDERR).open("wb") as told,
        ):
            child = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, "headwater-job", command, str(folder)],
                cwd=folder / WORK,
                env=dict(environment),
                stdin=given,
                stdout=out,
                stderr=told,
                start_new_session=True,
                pass_fds=[lock],
            )
    finally:
        os.close(lock)  # the child has it too, and keeps the lock
    return Process(folder, child)


class Process:
    """A command that was started here, or was found running."""

    def __init__(self, folder: Path, child: subprocess.Popen[bytes] | None = None) -> None:
        self.folder = folder
        self._child = child
        self._asked: float | None = None

    @property
    def there(self) -> bool:
        """Whether it runs, or has ended by itself."""
        return (self.folder / "exit").exists() or self._held()

    def ended(self) -> Ended | None:
        """How it ended; None while it runs."""
        code = self._code()
        if code is None and self._runs():
            return None
        if code is None:
            code = self._code()  # it may have ended between the two looks
        self._signal(signal.SIGKILL)  # what it started and left behind goes with it
        if self._child is not None:
            left = self._child.wait()
            code = left if code is None and left < 0 else code
        return Ended(code, self._worked())

    def kill(self, grace: float) -> None:
        """Ask it to end, and all that it started; after some seconds, end them."""
        now = time.monotonic()
        if self._asked is None:
            self._asked = now
            self._signal(signal.SIGTERM)
        elif now - self._asked >= grace:
            self._signal(signal.SIGKILL)

    def leave(self) -> None:
        """Let it run; it is only taken away when it has ended, if this process is still there."""
        if self._child is not None:
            threading.Thread(target=self._child.wait, daemon=True).start()

    def _runs(self) -> bool:
        if self._child is None:
            return self._held()
        if self._child.returncode is not None:
            return False
        # Looked at without taking it away: its number is not given to another until then.
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._child.pid, flags) is None

    def _held(self) -> bool:
        try:
            lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
        return False

    def _code(self) -> int | None:
        try:
            return int((self.folder / "exit").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def _signal(self, number: signal.Signals) -> None:
        group = self._group()
        if group is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)

    def _group(self) -> int | None:
        """The process group; none where it may be another's by now."""
        if self._child is not None:
            return self._child.pid if self._child.returncode is None else None
        if not self._held():
            return None
        try:
            return int((self.folder / "pid").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def _worked(self) -> float:
        """By the times of the files that it wrote as it began and ended."""
        try:
            began = (self.folder / "pid").stat().st_mtime
        except FileNotFoundError:
            return 0.0
        with suppress(FileNotFoundError):
            return max(0.0, (self.folder / "exit").stat().st_mtime - began)
        return max(0.0, time.time() - began)
