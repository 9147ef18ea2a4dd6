"""From bytes to rows for the local reducers: what a task does with its part of the input."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.reduce import parsing
from headwater.reduce.blocks import NO_TIME
from headwater.reduce.elements import End, Rejected, check
from headwater.reduce.facts import (
    EDGES_ROW,
    END,
    FACTS,
    LETTERS,
    SPANS,
    TICK,
    Facts,
    as_elements,
    letters,
)
from headwater.reduce.partitioning import block_of, buckets_of, by_activity, split
from headwater.reduce.ranges import HEAD, LONGEST, MOST, Range, texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.reduce.blocks import Bools
    from headwater.reduce.parsing import Parsed
    from headwater.reduce.partitioning import Partition

ROWS = "bucket int, part int, kind string, time timestamp, payload binary"
_ARROW = pa.schema(
    [
        ("bucket", pa.int32()),
        ("part", pa.int32()),
        ("kind", pa.string()),
        ("time", pa.timestamp("us", "UTC")),
        ("payload", pa.binary()),
    ]
)

UNORDERED = -1
"""The part of rows that have no order among the parts of a batch."""

_Row = tuple[int, int, str, int | None, bytes]


@dataclass(frozen=True, slots=True)
class Intake:
    """How the elements of a job become blocks for its local reducers."""

    job: str
    partition: Partition
    keys: tuple[int, ...]
    """Of each bucket, the number by which Spark knows it."""
    functions: bool = False
    timed: bool = False
    """Whether time decides: then elements need one, and go by their activity.

    Local reducers that go by time eliminate activities only. All edges of an activity must then
    be in one place, whatever elements say of their execution; and no partitioning could do better.
    """

    def ranges(self, numbered: list[tuple[int, Range]]) -> Iterator[pa.RecordBatch]:
        """The rows of some ranges, each with its number among the parts of the batch."""
        for part, range_ in numbered:
            yield from self._range(part, range_)

    def values(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of messages, one element each, in the first column."""
        waiting: list[pa.Array] = []
        size, ended = 0, False
        for batch in batches:
            column = batch.column(0).cast(pa.binary()).drop_null()
            waiting.append(column)
            size += column.nbytes
            if size >= MOST:
                rows, ended = self._messages(waiting, ended)
                yield rows
                waiting, size = [], 0
        if size:
            yield self._messages(waiting, ended)[0]

    def _messages(self, columns: list[pa.Array], ended: bool) -> tuple[pa.RecordBatch, bool]:
        # A message may be written over several lines; as JSON it stays the same on one.
        content = b"\n".join(
            text.replace(b"\r", b" ").replace(b"\n", b" ")
            for column in columns
            for text in column.to_pylist()
        )
        rows, ended = self._lines(UNORDERED, content, "message", ended)
        return _table(rows), ended

    def _range(self, part: int, range_: Range) -> Iterator[pa.RecordBatch]:
        ended, place = False, where(range_)
        try:
            for text in texts(range_):
                if range_.how == "document":
                    rows = self._document(part, text.content, place)
                else:
                    rows, ended = self._lines(part, text.content, place, ended)
                if text.too_long is not None:
                    cut = text.too_long.decode("utf-8", "replace")
                    reason = f"a line of more than {LONGEST:,} bytes"
                    rows.append(self._facts(part, Facts(letters=letters(reason, place, [cut]))))
                yield _table(rows)
        except OSError as error:
            reason = f"the file can't be read: {error.strerror or error}"
            lost = Facts(letters=letters(reason, place, [range_.path]))
            yield _table([self._facts(part, lost)])

    def _lines(self, part: int, content: bytes, where: str, ended: bool) -> tuple[list[_Row], bool]:
        rest: bytes | None = content
        rows: list[_Row] = []
        if not ended:
            content, rest = cut_at_end(content, self.job)
            rows = self._parsed(part, parsing.parse(content, self.job), where, len(content))
            if rest is not None:
                rows += [(key, part, END, None, b"") for key in self.keys]
        if rest is None:
            return rows, False
        after = Facts(size=len(rest), letters=after_the_end(rest, self.job, where))
        return [*rows, self._facts(part, after)], True

    def _document(self, part: int, content: bytes, where: str) -> list[_Row]:
        return self._parsed(part, parsing.parse_document(content, self.job), where, len(content))

    def _parsed(self, part: int, parsed: Parsed, where: str, size: int) -> list[_Row]:
        facts = Facts(
            elements=parsed.edges.num_rows,
            size=size,
            filtered=parsed.filtered,
            letters=_letters(parsed.rejected, where),
            spans=parsed.spans.cast(SPANS),
        )
        rows: list[_Row] = []
        if self.timed:
            parsed, facts = self._with_times(parsed, facts, where)
            buckets = by_activity(parsed.edges, len(self.keys))
            rows += [(key, part, TICK, None, b"") for key in self.keys]
        else:
            buckets = buckets_of(parsed.edges, self.partition, len(self.keys))
        rows += [
            (self.keys[bucket], part, EDGES_ROW, None, block.to_bytes())
            for bucket, block in split(parsed, buckets, self.functions)
        ]
        latest = int(parsed.edges["time"].to_numpy().max(initial=NO_TIME))
        return [*rows, self._facts(part, facts, None if latest == NO_TIME else latest)]

    def _with_times(self, parsed: Parsed, facts: Facts, where: str) -> tuple[Parsed, Facts]:
        """Only the elements that say when they were."""
        timeless: Bools = parsed.edges["time"].to_numpy() == NO_TIME
        if not timeless.any():
            return parsed, facts
        lines = as_elements(block_of(parsed, functions=False), timeless)
        reason = "`time` is missing: with the strategy watermark an element needs one"
        left = replace(parsed, edges=parsed.edges.filter(pa.array(~timeless)))
        return left, facts.less(letters(reason, where, lines))

    def _facts(self, part: int, facts: Facts, time: int | None = None) -> _Row:
        key = self.keys[part % len(self.keys)]
        return key, part, FACTS, time if self.timed else None, facts.to_bytes()


