"""How far into its streams a query is, by what Spark has written into its checkpoint."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

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
        try:
            lines = (self._checkpoint / "offsets" / str(batch)).read_text().splitlines()[2:]
        except FileNotFoundError:
            return {}
        found = {}
        for source, line in enumerate(lines):
            if line in ("-", ""):
                continue
            number = int(json.loads(line)["logOffset"])
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
            for line in (folder / numbers[number]).read_text().splitlines()[1:]:
                entry = json.loads(line)
                at, path = int(entry["batchId"]), str(entry["path"])
                if at > last:
                    known[at] = max(known.get(at, ""), path)
        self._read[source] = max((last, *numbers))
        for old in sorted(known)[:-1_000]:
            del known[old]
