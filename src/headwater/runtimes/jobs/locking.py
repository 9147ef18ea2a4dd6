"""One runtime for a queue: a lock that ends with its process."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

from headwater.errors import RunError

if TYPE_CHECKING:
    from pathlib import Path


def hold(path: Path) -> int:
    """Take the lock and write down who has it; refuse if another has."""
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.read(number, 32).decode().strip() or "unknown"
        os.close(number)
        raise RunError(
            f"{path.parent} has a runtime already, process {owner}; stop it first, or use another "
            "folder"
        ) from None
    os.ftruncate(number, 0)
    os.write(number, f"{os.getpid()}\n".encode())
    return number
