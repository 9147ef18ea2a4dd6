"""The graph of flows' results and records: ids from the spool, contents from the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.export.graph import (
    EVENT_TIME,
    Derivations,
    Entities,
    Generations,
    Part,
    Run,
    Step,
    own,
)
from headwater.export.names import HW, NAMESPACES, local
from headwater.export.spool import ROWS
from headwater.export.text import joined
from headwater.export.values import columns, moments
from headwater.query import records
from headwater.query.columns import TIME
from headwater.query.records import beside
from headwater.store import reread
from headwater.store.batch import ID, SEQ
from headwater.store.batch import TIME as STORED_TIME
from headwater.store.marks import erased_among
from headwater.store.schema import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from headwater.export.spool import Ids, Spool
    from headwater.query.edges import Edges
    from headwater.store.catalog import Sink, Source

_BYTES = 16 << 20
"""Contents that are held at a time."""
_FIRST = 2_000
"""Rows that are read first, to see how long they are."""


class FlowGraph:
    """Results of flows and the records that they came from, with the runs that made them."""

    def __init__(self, edges: Edges, spool: Spool, *, columns: bool) -> None:
        self._reader = edges.reader
        self._spool = spool
        self._own = columns
        sinks = {sink.no: sink for sink in edges.catalog.sinks}
        sources = {source.no: source for source in edges.catalog.sources}
        self._sinks = [sinks[no] for no in spool.sinks()]
        self._sources = [sources[no] for no in spool.sources()]
        self._sink_names = _Names(self._sinks)
        self._source_names = _Names(self._sources)
        self._batches = _Batches(edges, spool.seqs())

    @property
    def namespaces(self) -> Mapping[str, str]:
        """Headwater's own."""
        return NAMESPACES

    @property
    def default(self) -> str | None:
        """None: all names have a prefix."""
        return None

    @property
    def store(self) -> str:
        """The path of the store."""
        return str(self._reader.path)

    def totals(self) -> tuple[int, int]:
        """How many results and records there are, and how many edges."""
        return self._spool.totals()

    def parts(self) -> list[Part]:
        """The results of each sink, then the records of each source."""
        return [self._part(one) for one in self.datasets()]

    def runs(self) -> list[Run]:
        """The runs that made results."""
        return self._batches.runs

    def datasets(self) -> list[Source | Sink]:
        """The sinks, then the sources."""
        return [*self._sinks, *self._sources]

    def steps(self) -> Iterator[Step]:
        """What each batch has in the graph, in order."""
        for counts in self._spool.counts():
            for row in counts.to_pylist():
                yield self._batches.step(**row)

    def entities(self) -> Iterator[Entities]:
        """The results of each sink as they were delivered, then the records by their ids."""
        for sink in self._sinks:
            yield from self._entities(sink, self._spool.results(sink.no), self._results)
        for source in self._sources:
            yield from self._entities(source, self._spool.records(source.no), self._records)

    def generations(self) -> Iterator[Generations]:
        """Each result was made by a run, when its batch was committed."""
        for sink in self._sinks:
            for some in self._spool.results(sink.no):
                runs, times = self._batches.of(some.column("seq"))
                numbers = np.full(some.num_rows, sink.no, np.int16)
                names = self._sink_names.of(numbers, some.column("id"))
                yield Generations(names, runs, moments(times))

    def derivations(self) -> Iterator[Derivations]:
        """Each result was made from each of its records."""
        for some in self._spool.edges():
            sink_no, result_id, source_no, source_id, seq = some.columns
            yield Derivations(
                self._sink_names.of(sink_no.to_numpy(), result_id),
                self._source_names.of(source_no.to_numpy(), source_id),
                self._batches.of(seq)[0],
            )

    def _part(self, place: Source | Sink) -> Part:
        kind = "result" if place in self._sinks else "record"
        own_columns = columns(place.schema) if self._shows(place) else ()
        attributes = (EVENT_TIME, *(own(one.name, one.type) for one in own_columns))
        return Part(kind, attributes, place.flow, place.name)

    def _shows(self, place: Source | Sink) -> bool:
        """Whether own columns are exported; only a replay could tell those of a step's rows."""
        return self._own and not place.is_step

    def _entities(
        self,
        place: Any,
        chosen: Iterator[pa.RecordBatch],
        contents: Callable[[Any, pa.RecordBatch], pa.Table],
    ) -> Iterator[Entities]:
        part = self._part(place)
        names = self._sink_names if part.kind == "result" else self._source_names
        plain = columns(place.schema) if self._shows(place) else ()
        for some, rows in _bounded(chosen, lambda some: contents(place, some)):
            rows = beside(rows, some.column("id").to_numpy())
            numbers = np.full(some.num_rows, place.no, np.int16)
            times = moments(rows.column(1).combine_chunks())
            own_rows = rows.select(range(2, rows.num_columns))
            texts = (times, *(column.of(own_rows) for column in plain))
            yield Entities(part, names.of(numbers, some.column("id")), texts)

    def _results(self, sink: Sink, some: pa.RecordBatch) -> pa.Table:
        """The rows of results: `__hw_id`, `__hw_time`, own columns."""
        own_names = sink.schema.names if self._shows(sink) else ()
        wanted = ", ".join(quoted(name) for name in (ID, STORED_TIME, *own_names))
        seqs = np.unique(some.column("seq").to_numpy())
        rows = self._reader.query(
            f"SELECT {wanted} FROM result_{sink.no} WHERE {SEQ} BETWEEN {seqs[0]} AND {seqs[-1]} "
            f"AND {ID} IN (SELECT unnest(?::BIGINT[]))",
            [some.column("id").to_pylist()],
        )
        return rows.set_column(1, STORED_TIME, rows.column(1).cast(TIME))

    def _records(self, source: Source, some: pa.RecordBatch) -> pa.Table:
        """The rows of records: `__hw_id`, `__hw_time`, own columns."""
        ids: Ids = some.column("id").to_numpy()
        own_columns = self._shows(source)
        found = records.found(self._reader, source, ids, own=own_columns)
        if own_columns and not source.complete and reread.possible(source):
            # They reached a result, and so must be where they came from.
            missing = np.setdiff1d(ids, found[ID].to_numpy())
            if len(missing):
                missing = np.setdiff1d(missing, erased_among(self._reader.query, source, missing))
            if len(missing):
                raise reread.vanished(source, missing.tolist())
        return found


