"""Damaged files: bytes flipped, cut off or gone, in the store, a checkpoint or a stream.

A file is damaged while nothing runs, after a copy of everything was taken. The service then
refuses in one line that says what to do, or fails the flow concerned in such a line, or goes on as
it does not need what is damaged. It must not answer with a stack of calls. Afterwards the copy is
put back.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headwater.deploy.records import DeploymentFiles

DAMAGES = ("flip", "cut", "empty")
KEPT = ("flows", "streams")


@dataclass(frozen=True, slots=True)
class Damage:
    """What was done to a file."""

    file: Path
    how: str

    def __str__(self) -> str:
        return f"{self.how} {self.file.name}"


def targets(home: Path, what: str) -> list[Path]:
    """The files of a kind that a service reads when it starts, or soon after."""
    if what == "store":
        found: Iterator[Path] = (home / "flows" / "store").rglob("*")
    elif what == "stream":
        found = (file for file in (home / "streams").rglob("*"))
    else:
        found = (
            file
            for deployed in (home / "flows").glob("*/deployment.json")
            for unit in DeploymentFiles(deployed.parent).units()
            if not unit.ended
            for file in _newest(deployed.parent / "units" / unit.id / "checkpoint")
        )
    return sorted(f for f in found if f.is_file() and f.stat().st_size and _is_ours(f))


def _newest(checkpoint: Path) -> Iterator[Path]:
    """Of each folder of a checkpoint the files that were written last."""
    for folder in (checkpoint, *(each for each in checkpoint.rglob("*") if each.is_dir())):
        files = [f for f in folder.iterdir() if f.is_file()]
        yield from sorted(files, key=lambda f: f.stat().st_mtime)[-2:]


def _is_ours(file: Path) -> bool:
    """Locks and checksums of Spark's are not what a person would have to put back."""
    return not file.name.endswith((".crc", ".lock")) and file.name not in (".token", "_lock")


def damage(file: Path, how: str, chance: random.Random) -> Damage:
    """Damage a file; the copies that are links to it keep what they are."""
    data = bytearray(file.read_bytes())
    if how == "flip":
        for _ in range(16):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif how == "cut":
        del data[len(data) // 2 :]
    else:
        data.clear()
    times = file.stat()
    file.unlink()
    file.write_bytes(data)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    return Damage(file, how)


def keep(home: Path, copy: Path) -> None:
    """Copy all that the service knows, links between files as links."""
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    subprocess.run(["cp", "-a", *(str(home / name) for name in KEPT), str(copy)], check=True)


def put_back(home: Path, copy: Path) -> None:
    """Have all as it was when the copy was taken."""
    for name in KEPT:
        shutil.rmtree(home / name)
    subprocess.run(["cp", "-a", *(str(copy / name) for name in KEPT), str(home)], check=True)


def unclear(message: str) -> str | None:
    """Why a message is not one clear line, if it is not."""
    if "Traceback (most recent call last)" in message:
        return "a stack of calls instead of a line"
    lines = [line for line in message.splitlines() if line.strip()]
    if not lines:
        return "no message"
    if not re.search(r"[;:,] [^;]*\b(put|restore|give|use|start|make|remove|run|free)\b", message):
        return "it does not say what to do"
    return None
