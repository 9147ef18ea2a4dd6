"""Input files as records: in parts that can be read side by side, each record with its number.

A record of a text file is a line, up to a line feed; a carriage return before that is not part of
it. What is no UTF-8 is replaced. The number of a record is its place in the file, from 0.
"""

from __future__ import annotations

import gzip
import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headwater.errors import FlowError
from headwater.streams.errors import StreamError
from headwater.streams.formats import FORMATS as DOCUMENTS
from headwater.streams.letters import shown
from headwater.streams.schema import parse
from headwater.streams.sifting import sift

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TEXT = "text"
FORMATS = (TEXT, *DOCUMENTS)

LINE = "value"
"""The column of a text file's lines, as Spark calls it."""
ROW = "__hw_row"

PART = 8 << 20
"""Bytes of a part, about."""
_BATCH = 20_000
_FEED = ord("\n")
_ROW_LIMIT = 1 << 32


class Unreadable(Exception):
    """A file that can't be read, with the reason."""


@dataclass(frozen=True, slots=True)
class Format:
    """How files are read: the format, and the columns of a record."""

    name: str
    columns: str

    @classmethod
    def of(cls, name: str, columns: str | None) -> Format:
        """A format by its name; of all but text, the columns must be told."""
        if name not in FORMATS:
            raise FlowError(f"format={name!r} is none of {', '.join(FORMATS)}")
        if name == TEXT:
            if columns is not None:
                raise FlowError(f"columns={columns!r}: a text file has lines; leave columns out")
            return cls(name, f"{LINE} string")
        if columns is None:
            raise FlowError(
                f"format={name!r} needs the columns of its records: give for instance "
                "columns='id bigint, name string'"
            )
        parse(columns)
        return cls(name, columns)

    @property
    def schema(self) -> pa.Schema:
        """The columns of a record."""
        return parse(self.columns)

    @property
    def numbered(self) -> pa.Schema:
        """The same behind the number of the record."""
        return pa.schema([pa.field(ROW, pa.int64()), *self.schema])


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a file: bytes of text or row groups of Parquet, and the first record's number."""

    file: int
    path: str
    number: int
    start: int
    end: int
    first: int


def parts(file: int, path: Path, format: Format, size: int = PART) -> list[Part]:
    """The parts of a file, of about `size` bytes each; at least one."""
    try:
        if format.name == TEXT and path.suffix != ".gz":
            cuts = _text_cuts(path, size)
        elif format.name == "parquet":
            cuts = _parquet_cuts(path, size)
        else:
            cuts = [(0, -1, 0)]
    except (OSError, pa.ArrowException) as error:
        raise Unreadable(_said(error)) from error
    return [
        Part(file, str(path), number, start, end, first)
        for number, (start, end, first) in enumerate(cuts)
    ]


def read(part: Part, format: Format, reject: Any) -> Iterator[pa.RecordBatch]:
    """The records of a part, as batches of `Format.numbered`."""
    try:
        match format.name:
            case "text":
                batches = _lines(part)
            case "parquet":
                batches = _row_groups(part, format.schema)
            case _:
                batches = _documents(part, format, reject)
        for batch in batches:
            if batch.num_rows and batch.column(0)[-1].as_py() >= _ROW_LIMIT:
                raise Unreadable(f"it has more than {_ROW_LIMIT:,} records; cut it")
            yield batch
    except (OSError, EOFError, pa.ArrowException, StreamError) as error:
        raise Unreadable(_said(error)) from error


def rows(file: int, path: Path, format: Format, numbers: Sequence[int]) -> pa.Table:
    """The records of a file with these numbers, as a table of `Format.numbered`."""
    wanted = np.unique(np.asarray(numbers, np.int64))
    found = []
    for part in parts(file, path, format):
        for batch in read(part, format, lambda *_: None):
            here = np.isin(batch.column(0).to_numpy(), wanted)
            if here.any():
                found.append(batch.filter(pa.array(here)))
    return pa.Table.from_batches(found, schema=format.numbered)


