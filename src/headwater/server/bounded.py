"""Files that the service writes for somebody: no larger than they may be."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

from headwater.server.failures import Refused

if TYPE_CHECKING:
    from pathlib import Path

    from _typeshed import ReadableBuffer


def bounded(path: Path, most: int) -> io.BufferedWriter:
    """A new file that takes no more than so many bytes; more is refused."""
    return io.BufferedWriter(_Bounded(path, most))


class _Bounded(io.FileIO):
    def __init__(self, path: Path, most: int) -> None:
        super().__init__(path, "wb")
        self._most = most

    def write(self, data: ReadableBuffer, /) -> int:
        """Write, or say that it is too much."""
        if self.tell() + len(memoryview(data)) > self._most:
            # Closing it writes what is still in memory.
            size, self._most = self._most >> 20, sys.maxsize
            text = f"the file would have more than {size} MiB; export fewer results"
            raise Refused(413, text, "TooLarge")
        return super().write(data)
