"""Which files a micro-batch read, from the log that Spark keeps of each file source.

While a batch runs, the logs have exactly the files of all batches up to it: Spark plans the next
one only afterwards. So what a log has beyond what the store knows came with this batch.
"""

from __future__ import annotations

import fnmatch
import json
import os
from typing import TYPE_CHECKING, NamedTuple

from headwater.store.files import local

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


class Arrival(NamedTuple):
    """A file as Spark read it: its address, and its time in milliseconds."""

    path: str
    modified: int


class Arrivals:
    """The files of a query's sources, as they come."""

    def __init__(
        self, checkpoint: Path, roots: Mapping[str, str], known: Mapping[str, Iterable[str]]
    ) -> None:
        self._logs = checkpoint / "sources"
        self._roots = {name: local(path) for name, path in roots.items()}
        self._known = {name: set(known.get(name, ())) for name in roots}
        self._read: dict[Path, int] = {}

    def new(self) -> dict[str, list[Arrival]]:
        """The files that came since the last call, by source."""
        found: dict[str, list[Arrival]] = {name: [] for name in self._roots}
        for arrival in self._logged():
            path = local(arrival.path)
            for name, root in self._roots.items():
                if _below(path, root) and arrival.path not in self._known[name]:
                    self._known[name].add(arrival.path)
                    found[name].append(arrival)
        return found

    def _logged(self) -> list[Arrival]:
        if not self._roots or not self._logs.exists():
            return []
        return [a for log in sorted(self._logs.iterdir()) if log.is_dir() for a in self._of(log)]

    def _of(self, log: Path) -> list[Arrival]:
        """The entries of a log that were not read yet; a compacted one repeats those before it."""
        numbers = {
            int(name.removesuffix(".compact")): name
            for name in sorted(os.listdir(log))
            if name.removesuffix(".compact").isdigit()
        }
        last = self._read.get(log, -1)
        found = []
        for number in sorted(n for n in numbers if n > last):
            for line in (log / numbers[number]).read_text().splitlines()[1:]:
                entry = json.loads(line)
                if int(entry["batchId"]) > last:
                    found.append(Arrival(entry["path"], int(entry["timestamp"])))
        self._read[log] = max((last, *numbers))
        return list(dict.fromkeys(found))


def _below(path: str, root: str) -> bool:
    """Whether a file is one of a source's: in its folder, or matched by its pattern."""
    root = root.rstrip("/")
    if path == root or path.startswith(root + "/"):
        return True
    parts = path.split("/")
    wanted = root.split("/")
    return len(parts) >= len(wanted) and all(
        fnmatch.fnmatch(part, pattern) for part, pattern in zip(parts, wanted, strict=False)
    )
