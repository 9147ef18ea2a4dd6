"""Byte ranges of files: what one task reads, and which lines of it are its own.

A line belongs to the range in which it begins, so that the ranges of a file share no line and
leave none out. A range reads on beyond its end to finish its last line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from headwater.reduce.documents import holds_document

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader

How = Literal["lines", "document", "packed"]

MOST = 16 << 20
"""Bytes of a range at most, about as many as a task parses at once."""

LONGEST = 64 << 20
"""Bytes of a line, about; what is longer is rejected unread."""

HEAD = 4_096
"""Bytes of a rejected line that are kept."""

_PACKED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
_STEP = 1 << 16


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes of a file from `start` to before `end`; documents and packed files are read whole."""

    path: str
    start: int
    end: int
    how: How = "lines"

    def pieces(self, most: int = MOST) -> Iterator[Range]:
        """The range in parts of about equal size, if it can be read in parts."""
        if self.how != "lines":
            yield self
            return
        length = self.end - self.start
        count = max(1, -(-length // most))
        for n in range(count):
            start, end = (self.start + length * m // count for m in (n, n + 1))
            yield Range(self.path, start, end)


@dataclass(frozen=True, slots=True)
class Text:
    """Whole lines of a range, or a document; and a line too long to be read, by its beginning."""

    content: bytes
    too_long: bytes | None = None


def texts(part: Range) -> Iterator[Text]:
    """What is in a range, in pieces that fit into memory. Raises OSError if it can't be read."""
    match part.how:
        case "lines":
            with open(part.path, "rb") as file:
                yield _lines(file, part.start, part.end)
        case "document":
            with open(part.path, "rb") as file:
                yield Text(_without_mark(file.read()))
        case "packed":
            yield from _unpacked(part.path)


def how_to_read(path: str) -> How:
    """Whether a file has lines or is a PROV-JSON document, or is packed.

    Documents that take a line each are lines as well, unless the first is too long for one.
    """
    if any(path.endswith(ending) for ending in _PACKED):
        return "packed"
    if holds_document(path):
        return "document"
    with open(path, "rb") as file:
        _, finished = _to_the_end_of_line(file, 0)
    return "lines" if finished else "document"


def _without_mark(content: bytes) -> bytes:
    return content.removeprefix(b"\xef\xbb\xbf")


def _lines(file: BufferedReader, start: int, end: int) -> Text:
    """The lines that begin from `start` to before `end`."""
    if start == 0:
        content = _without_mark(file.read(end))
    else:
        # The byte before tells whether a line begins just here.
        file.seek(start - 1)
        before, newline, content = file.read(end - start + 1).partition(b"\n")
        del before
        if not newline:
            return Text(b"")
    if not content or content.endswith(b"\n"):
        return Text(content)
    rest, finished = _to_the_end_of_line(file, len(content) - content.rfind(b"\n") - 1)
    if finished:
        return Text(content + rest)
    whole, newline, long = content.rpartition(b"\n")
    return Text(whole + newline, (long + rest)[:HEAD])


def _to_the_end_of_line(file: BufferedReader, length: int) -> tuple[bytes, bool]:
    """The rest of a line of which so much was read, and whether it is no longer than lines are."""
    parts: list[bytes] = []
    while length <= LONGEST:
        step = file.read(_STEP)
        at = step.find(b"\n")
        if at >= 0 or not step:
            parts.append(step[: at + 1] if at >= 0 else step)
            return b"".join(parts), True
        parts.append(step)
        length += len(step)
    return b"".join(parts), False


def _unpacked(path: str) -> Iterator[Text]:
    """The lines of a packed file, piece by piece."""
    ending = next(ending for ending in _PACKED if path.endswith(ending))
    rest, skipping = b"", False
    try:
        with pa.input_stream(path, compression=_PACKED[ending]) as stream:
            while piece := stream.read(MOST):
                if skipping:
                    _, newline, piece = piece.partition(b"\n")
                    skipping = not newline
                whole, newline, rest = (rest + piece).rpartition(b"\n")
                long = None
                if len(rest) > LONGEST:
                    long, rest, skipping = rest[:HEAD], b"", True
                yield Text(whole + newline, long)
    except pa.ArrowInvalid as error:
        raise OSError(" ".join(str(error).split())) from error
    yield Text(rest)