class _Names:
    """The names of records or results, by number of the source or sink and by id."""

    def __init__(self, places: Sequence[Source | Sink]) -> None:
        self._before = pa.array(
            [f"{HW}:{local(f'{place.flow}/{place.name}')}/" for place in places], pa.string()
        )
        self._index = np.zeros(max((place.no for place in places), default=0) + 1, np.int64)
        self._index[[place.no for place in places]] = np.arange(len(places))

    def of(self, numbers: Any, ids: pa.Array) -> pa.Array:
        """Names by number and id."""
        before: pa.Array | str = self._before[0].as_py()
        if len(self._before) > 1:
            before = self._before.take(pa.array(self._index[numbers]))
        return joined(before, ids.cast(pa.string()))


class _Batches:
    """Which run committed a batch, and when."""

    def __init__(self, edges: Edges, seqs: list[int]) -> None:
        self._seqs = np.array(seqs, np.int64)
        rows = edges.reader.query(
            "SELECT b.seq, b.batch, b.watermark, b.committed_at, f.query_id, f.flow, f.capture, "
            "f.finished, l.first, l.last FROM batches b JOIN flows f USING (query_id) JOIN "
            "(SELECT query_id, min(committed_at) AS first, max(committed_at) AS last FROM batches "
            "GROUP BY query_id) l USING (query_id) "
            "WHERE b.seq IN (SELECT unnest(?::BIGINT[])) ORDER BY b.seq",
            [seqs],
        )
        self._times = rows["committed_at"].combine_chunks().cast(TIME)
        self._marks = rows["watermark"].combine_chunks().cast(TIME)
        self._numbers = rows["batch"].to_numpy()
        runs = rows.select(["query_id", "flow", "capture", "finished", "first", "last"])
        distinct = runs.group_by(runs.column_names).aggregate([]).sort_by("query_id")
        self.runs = [Run(**row) for row in distinct.to_pylist()]
        places = {run.query_id: place for place, run in enumerate(self.runs)}
        self._run = np.array([places[one] for one in rows["query_id"].to_pylist()], np.int64)
        self._names = pa.array([run.name for run in self.runs], pa.string())

    def of(self, seqs: pa.Array) -> tuple[pa.Array, pa.Array]:
        """The runs of batches by name, and the times of their commits."""
        at = np.searchsorted(self._seqs, seqs.to_numpy())
        return self._names.take(pa.array(self._run[at])), self._times.take(pa.array(at))

    def step(self, seq: int, results: int, edges: int, records: int) -> Step:
        """A batch, with what it has in the graph."""
        at = int(np.searchsorted(self._seqs, seq))
        return Step(
            self.runs[self._run[at]],
            int(self._numbers[at]),
            self._times[at].as_py(),
            self._marks[at].as_py(),
            results,
            edges,
            records,
        )


def _bounded(
    chosen: Iterator[pa.RecordBatch], contents: Callable[[pa.RecordBatch], pa.Table]
) -> Iterator[tuple[pa.RecordBatch, pa.Table]]:
    """Ids and their contents, as many rows at a time as fit into the memory meant for them."""
    most = _FIRST
    for batch in chosen:
        start = 0
        while start < batch.num_rows:
            some = batch.slice(start, most)
            rows = contents(some)
            yield some, rows
            start += some.num_rows
            each = max(1, rows.nbytes // max(1, rows.num_rows))
            most = min(ROWS, max(1, _BYTES // each))
