"""Lines of JSON as Arrow's columns: the quick way, for all lines that it can be trusted with.

Arrow reads objects one after the other and cares little where a line ends. So only lines that begin
with `{` and end with `}` are shown to it: no object can then reach over a line's end, each line has
one at least, and as many rows as lines means one for each. A block that it can't read is halved,
down to the lines at fault; these are left to be read one by one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from headwater.errors import HeadwaterError
from headwater.reduce.elements import GROUP
from headwater.reduce.told import FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.reduce.blocks import Bools, Ints

MOST = 1 << 30
"""Bytes that are read at once."""

_FEW = 64
"""Lines that are read one by one rather than halved again: it costs as much."""

_BLOCK = 4 << 20
_PIECE = 1 << 20
_NEWLINE, _RETURN, _OPEN, _CLOSE = b"\n\r{}"
_TIME = re.compile(rb'"time"\s*:\s*([^\sn])')


def _fields(time: pa.DataType) -> list[tuple[str, pa.DataType]]:
    text = ("type", *FIELDS, "function", "execution", "node", "job")
    return [*((name, pa.string()) for name in text), ("time", time), ("output", pa.bool_())]


def _schema(time: pa.DataType) -> pa.Schema:
    fields = _fields(time)
    # A group in a group is not read as anything, so that it is looked at.
    return pa.schema([*fields, (GROUP, pa.list_(pa.struct([*fields, (GROUP, pa.null())])))])


_SCHEMAS = {False: _schema(pa.string()), True: _schema(pa.float64())}
"""By whether times are numbers: Arrow reads a column as text or as numbers, not both."""


@dataclass(slots=True, eq=False)
class Lines:
    """Lines in one piece of memory: where each begins and ends, and which can be read quickly."""

    data: bytes
    shown: bytes
    """The same with blanks in place of what must not be read quickly."""
    starts: Ints
    ends: Ints
    plain: Bools
    """Lines that are shown."""
    left: list[int]
    """Lines to be read one by one."""

    @classmethod
    def of(cls, lines: pa.Array | pa.ChunkedArray | bytes) -> Lines:
        """Lines of text, or an array with a line in each row."""
        data, starts, ends = _split(lines) if isinstance(lines, bytes) else _joined(lines)
        text = np.frombuffer(data, np.uint8)
        filled = ends > starts
        last = np.where(filled, ends - 1, 0)
        if len(text):
            # A carriage return may end a line as well; a line of nothing else begins with it.
            last = np.where((text[last] == _RETURN) & (last > starts), last - 1, last)
        plain = filled.copy()
        plain[plain] = (text[starts[plain]] == _OPEN) & (text[last[plain]] == _CLOSE)
        hidden = np.flatnonzero(filled & ~plain)
        shown = data
        if len(hidden):
            blanked = bytearray(data)
            for start, end in zip(starts[hidden].tolist(), ends[hidden].tolist(), strict=True):
                blanked[start:end] = b" " * (end - start)
            shown = bytes(blanked)
        return cls(data, shown, starts, ends, plain, hidden.tolist())

    def __len__(self) -> int:
        return len(self.starts)

    def text(self, line: int) -> bytes:
        """The bytes of a line."""
        return self.data[self.starts[line] : self.ends[line]]

    def tables(self) -> Iterator[tuple[pa.Table, Ints]]:
        """Columns of all lines that can be read quickly, and which lines they are."""
        pending = [(0, len(self))]
        while pending:
            begin, end = pending.pop()
            lines = np.flatnonzero(self.plain[begin:end]) + begin
            if not len(lines):
                continue
            table = self._table(begin, end)
            if table is not None and table.num_rows == len(lines):
                yield table, lines
            elif len(lines) <= _FEW:
                self.left.extend(lines.tolist())
            else:
                middle = int(lines[len(lines) // 2])
                pending += [(middle, end), (begin, middle)]

    def _table(self, begin: int, end: int) -> pa.Table | None:
        """The columns of a range of lines; None if some line of it can't be read this way."""
        start, stop = int(self.starts[begin]), int(self.ends[end - 1])
        part = pa.py_buffer(self.shown).slice(start, stop - start)
        time = _TIME.search(self.shown, start, stop)
        number = time is not None and time.group(1) in b"-0123456789"
        longest = int((self.ends[begin:end] - self.starts[begin:end]).max())
        try:
            _text(part).validate(full=True)
            return pj.read_json(
                pa.BufferReader(part),
                pj.ReadOptions(use_threads=False, block_size=max(_BLOCK, longest + 2)),
                pj.ParseOptions(
                    explicit_schema=_SCHEMAS[number], unexpected_field_behavior="ignore"
                ),
            )
        except pa.ArrowInvalid:
            return None


def _split(data: bytes) -> tuple[bytes, Ints, Ints]:
    """Where lines of text begin and end; the last newline ends the last line."""
    _require(len(data))
    ends = _newlines(data)
    if not data.endswith(b"\n"):
        ends = np.append(ends, len(data))
    starts = np.append(0, ends[:-1] + 1)
    return data, starts, ends


def _joined(rows: pa.Array | pa.ChunkedArray) -> tuple[bytes, Ints, Ints]:
    """Rows as lines of text; a row may have newlines inside."""
    if isinstance(rows, pa.ChunkedArray):
        rows = rows.combine_chunks()
    _require(rows.nbytes)
    texts = pc.fill_null(rows.cast(pa.binary()), b"")
    whole = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    data: bytes = pc.binary_join(whole, b"\n")[0].as_py()
    ends = np.cumsum(pc.binary_length(texts).to_numpy().astype(np.int64) + 1) - 1
    starts = np.append(0, ends[:-1] + 1)[: len(ends)]
    return data, starts, ends


def _require(size: int) -> None:
    if size > MOST:
        raise HeadwaterError(f"{size:,} bytes are too many to parse at once: give {MOST:,} at most")


def _newlines(data: bytes) -> Ints:
    """Where newlines are; a piece at a time, as what does not fit the cache is slow."""
    text = np.frombuffer(data, np.uint8)
    pieces = [
        np.flatnonzero(text[begin : begin + _PIECE] == _NEWLINE) + begin
        for begin in range(0, len(text), _PIECE)
    ]
    return np.concatenate(pieces) if pieces else np.empty(0, np.int64)


def _text(data: pa.Buffer) -> pa.StringArray:
    """Bytes as one text, to be checked for being UTF-8."""
    bounds = pa.py_buffer(np.array([0, data.size], np.int32))
    return pa.StringArray.from_buffers(1, bounds, data)
