"""Edges between results and records: read from the store, or found by a replay.

A sink captured as `eager` has its edges in the store. For the lazy modes a replay finds them, of
all asked results at once.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import UnsupportedError
from headwater.query import records
from headwater.query.columns import FIXED
from headwater.query.live import live_flows
from headwater.query.results import ask, view
from headwater.store.among import FEW, among
from headwater.store.batch import ID, SEQ, TIME
from headwater.store.compaction import COMPACTED

if TYPE_CHECKING:
    from headwater.query.live import LiveFlow
    from headwater.query.predicate import Selection
    from headwater.replay.engine import Engine
    from headwater.store.catalog import Catalog, Sink, Source
    from headwater.store.reader import OpenReader

Ids = npt.NDArray[np.int64]

_OF_RESULTS = pa.schema(
    [
        ("result_id", pa.int64()),
        ("source_no", pa.int16()),
        ("source_id", pa.int64()),
        ("seq", pa.int64()),
    ]
)
_OF_RECORDS = pa.schema(
    [
        ("source_id", pa.int64()),
        ("sink_no", pa.int16()),
        ("result_id", pa.int64()),
        ("seq", pa.int64()),
    ]
)


_FRESH = 1.0
"""Seconds for which what a moment ago was so is taken to be so still, where that stays exact."""


class Edges:
    """The edges of a store."""

    def __init__(self, reader: OpenReader, catalog: Catalog, flow: Any = None) -> None:
        self.reader = reader
        self.catalog = catalog
        self._flow = flow
        self._engine: Engine | None = None
        self._compacted = (0, -math.inf)
        self._not_live: dict[str, float] = {}
        """Flows that kept no live graph, and when that was asked."""

    @property
    def engine(self) -> Engine:
        """What replays; it needs Spark, so it is made only when it is asked for."""
        from headwater.replay.engine import Engine

        if self._engine is None:
            self._engine = Engine(self.reader, self.catalog)
            if self._flow is not None:
                self._engine.use(self._flow)
        self._engine.catalog = self.catalog
        return self._engine

    @property
    def rows_read(self) -> int:
        """How many rows of source files the latest replay took in; 0 before the first."""
        return 0 if self._engine is None else self._engine.rows_read

    def of_results(self, sink: Sink, selection: Selection) -> pa.Table:
        """The edges of the selected results: `result_id`, `source_no`, `source_id`, `seq`."""
        if sink.is_lazy:
            chosen = self.chosen(sink, selection)
            stored = self._stored(sink, chosen)
            has = pc.is_in(chosen["result_id"], stored["result_id"].combine_chunks())
            return _ordered([stored, self._replayed(sink, chosen.filter(pc.invert(has)))])
        columns = "SELECT e.result_id, e.source_no, e.source_id, e.seq FROM edges e"
        order = "ORDER BY e.result_id, e.source_no, e.source_id"
        if selection.ids is not None and 0 < len(selection.ids) <= FEW:
            # Known batches as constants read a few row groups; a join reads them all.
            batches = self._batches_of(sink, selection)
            if not batches:
                return _OF_RESULTS.empty_table()
            seqs, params = among(sorted(set(batches.values())))
            ids, more = among(list(batches))
            edges = self.reader.query(
                f"{columns} WHERE e.seq {seqs} AND e.sink_no = {sink.no} AND e.result_id {ids}",
                [*params, *more],
            )
            # A few edges are sorted faster here than by a plan.
            return _ordered([edges])
        condition, params = selection.sql()
        chosen = f"SELECT result_id, {SEQ} FROM {view(sink)} WHERE {condition}"
        return ask(
            self.reader,
            f"{columns} JOIN ({chosen}) r ON e.result_id = r.result_id AND e.seq = r.{SEQ} "
            f"WHERE e.sink_no = {sink.no} {order}",
            params,
            selection,
        )

    def of_records(self, source: Source, sinks: tuple[Sink, ...], ids: Ids) -> pa.Table:
        """The edges of records: `source_id`, `sink_no`, `result_id`, `seq`, in this order."""
        upto = self._upto()
        match, params = among(ids)
        columns = "source_id, sink_no, result_id, seq"
        condition = f"source_no = {source.no} AND source_id {match}"
        order = " ORDER BY ALL" if len(ids) > 1 else ""
        stored = self.reader.query(
            f"SELECT {columns} FROM edges_by_record WHERE {condition} AND seq <= ? UNION ALL "
            f"SELECT {columns} FROM edges WHERE {condition} AND seq > ?{order}",
            [*params, upto] * 2,
        )
        if not order:
            stored = stored.sort_by([(name, "ascending") for name in _OF_RECORDS.names])
        lazy = [sink for sink in sinks if sink.is_lazy]
        if not lazy:
            return stored
        tables = [stored, *(self._reached(source, sink, ids) for sink in lazy)]
        return pa.concat_tables(table.cast(_OF_RECORDS) for table in tables).sort_by(
            [(name, "ascending") for name in _OF_RECORDS.names]
        )

    def _batches_of(self, sink: Sink, selection: Selection) -> dict[int, int]:
        """The batches of some results, by id, of those that the selection has."""
        assert selection.ids is not None
        wanted, found = set(selection.ids), dict[int, int]()
        if not selection.filters:
            upto = self._upto()
            match, params = among(selection.ids)
            known = self.reader.query(
                f"SELECT result_id, seq FROM results_by_id WHERE sink_no = {sink.no} "
                f"AND result_id {match} UNION ALL SELECT {ID}, {SEQ} FROM result_{sink.no} "
                f"WHERE {SEQ} > ? AND {ID} {match}",
                [*params, upto, *params],
            )
            found = dict(zip(*(column.to_pylist() for column in known.columns), strict=True))
            wanted -= found.keys()
        if wanted:
            chosen = self.chosen(sink, replace(selection, ids=tuple(wanted)))
            found |= zip(*(column.to_pylist() for column in chosen.columns), strict=True)
        return found

    def _upto(self) -> int:
        """Up to which batch edges are sorted, as it was a moment ago.

        An older answer is as exact, whatever is compacted meanwhile: see `store/schema.py`.
        """
        upto, at = self._compacted
        now = time.monotonic()
        if now - at > _FRESH:
            upto = int(self.reader.query(COMPACTED)[0][0].as_py())
            self._compacted = (upto, now)
        return upto

    def live_flow(self, name: str) -> LiveFlow | None:
        """A flow with a live graph; None if it keeps none, or kept none a moment ago.

        Without one nothing is known of what is final, and that is never wrong to say.
        """
        now = time.monotonic()
        if now - self._not_live.get(name, -math.inf) <= _FRESH:
            return None
        found = live_flows(self.reader, name).get(name)
        if found is None:
            self._not_live[name] = now
        return found

    def rows_of_step(self, sink: Sink, source: Source, results: Ids, keys: Ids) -> pa.Table:
        """The rows of a step in terms of which a sink is captured, by their keys."""
        try:
            rows = self.engine.step_rows(sink, np.unique(results), source.name, keys)
        except UnsupportedError as error:
            raise UnsupportedError(f"{error}; ask for the ids alone, columns=False") from error
        schema = pa.schema([(ID, pa.int64()), (TIME, FIXED["event_time"]), *source.schema])
        return pa.table(
            [column.cast(f.type) for column, f in zip(rows.columns, schema, strict=True)],
            schema=schema,
        )

    def chosen(self, sink: Sink, selection: Selection) -> pa.Table:
        """The selected results: `result_id` and the batch, as `__hw_seq`."""
        condition, params = selection.sql()
        sql = f"SELECT result_id, {SEQ} FROM {view(sink)} WHERE {condition}"
        return ask(self.reader, sql, params, selection)

    def _stored(self, sink: Sink, chosen: pa.Table) -> pa.Table:
        """The edges of a lazy sink's results whose sets were stored before a record was erased."""
        return self.reader.query(
            f"SELECT result_id, source_no, source_id, seq FROM edges WHERE sink_no = {sink.no} "
            "AND result_id IN (SELECT unnest(?::BIGINT[]))",
            [chosen["result_id"].to_pylist()],
        ).cast(_OF_RESULTS)

    def _replayed(self, sink: Sink, chosen: pa.Table) -> pa.Table:
        if not chosen.num_rows:
            return _OF_RESULTS.empty_table()
        if sink.is_mapreduce:
            return self._mapped(sink, chosen)
        found = self.engine.sets(sink, chosen["result_id"].to_numpy())
        sources = {source.name: source.no for source in self.catalog.sources_of(sink)}
        numbers = np.array([sources[name] for name in found["source"].to_pylist()], np.int16)
        places = pc.index_in(found["result_id"], chosen["result_id"])
        edges = pa.table(
            [
                found["result_id"],
                pa.array(numbers),
                found["source_id"],
                chosen[SEQ].take(places),
            ],
            schema=_OF_RESULTS,
        )
        return _ordered([edges])

    def _mapped(self, sink: Sink, chosen: pa.Table) -> pa.Table:
        """The edges of a map-reduce's results, by mapping the files of their windows again."""
        from headwater.mapreduce.asking import Asked

        (source,) = self.catalog.sources_of(sink)
        edges = Asked(self.reader.query, sink, source).edges(chosen["result_id"].to_numpy())
        number = pa.array(np.full(edges.num_rows, source.no, np.int16))
        columns = [edges["result_id"], number, edges["source_id"], edges["seq"]]
        return _ordered([pa.table(columns, schema=_OF_RESULTS)])

    def _reached(self, source: Source, sink: Sink, ids: Ids) -> pa.Table:
        """The edges of records to a sink that has none stored: of those that may have some."""
        if sink.is_mapreduce:
            from headwater.mapreduce.asking import Asked

            found = Asked(self.reader.query, sink, source).reached(ids)
            columns = [found["source_id"], np.full(found.num_rows, sink.no, np.int16)]
            columns += [found["result_id"], found["seq"]]
            return pa.table(columns, schema=_OF_RECORDS)
        from headwater.replay.candidates import candidates

        own = records.found(self.reader, source, ids)
        either = []
        if own.num_rows:
            either.append(candidates(self.engine.node(sink), source.name, own))
        if (erased := self._erased(source, ids)) is not None:
            # Nobody knows their times and keys any more; the edges of earlier results are stored.
            either.append(f"{SEQ} > {erased}")
        if not either:
            return _OF_RECORDS.empty_table()
        chosen = self.reader.query(
            f"SELECT {ID} AS result_id, {SEQ} FROM result_{sink.no} "
            f"WHERE ({' OR '.join(f'({one})' for one in either)}) "
            f"AND {ID} NOT IN (SELECT result_id FROM edges WHERE sink_no = {sink.no})"
        )
        edges = self._replayed(sink, chosen)
        mine = pc.and_(
            pc.equal(edges["source_no"], source.no),
            pc.is_in(edges["source_id"], pa.array(ids)),
        )
        edges = edges.filter(mine)
        number = pa.array(np.full(edges.num_rows, sink.no, np.int16))
        return pa.table(
            [edges["source_id"], number, edges["result_id"], edges["seq"]], schema=_OF_RECORDS
        )

    def _erased(self, source: Source, ids: Ids) -> int | None:
        """The last batch before some of these records were erased; None if none was."""
        rows = self.reader.query(
            f"SELECT min(seq) AS seq FROM erased WHERE source_no = {source.no} "
            "AND id IN (SELECT unnest(?::BIGINT[]))",
            [ids.tolist()],
        )
        seq: int | None = rows["seq"][0].as_py()
        return seq


def _ordered(tables: list[pa.Table]) -> pa.Table:
    keys = [(name, "ascending") for name in ("result_id", "source_no", "source_id")]
    table = pa.concat_tables(tables)
    return table.take(pc.sort_indices(table, sort_keys=keys))
