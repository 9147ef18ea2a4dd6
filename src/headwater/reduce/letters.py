"""Dead letters: rejected elements with the reason, in a folder of their own.

A batch has one file, named by its number and written before the store's commit: a batch that runs
again writes the same file anew, so that no letter is lost or doubled.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_NUMBER = re.compile(r"\d[\d,.]*")


class Letters:
    """The dead letters of one job."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(os.path.abspath(folder))

    def require_writable(self) -> None:
        """Refuse a folder that can't be written before anything runs."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(
                f"dead letters can't be written to {self.folder} ({error.strerror}); choose "
                "another folder"
            ) from error

    def write(self, batch: int, tables: Iterable[pa.Table]) -> None:
        """Write the letters of a batch; without any, no file is left of it."""
        rows = (row for table in tables for row in table.to_pylist())
        self._write(f"batch-{batch:08d}", rows)

    def write_cycles(self, name: str, job: str, cycles: Sequence[Sequence[str]]) -> None:
        """Write the vertices that depend on themselves, to a file of this name."""
        reason = "a cycle: these depend on each other; their dependencies stand"
        rows = ({"reason": reason, "where": f"job {job!r}", "vertices": list(c)} for c in cycles)
        self._write(name, rows)

    def _write(self, name: str, rows: Iterable[object]) -> None:
        file, temporary = self.folder / f"{name}.jsonl", self.folder / f".{name}.tmp"
        wrote = False
        try:
            with temporary.open("w", encoding="utf-8") as out:
                for row in rows:
                    out.write(json.dumps(row, ensure_ascii=False))
                    out.write("\n")
                    wrote = True
                out.flush()
                os.fsync(out.fileno())
            if wrote:
                temporary.replace(file)
            else:
                temporary.unlink()
                file.unlink(missing_ok=True)
        except OSError as error:
            raise RunError(
                f"dead letters can't be written to {self.folder} ({error.strerror}); the batch "
                "runs again at the next start"
            ) from error


def by_reason(reasons: Mapping[str, int]) -> dict[str, int]:
    """How many letters have each reason, whatever names and numbers it has in it.

    >>> by_reason({"type 'x' is unknown": 1, "type 'y' is unknown": 1, "`entity` is empty": 1})
    {"type '…' is unknown": 2, '`entity` is empty': 1}
    """
    counts: Counter[str] = Counter()
    for reason, count in reasons.items():
        counts[_NUMBER.sub("…", _QUOTED.sub("'…'", reason))] += count
    return dict(counts.most_common())
