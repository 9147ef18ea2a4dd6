"""What runs in Spark's tasks: rows of a batch become data files of the lake's tables.

A task sees a part of a micro-batch. It gives back what it wrote, a line for each file; no row of
the batch leaves it. Files of a task that is tried again stay unknown to every table.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headwater.errors import StoreError
from headwater.store.batch import BASE, ID, SEQ
from headwater.store.ingest import collision
from headwater.store.lake.staging import letters
from headwater.store.lake.tables import Added, columns_of, statistics
from headwater.store.occurrences import mixed
from headwater.store.sets import pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import numpy.typing as npt
    import pyarrow.fs as pafs

    from headwater.store.batch import ResultSet
    from headwater.store.catalog import Sink, Source
    from headwater.store.lake.place import Place

TOLD = "relation string, path string, size bigint, rows bigint, stats string, keys string"
"""The columns of what a task gives back, as Spark has them."""
_TOLD = pa.schema(
    [
        ("relation", pa.string()),
        ("path", pa.string()),
        ("size", pa.int64()),
        ("rows", pa.int64()),
        ("stats", pa.string()),
        ("keys", pa.string()),
    ]
)
ROWS = 500_000
"""Rows of a batch that a task takes at a time, and about as many as a file has."""
CHUNK_BITS = 6
"""Bits of the number of a piece that say which piece of its task it is."""
GROUP = 64 << 10
"""Rows of a row group: a look-up reads a few of these."""
RANK, BEFORE, STORED, MIXED = "__hw_rank", "__hw_before", "__hw_stored", "__hw_mixed"
"""Of rows whose id may come twice: its place among equal ids of the batch, how many of them the
store has, the content of the record that it has, and whether the batch has two contents."""


@dataclass(frozen=True, slots=True)
class Sorted:
    """Rows of a batch, sorted out: results with their sets by sink, and records by source.

    `repeats` has, by sink and by source, the columns about ids that may come twice.
    """

    results: Mapping[str, ResultSet]
    records: Mapping[str, pa.Table]
    repeats: Mapping[tuple[str, str], pa.Table]
    times: Mapping[str, pa.Table] = field(default_factory=dict)
    """For a live graph: the times of records, by source."""
    sessions: Mapping[str, ResultSet] = field(default_factory=dict)
    """For a live graph: the rows that enter sessions, by step."""
    letters: Mapping[str, pa.Table] = field(default_factory=dict)
    """Messages that could not be decoded, by source."""


@dataclass(frozen=True, slots=True)
class Task:
    """Writes the rows of one batch, whichever part of them it is given."""

    place: Place
    seq: int
    sinks: Mapping[str, Sink]
    sources: Mapping[str, Source]
    positional: Mapping[str, int]
    """Sources whose ids hold the number of a file, and the bits of a row's place in it."""
    sort: Callable[[pa.Table, int], Sorted]
    """Sorts rows out, given the number of the part."""
    came: Callable[[Sorted], Iterable[tuple[str, pa.Table]]] | None = None
    """What a live graph is to be told of the rows, and where to write it."""
    erased: Mapping[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    """By source, the records whose contents may not be stored."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write some rows; what was written."""
        from pyspark import TaskContext

        context = TaskContext.get()
        number = 0 if context is None else context.partitionId()
        for chunk, rows in enumerate(_chunks(batches)):
            yield lines(self._write(self.sort(rows, (number << CHUNK_BITS) + chunk)))

    def _write(self, found: Sorted) -> list[Added]:
        filesystem, root = self.place.filesystem()
        written: list[Added] = []

        def keep(relation: str, rows: pa.Table) -> None:
            if rows.num_rows:
                path = f"{self.seq}-{uuid.uuid4().hex}.parquet"
                written.append(data_file(filesystem, root, relation, path, rows))

        if self.came is not None:
            for relation, rows in self.came(found):
                keep(relation, rows)
        for name, rows in found.letters.items():
            keep(letters(self.seq, name), rows)
        edges: list[pa.Table] = []
        spans: list[pa.Table] = []
        keys: dict[str, list[int]] = {}
        for name, part in found.results.items():
            sink = self.sinks[name]
            final, base = _final(part, found.repeats.get(("results", name)), sink.name)
            rows = part.rows.set_column(part.rows.column_names.index(ID), ID, pa.array(final))
            rows = rows.append_column(BASE, base)
            keep(f"result_{sink.no}", self._placed(rows, SEQ, f"result_{sink.no}", sink.schema))
            for origin, sets in part.origins.items():
                results, records = pairs(final, sets)
                edges.append(self._edges(sink, self.sources[origin], results, records))
                self._note(keys, origin, records)
            for origin, (low, high) in part.intervals.items():
                told = pa.table({"result_id": final, "low": low, "high": high})
                told = told.filter(pc.is_valid(told["low"]))
                spans.append(self._spans(sink, self.sources[origin], told))
        for name, rows in found.records.items():
            source = self.sources[name]
            new = _new(source, rows, found.repeats.get(("records", name)))
            if len(gone := self.erased.get(name, ())):
                new = new.filter(pa.array(~np.isin(new[ID].to_numpy(), gone)))
            self._note(keys, name, new[ID].to_numpy())
            relation = f"record_{source.no}"
            keep(relation, self._placed(new, SEQ, relation, source.schema))
        if edges:
            order = [("sink_no", "ascending"), ("result_id", "ascending")]
            keep("edges", pa.concat_tables(edges).sort_by(order))
        if spans:
            keep("spans", pa.concat_tables(spans).sort_by("result_id"))
        # Of all files together: it does not matter which of them tells.
        return [*written[:-1], *(replace(last, keys=keys) for last in written[-1:])]

    def _note(self, keys: dict[str, list[int]], source: str, ids: npt.NDArray[np.int64]) -> None:
        """Note down the files that records are from."""
        if (bits := self.positional.get(source)) is not None:
            known = {*keys.get(source, ()), *np.unique(ids >> bits).tolist()}
            keys[source] = sorted(known)

    def _edges(self, sink: Sink, source: Source, results: Any, records: Any) -> pa.Table:
        many = len(results)
        return pa.table(
            [
                pa.array(np.full(many, self.seq, np.int64)),
                pa.array(np.full(many, sink.no, np.int16)),
                pa.array(results),
                pa.array(np.full(many, source.no, np.int16)),
                pa.array(records),
            ],
            schema=columns_of("edges"),
        )

    def _spans(self, sink: Sink, source: Source, told: pa.Table) -> pa.Table:
        many = told.num_rows
        columns = {
            "seq": np.full(many, self.seq, np.int64),
            "sink_no": np.full(many, sink.no, np.int16),
            "result_id": told["result_id"],
            "source_no": np.full(many, source.no, np.int16),
            "low": told["low"],
            "high": told["high"],
        }
        return pa.table(columns).cast(columns_of("spans"))

    def _placed(self, rows: pa.Table, seq: str, relation: str, own: pa.Schema) -> pa.Table:
        rows = rows.append_column(seq, pa.array(np.full(rows.num_rows, self.seq, np.int64)))
        columns = columns_of(relation, own)
        return rows.select(columns.names).cast(columns)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Writes rows of a relation as they are, a file for each task."""

    place: Place
    relation: str
    columns: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write some rows; what was written."""
        rows = [batch for batch in batches if batch.num_rows]
        if rows:
            filesystem, root = self.place.filesystem()
            table = pa.Table.from_batches(rows).rename_columns(self.columns.names)
            table = table.cast(self.columns)
            path = f"run-{uuid.uuid4().hex}.parquet"
            yield lines([data_file(filesystem, root, self.relation, path, table)])


def written(place: Place, relation: str, rows: pa.Table) -> Added:
    """Rows of a relation as a data file."""
    filesystem, root = place.filesystem()
    return data_file(filesystem, root, relation, f"copy-{uuid.uuid4().hex}.parquet", rows)


def data_file(
    filesystem: pafs.FileSystem, root: str, relation: str, path: str, rows: pa.Table
) -> Added:
    """Rows as a file of a relation."""
    place = f"{root}/{relation}/{path}"
    filesystem.create_dir(f"{root}/{relation}", recursive=True)
    pq.write_table(rows, place, filesystem=filesystem, row_group_size=GROUP, compression="zstd")
    size = filesystem.get_file_info(place).size
    told = statistics(rows.select(indexed(relation, rows.schema)))
    return Added(relation, path, size, rows.num_rows, told)


def indexed(relation: str, columns: pa.Schema) -> list[str]:
    """The columns whose ends may be told: of records none of their own, as they may have to go."""
    return [ID, SEQ] if relation.startswith("record_") else columns.names


def lines(written: Iterable[Added]) -> pa.RecordBatch:
    """What was written, a line for each file."""
    lines = [
        {
            "relation": file.relation,
            "path": file.path,
            "size": file.size,
            "rows": file.rows,
            "stats": json.dumps(file.stats),
            "keys": json.dumps({name: list(keys) for name, keys in file.keys.items()}),
        }
        for file in written
    ]
    return pa.RecordBatch.from_pylist(lines, schema=_TOLD)


def told(rows: pa.Table) -> list[Added]:
    """What tasks gave back."""
    return [
        Added(
            row["relation"],
            row["path"],
            row["size"],
            row["rows"],
            json.loads(row["stats"]),
            json.loads(row["keys"]),
        )
        for row in rows.to_pylist()
    ]


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= ROWS:
            yield pa.Table.from_batches(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _final(
    part: ResultSet, repeats: pa.Table | None, sink: str
) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """The final ids of results, and where it is another the id that each would have had."""
    given = part.rows[ID]
    if given.null_count:
        raise StoreError(f"a result of sink {sink!r} has no id (null)")
    ids = given.to_numpy()
    if repeats is None:
        return ids, pa.nulls(len(ids), pa.int64())
    n = repeats[RANK].cast(pa.int64()).to_numpy() + repeats[BEFORE].fill_null(0).to_numpy()
    again = n > 1
    final = ids.copy()
    final[again] = mixed(ids[again], n[again])
    return final, pa.array(ids, mask=~again)


def _new(source: Source, rows: pa.Table, repeats: pa.Table | None) -> pa.Table:
    """The records that the store lacks, each once."""
    if rows[ID].null_count:
        raise StoreError(
            f"a record of source {source.name!r} has no id (null); give id= columns that are "
            "never null"
        )
    if repeats is None:
        return rows
    held = pc.is_valid(repeats[BEFORE])
    other = pc.or_(
        pc.fill_null(repeats[MIXED], False),
        pc.and_(held, pc.fill_null(pc.not_equal(repeats[STORED], rows["__hw_content"]), False)),
    )
    if pc.any(other).as_py():
        raise collision(source, rows.filter(other)[ID][0].as_py())
    first = pc.equal(repeats[RANK], 1)
    return rows.filter(pc.and_(first, pc.invert(held)))
