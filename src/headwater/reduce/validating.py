"""Validating: what a job would have its provenance read as, before anything is reduced.

>>> import tempfile
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as folder:
...     file = Path(folder, "part-0.jsonl")
...     _ = file.write_text(
...         '{"type": "used", "activity": "m1", "entity": "in-7"}\\n{"type": "usd"}\\n'
...     )
...     report = validate(folder)
>>> report.edges, report.rejected, report.first[0].line, report.first[0].reason
({'used': 1}, 1, 2, "type 'usd' is unknown")
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.errors import HeadwaterError
from headwater.reduce.documents import holds_document, parse_document
from headwater.reduce.parsing import Parsed, parse

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

_BLOCK = 16 << 20


@dataclass(frozen=True, slots=True)
class Place:
    """A rejected element: where it is, its text, cut, and why."""

    file: str
    line: int
    """Counted from 1."""
    text: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


@dataclass(slots=True)
class Report:
    """What files hold."""

    files: int = 0
    documents: int = 0
    """Files that are one PROV-JSON document each; the others have an element in each line."""
    bytes: int = 0
    edges: dict[str, int] = field(default_factory=dict)
    """By type."""
    filtered: dict[str, int] = field(default_factory=dict)
    """Elements of which no edge is made, by type."""
    ends: list[str] = field(default_factory=list)
    """Jobs whose end is told."""
    rejected: int = 0
    first: list[Place] = field(default_factory=list)
    """The first of the rejected."""

    @property
    def valid(self) -> bool:
        """Whether nothing was rejected."""
        return self.rejected == 0


def validate(path: str | os.PathLike[str], job: str | None = None, *, show: int = 20) -> Report:
    """Reads a file, or all files in a folder, and reports what is in them.

    With a `job`, elements of another are rejected. The first `show` of the rejected are told with
    their places, all are counted. A file of lines is read a block at a time, a document whole.
    """
    report = Report()
    for file in _files(Path(path)):
        report.files += 1
        report.bytes += file.stat().st_size
        if holds_document(file):
            report.documents += 1
            _add(report, file, 0, parse_document(file.read_bytes(), job), show)
            continue
        for first, block in _blocks(file):
            _add(report, file, first, parse(block, job), show)
    return report


def _files(path: Path) -> list[Path]:
    """The files that Spark would read: none whose name or folder begins with `.` or `_`."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise HeadwaterError(f"there is no file or folder {path}")
    found = sorted(
        file
        for file in path.rglob("*")
        if file.is_file() and not any(p[0] in "._" for p in file.relative_to(path).parts)
    )
    if not found:
        raise HeadwaterError(f"{path} has no files to validate")
    return found


def _blocks(file: Path) -> Iterator[tuple[int, bytes]]:
    """Whole lines of a file, about as many as fit a block, with the number of the first."""
    first, rest = 0, b""
    with file.open("rb") as opened:
        while block := opened.read(_BLOCK):
            end = block.rfind(b"\n") + 1
            if end:
                whole = rest + block[:end]
                yield first, whole
                first += whole.count(b"\n")
                rest = block[end:]
            else:
                rest += block
    if rest:
        yield first, rest


def _add(report: Report, file: Path, first: int, parsed: Parsed, show: int) -> None:
    report.edges = dict(Counter(report.edges) + Counter(parsed.told))
    report.filtered = dict(Counter(report.filtered) + Counter(parsed.filtered))
    report.ends.extend(job for job in parsed.ends if job not in report.ends)
    report.rejected += parsed.rejected.num_rows
    for row in parsed.rejected.slice(0, max(0, show - len(report.first))).to_pylist():
        place = Place(str(file), first + row["where"] + 1, row["line"], row["reason"])
        report.first.append(place)
