"""What a run really did, from Spark's checkpoint: each batch's files and watermark."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from headwater.lowering.identity import file_positions
from headwater.testing.rows import InterpreterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.flow.nodes import Source


@dataclass(frozen=True, slots=True)
class Recorded:
    """The micro-batches of a checkpoint: the files that each read, and its watermark in ms."""

    files: list[list[Path]]
    watermarks: list[int]

    def of(self, directory: str | Path) -> list[list[Path]]:
        """Each batch's files below a directory."""
        root = Path(directory).resolve()
        return [[f for f in batch if root in f.parents] for batch in self.files]


def arrival_places(source: Source, file: Path, rows: Sequence[tuple[Any, ...]]) -> list[int]:
    """Where a source has the records of a file that a batch read.

    In Parquet by the file's time and the row in it, elsewhere by the integer id.
    """
    if source.format == "parquet":
        first, _ = file_positions(file.stat().st_mtime_ns // 1_000_000)
        return [first + row for row in range(len(rows))]
    if source.identity.how != "column":
        raise InterpreterError(f"source {source.name!r} has no places: neither Parquet nor ids")
    at = source.schema.fieldNames().index(source.identity.columns[0])
    return [int(values[at]) for values in rows]


def read_checkpoint(checkpoint: str | Path) -> Recorded:
    """The batches that a checkpoint records, no-data batches included."""
    root = Path(checkpoint)
    numbers = sorted(int(p.name) for p in (root / "offsets").iterdir() if p.name.isdigit())
    if numbers != list(range(len(numbers))):
        raise InterpreterError(f"{root}: batches {numbers} are not all there; were they purged?")
    if not numbers:  # started, and nothing ever came
        return Recorded([], [])
    watermarks, offsets = [], []
    for number in numbers:
        _, metadata, *lines = (root / "offsets" / str(number)).read_text().splitlines()
        watermarks.append(int(json.loads(metadata)["batchWatermarkMs"]))
        offsets.append([_log_offset(line) for line in lines])
    files: list[dict[Path, None]] = [{} for _ in numbers]
    for i in range(_sources(root)):
        log = _source_log(root / "sources" / str(i))
        before = -1
        for batch, end in enumerate(_ends(log, offsets, where=f"{root}/sources/{i}")):
            # A source that the plan has twice may be read twice: the same files each time.
            for at in range(before + 1, end + 1):
                files[batch] |= dict.fromkeys(log.get(at, []))
            before = max(before, end)
    return Recorded([list(batch) for batch in files], watermarks)


def _ends(log: dict[int, list[Path]], offsets: list[list[int]], where: str) -> list[int]:
    """How far each batch read a source.

    The offset log has a line for each place of a source in the plan, the folders are one for
    each different source, and nothing says which belongs to which; how far they got does,
    unless two sources moved differently to the same end.
    """
    sequences = {tuple(line) for line in zip(*offsets, strict=True)}
    fitting = [ends for ends in sequences if ends and ends[-1] == max(log, default=-1)]
    if len(fitting) != 1:
        raise InterpreterError(f"{where}: can't tell which of its batches read which files")
    return list(fitting[0])


def _log_offset(line: str) -> int:
    return -1 if line.strip() in ("-", "") else int(json.loads(line)["logOffset"])


def _sources(root: Path) -> int:
    folder = root / "sources"
    return len([p for p in folder.iterdir() if p.name.isdigit()]) if folder.exists() else 0


def _source_log(folder: Path) -> dict[int, list[Path]]:
    """A file source's log: the files of each of its own offsets; compacted logs repeat them."""
    found: dict[int, dict[Path, None]] = defaultdict(dict)
    for entry in sorted(folder.iterdir()):
        if not entry.name.removesuffix(".compact").isdigit():
            continue
        for line in entry.read_text().splitlines()[1:]:
            record = json.loads(line)
            path = Path(unquote(urlparse(record["path"]).path)).resolve()
            found[int(record["batchId"])][path] = None
    return {at: list(files) for at, files in found.items()}
