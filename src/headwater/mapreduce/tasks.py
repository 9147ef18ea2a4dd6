"""What runs in Spark's Python workers: reading parts of files, and users' functions over them."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.mapreduce.functions import FunctionMap, FunctionReduce
from headwater.mapreduce.mapping import FILE, ID, IDS, ROW_BITS, Combiner, Mapper, mapped_batch
from headwater.mapreduce.records import ROW, Part, Unreadable, read
from headwater.streams.conforming import column
from headwater.streams.files import write_whole
from headwater.streams.letters import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from headwater.mapreduce.settings import Work

ERROR = "__hw_error"

_MOST_LETTERS = 10_000
"""Of one part of a file; more are counted only."""

_SETS = pa.list_(pa.field("element", pa.int64()))


@dataclass(slots=True)
class Note:
    """What a task tells about a part of a file beside its rows."""

    records: int = 0
    rejected: int = 0
    letters: list[dict[str, Any]] = field(default_factory=list)
    unreadable: str = ""

    def reject(self, row: int, reason: str, event: Any) -> None:
        """A record that is left out, and why."""
        self.rejected += 1
        if len(self.letters) < _MOST_LETTERS:
            self.letters.append({"row": row, "reason": reason, "event": shown(event)})

    def write(self, folder: Path, part: Part) -> None:
        """Leave the note where the driver finds it; a task that runs again leaves the same."""
        told = {
            "records": self.records,
            "rejected": self.rejected,
            "letters": self.letters,
            "unreadable": self.unreadable,
        }
        data = json.dumps(told).encode()
        write_whole(folder / f"{part.file:08d}-{part.number:06d}.json", data, sync=False)

    @classmethod
    def read(cls, path: Path) -> Note:
        """A note that a task left."""
        return cls(**json.loads(path.read_bytes()))


def mapped_schema(work: Work, *, combined: bool) -> pa.Schema:
    """What tasks give: the file, the record, the pair; if combined, with `eager`, all records."""
    ids = [(IDS, _SETS)] if work.eager and combined else []
    return pa.schema([(FILE, pa.int64()), (ID, pa.int64()), *work.schema, *ids])


def read_task(
    parts: Sequence[Part],
    work: Work,
    notes: Path | None,
    rows: Sequence[int] | None = None,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A task that reads parts, by their places: the file, the record's id, its columns."""

    def task(places: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in _asked(places, parts):
            note = Note()
            for batch in _read(part, work, note, rows):
                yield _with_ids(part.file, batch)
            if notes is not None:
                note.write(notes, part)

    return task


def map_task(
    parts: Sequence[Part],
    work: Work,
    notes: Path | None,
    rows: Sequence[int] | None = None,
    *,
    combines: bool = True,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A task that reads parts and maps their records by the user's function."""

    def task(places: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        assert isinstance(work.map, FunctionMap)
        for part in _asked(places, parts):
            note = Note()
            mapper = Mapper(work, part.file, note.reject, combines=combines)
            try:
                for batch in _read(part, work, note, rows):
                    yield from mapper.take(batch)
                yield from mapper.rest()
            except Unreadable as error:
                note.unreadable = str(error)
            if notes is not None:
                note.write(notes, part)

    return task


def combine_task(
    work: Work,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A task that combines pairs of native maps by the user's function."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        assert isinstance(work.combine, FunctionReduce)
        combiner, file = Combiner(work, work.combine), 0
        for batch in batches:
            if not batch.num_rows:
                continue
            table = pa.Table.from_batches([batch]).drop_columns([FILE, ID])
            file = batch.column(0)[0].as_py()  # a task has a part of one file
            combiner.add(batch.column(1).to_numpy(), table)
            if (held := combiner.full()) is not None:
                yield mapped_batch(file, work, *held)
        if (held := combiner.out()) is not None:
            yield mapped_batch(file, work, *held)

    return task


def reduce_task(
    work: Work, function: FunctionReduce
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A task that reduces pairs which come sorted by key: a row for each key.

    A row has an error where the function raised, or gave what is no value of the result's type. A
    key for which the function gives None has no row.
    """
    output = reduced_schema(work)
    value = output.field(len(work.keys))
    keys = range(len(work.keys))

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pairs = itertools.chain.from_iterable(_tuples(batch) for batch in batches)
        rows: list[tuple[Any, ...]] = []
        for key, group in itertools.groupby(pairs, key=lambda pair: pair[: len(work.keys)]):
            held = list(group)
            made, error = _applied(function, key, [pair[len(keys)] for pair in held], value)
            if made is None and error is None:
                continue
            ids = [list({i for pair in held for i in pair[len(keys) + 1]})] if work.eager else []
            rows.append((*key, made, *ids, error))
            if len(rows) >= 10_000:
                yield _batch(rows, output)
                rows = []
        if rows:
            yield _batch(rows, output)

    return task


def reduced_schema(work: Work) -> pa.Schema:
    """What `reduce_task` gives: the key, the result, its records with `eager`, an error."""
    ids = [(IDS, _SETS)] if work.eager else []
    return pa.schema([*work.output, *ids, (ERROR, pa.string())])


def _applied(
    function: FunctionReduce, key: tuple[Any, ...], values: list[Any], field: pa.Field
) -> tuple[Any, str | None]:
    try:
        made = function.function(key[0] if len(key) == 1 else key, values)
        if made is None:
            return None, None
        return column([made], field, "")[0].as_py(), None
    except Exception as error:  # noqa: BLE001 - the user's own function
        return None, f"{function.name}: {type(error).__name__}: {error}"


def _read(
    part: Part, work: Work, note: Note, rows: Sequence[int] | None
) -> Iterator[pa.RecordBatch]:
    """The records of a part, counted; a file that can't be read is noted, and gives no more."""
    wanted = None if rows is None else np.asarray(rows, np.int64)
    try:
        for batch in read(part, work.format, note.reject):
            note.records += batch.num_rows
            if wanted is None:
                yield batch
                continue
            ids = (part.file << ROW_BITS) | batch.column(0).to_numpy()
            here = np.isin(ids, wanted)
            if here.any():
                yield batch.filter(pa.array(here))
    except Unreadable as error:
        note.unreadable = str(error)


def _asked(places: Iterator[pa.RecordBatch], parts: Sequence[Part]) -> Iterator[Part]:
    for batch in places:
        for place in batch.column(0).to_pylist():
            yield parts[place]


def _with_ids(file: int, batch: pa.RecordBatch) -> pa.RecordBatch:
    rows = batch.column(0).to_numpy()
    ids = pa.array((file << ROW_BITS) | rows)
    files = pa.array(np.full(len(rows), file, np.int64))
    names = [name for name in batch.schema.names if name != ROW]
    return pa.RecordBatch.from_arrays([files, ids, *batch.columns[1:]], [FILE, ID, *names])


def _tuples(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    return zip(*(each.to_pylist() for each in batch.columns), strict=True)


def _batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
