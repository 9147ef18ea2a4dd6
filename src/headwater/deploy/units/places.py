"""How far into its streams a query is, by what Spark has written into its checkpoint."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from headwater.capture.checkpoint import UNREADABLE, damaged

if TYPE_CHECKING:
    from pathlib import Path


class Places:
    """The last file of each stream that each batch of a query has read."""

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint
        self._last: dict[int, dict[int, str]] = {}
        """By source and its own number of a batch, the last file."""
        self._read: dict[int, int] = {}

    def after(self, batch: int) -> dict[str, str]:
        """The last file of each stream, by the stream's name, that is in a batch or before it."""
        offsets = self._checkpoint / "offsets" / str(batch)
        try:
            _version, _watermark, *lines = offsets.read_text().splitlines()
            numbers = {
                source: int(json.loads(line)["logOffset"])
                for source, line in enumerate(lines)
                if line not in ("-", "")
            }
        except FileNotFoundError:
            return {}
        except UNREADABLE as error:
            raise damaged(offsets) from error
        found = {}
        for source, number in numbers.items():
            file = self._file(source, number)
            if file is not None:
                # …/inputs/<stream>/<number>.parquet
                stream, name = file.split("/")[-2:]
                found[stream] = name
        return found

    def _file(self, source: int, number: int) -> str | None:
        known = self._last.setdefault(source, {})
        if number not in known:
            self._take(source)
        # A batch without a file of this source leaves the number as it was.
        return known.get(number) or next(
            (known[n] for n in sorted(known, reverse=True) if n <= number), None
        )

    def _take(self, source: int) -> None:
        folder = self._checkpoint / "sources" / str(source)
        known, last = self._last[source], self._read.get(source, -1)
        names = os.listdir(folder) if folder.is_dir() else []
        numbers = {int(n.removesuffix(".compact")): n for n in sorted(names) if n[0].isdigit()}
        for number in sorted(n for n in numbers if n > last):
            for at, path in _entries(folder / numbers[number]):
                if at > last:
                    known[at] = max(known.get(at, ""), path)
        self._read[source] = max((last, *numbers))
        for old in sorted(known)[:-1_000]:
            del known[old]


def _entries(log: Path) -> list[tuple[int, str]]:
    """The files that a source's log has, each with the source's own number of a batch."""
    try:
        _version, *lines = log.read_text().splitlines()
        entries = [json.loads(line) for line in lines]
        return [(int(entry["batchId"]), str(entry["path"])) for entry in entries]
    except UNREADABLE as error:
        raise damaged(log) from error
