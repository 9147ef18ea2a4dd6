"""A small disk for a soak, so that it can be filled without filling the machine's."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

SIZE = "1g"


@contextlib.contextmanager
def small_disk(folder: Path, size: str = SIZE) -> Iterator[str | None]:
    """A disk of this size at a folder, in memory; why there is none, if it can't be mounted."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "headwater-soak", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        why = done.stderr.strip() if done.returncode else None
    except OSError as error:
        why = str(error)
    if why is not None:
        yield " ".join(why.split()) or "mount failed"
        return
    try:
        yield None
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)


def fill(folder: Path, leave: int = 0) -> Path:
    """Fill a disk up to so many bytes; the file that fills it."""
    ballast = folder / "ballast"
    left = free(folder) - leave
    with ballast.open("wb", buffering=0) as out:
        with contextlib.suppress(OSError):  # full before that: others write, too
            os.posix_fallocate(out.fileno(), 0, max(left, 1))
        if not leave:
            out.seek(0, os.SEEK_END)
            with contextlib.suppress(OSError):
                while True:
                    out.write(b"\0" * 4096)
    return ballast


def free(folder: Path) -> int:
    """Bytes that are left on a folder's disk."""
    told = os.statvfs(folder)
    return told.f_bavail * told.f_frsize