def _text_cuts(path: Path, size: int) -> list[tuple[int, int, int]]:
    """Where parts begin and end, each after a line feed, and the lines before each."""
    cuts, start, first = [], 0, 0
    with path.open("rb") as file:
        if not (whole := path.stat().st_size):
            return [(0, 0, 0)]
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as bytes_:
            while start < whole:
                feed = bytes_.find(b"\n", min(start + size, whole) - 1)
                end = whole if feed < 0 else feed + 1
                cuts.append((start, end, first))
                first += bytes_[start:end].count(b"\n")
                start = end
    return cuts


def _lines(part: Part) -> Iterator[pa.RecordBatch]:
    with _opened(part.path) as file:
        file.seek(part.start)
        text = file.read(part.end - part.start if part.end >= 0 else -1)
    if not text:
        return
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == _FEED) + 1
    offsets = np.concatenate([[0], ends, [len(text)] if text[-1] != _FEED else []])
    buffers = [None, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(text)]
    lines = pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)
    for at in range(0, len(lines), _BATCH):
        some = lines.slice(at, _BATCH)
        first = part.first + at
        yield _numbered(np.arange(first, first + len(some)), pa.table([_texts(some)], [LINE]))


def _texts(lines: pa.Array) -> pa.Array:
    """Lines without their ends, as text."""
    try:
        return pc.ascii_rtrim(lines.cast(pa.string()), "\r\n")
    except pa.ArrowException:
        decoded = [line.rstrip(b"\r\n").decode("utf-8", "replace") for line in lines.to_pylist()]
        return pa.array(decoded, pa.string())


def _parquet_cuts(path: Path, size: int) -> list[tuple[int, int, int]]:
    told = pq.read_metadata(path)
    cuts, first = [], 0
    start, start_row, held = 0, 0, 0
    for group in range(told.num_row_groups):
        held += told.row_group(group).total_byte_size
        first += told.row_group(group).num_rows
        if held >= size or group == told.num_row_groups - 1:
            cuts.append((start, group + 1, start_row))
            start, start_row, held = group + 1, first, 0
    return cuts or [(0, 0, 0)]


def _row_groups(part: Part, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(part.path) as file:
        absent = [name for name in schema.names if name not in file.schema_arrow.names]
        if absent:
            raise Unreadable(f"it has no column {absent[0]!r}")
        first = part.first
        groups = list(range(part.start, part.end))
        for batch in file.iter_batches(_BATCH, row_groups=groups, columns=schema.names):
            table = pa.Table.from_batches([batch]).select(schema.names).cast(schema)
            yield _numbered(np.arange(first, first + batch.num_rows), table)
            first += batch.num_rows


def _documents(part: Part, format: Format, reject: Any) -> Iterator[pa.RecordBatch]:
    """Records of the formats that events are published in."""
    schema = format.schema
    if not Path(part.path).stat().st_size:
        return
    with _opened(part.path) as file:
        reader = DOCUMENTS[format.name](file, part.path, (), schema)
        held: list[tuple[int, dict[str, Any], Any]] = []
        for number, record in enumerate(reader.records()):
            if record.row is None:
                reject(number, record.reason, shown(record.event))
                continue
            # Columns that are not asked for are left aside, as Spark does.
            own = {name: record.row[name] for name in schema.names if name in record.row}
            held.append((number, own, record.event))
            if len(held) >= _BATCH:
                yield _sifted(held, schema, reject)
                held = []
        if held:
            yield _sifted(held, schema, reject)


def _sifted(
    held: list[tuple[int, dict[str, Any], Any]], schema: pa.Schema, reject: Any
) -> pa.RecordBatch:
    table, reasons = sift([row for _, row, _ in held], schema)
    for place, reason in reasons.items():
        reject(held[place][0], reason, shown(held[place][2]))
    numbers = [number for place, (number, _, _) in enumerate(held) if place not in reasons]
    return _numbered(np.array(numbers, np.int64), table)


def _numbered(numbers: Any, table: pa.Table) -> pa.RecordBatch:
    columns = [pa.array(numbers, pa.int64()), *(c.combine_chunks() for c in table.columns)]
    return pa.RecordBatch.from_arrays(columns, [ROW, *table.column_names])


def _opened(path: str) -> IO[bytes]:
    if path.endswith(".gz"):
        return gzip.open(path, "rb")  # type: ignore[return-value]
    return open(path, "rb")


def _said(error: BaseException) -> str:
    """An error in one line, without the path, which is told beside it."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split()) or type(error).__name__