def after_the_end(content: bytes, job: str, where: str) -> pa.Table:
    """Lines that came after the end of their job."""
    lines = (line[:HEAD].decode("utf-8", "replace") for line in content.split(b"\n"))
    return letters(f"job {job!r} is finished", where, (line for line in lines if line.strip()))


def cut_at_end(content: bytes, job: str) -> tuple[bytes, bytes | None]:
    """The lines up to the first that ends the job, with it, and those after; None if none does.

    >>> cut_at_end(b'{"type": "end"}\\n{"type": "used"}\\n', "count")
    (b'{"type": "end"}\\n', b'{"type": "used"}\\n')
    """
    at = -1
    while (at := content.find(b'"end"', at + 1)) >= 0:
        start = content.rfind(b"\n", 0, at) + 1
        end = content.find(b"\n", at)
        end = len(content) if end < 0 else end + 1
        try:
            if isinstance(check(json.loads(content[start:end]), job), End):
                return content[:end], content[end:]
        except (ValueError, RecursionError, Rejected):
            pass  # parsing says what is wrong
    return content, None


def where(range_: Range) -> str:
    """What a letter says of where its line stood."""
    return range_.path if range_.start == 0 else f"{range_.path} from byte {range_.start:,}"


def _letters(rejected: pa.Table, where: str) -> pa.Table:
    if not rejected.num_rows:
        return LETTERS.empty_table()
    places = [f"{where}, line {row + 1:,}" for row in rejected["where"].to_pylist()]
    columns = {"reason": rejected["reason"], "where": places, "line": rejected["line"]}
    return pa.table(columns, LETTERS)


def _table(rows: list[_Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(values, type_) for values, type_ in zip(columns, _ARROW.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)
