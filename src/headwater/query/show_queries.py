"""`store.show`: what an answer needs to be drawn, and no more of it than can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.drawing import Item, Shown
from headwater.errors import HeadwaterError, UnknownId, UnknownName
from headwater.query import forward, records, results
from headwater.query.opened import Opened, one_id, values
from headwater.query.predicate import Selection
from headwater.store import ids as record_ids

if TYPE_CHECKING:
    from headwater.store.catalog import Sink, Source

LIMIT = 40
"""Records, or results, of a picture."""


class ShowQueries(Opened):
    """The part of a store that draws its answers."""

    def show(
        self,
        sink: Any = None,
        result_id: Any = None,
        *,
        source: str | None = None,
        id: object = None,
        limit: int = LIMIT,
    ) -> Shown:
        """An answer that a notebook draws: what a result came from, or what a record reached.

        `show(result_id)` finds the sink itself if only one has such a result, else it is
        `show(sink, result_id)`; a list shows several results of a sink. `show(source=…, id=…)` goes
        forward. At most `limit` records, or results, are drawn; the caption says of how many.
        """
        if limit < 1:
            raise HeadwaterError(f"limit={limit}: give 1 or more")
        if source is not None or id is not None:
            if source is None or id is None or result_id is not None:
                raise HeadwaterError(_HOW)
            self._refresh()
            within = None if sink is None else self._catalog.sink(str(sink))
            return self._forward(self._catalog.source(source), id, within, limit)
        if result_id is None:
            sink, result_id = None, sink
        if result_id is None:
            raise HeadwaterError(_HOW)
        self._refresh()
        asked = _listed(result_id)
        known = self._catalog.sink(sink) if sink is not None else self._sink_of(asked, result_id)
        return self._backward(known, asked, limit)

    def _sink_of(self, ids: list[int], given: object) -> Sink:
        """The only sink that has a result."""
        sinks = [one for one in self._catalog.sinks if not one.is_step]
        if len(sinks) == 1:
            return sinks[0]
        having = [s for s in sinks if all(results.exists(self._reader, s, one) for one in ids)]
        if not having:
            names = ", ".join(one.name for one in sinks) or "none yet"
            raise UnknownId(f"no sink has a result with the id {given}; the store has: {names}")
        if len(having) > 1:
            names = " or ".join(f"show({_unique(s, sinks)!r}, {given})" for s in having)
            raise UnknownName(f"several sinks have a result {given}; say which: {names}")
        return having[0]

    # --- backward -----------------------------------------------------------------------------

    def _backward(self, sink: Sink, ids: list[int], limit: int) -> Shown:
        asked = list(dict.fromkeys(ids))[:limit]
        selection = Selection.of(tuple(asked), None, None, None)
        rows = results.results(self._reader, sink, selection)
        items = {item.id: item for item in _items("result", sink.name, rows)}
        for one in asked:
            if one not in items:
                raise UnknownId(f"sink {sink.name!r} has no result with the id {one}")
        notes = []
        if len(set(ids)) > limit:
            notes.append(f"{limit} of {len(set(ids)):,} results are shown.")
        edges = self._edges.of_results(sink, selection)
        found: list[tuple[Source, list[int]]] = []
        total = 0
        for source in self._catalog.sources_of(sink):
            part = edges.filter(pa.array(edges["source_no"].to_numpy() == source.no))
            every = list(dict.fromkeys(part["source_id"].to_pylist()))
            found.append((source, every[: max(0, limit - total)]))
            total += len(every)
        shown: dict[tuple[int, int], Item] = {}
        for source, some in found:
            if some:
                drawn, note = self._contents(sink, source, some, edges)
                shown.update(((source.no, item.id), item) for item in drawn)
                notes += [note] if note else []
        places = {key: place for place, key in enumerate(shown)}
        right = {one: place for place, one in enumerate(asked)}
        columns = (edges[name].to_pylist() for name in ("source_no", "source_id", "result_id"))
        drawn_edges = dict.fromkeys(
            (places[no, record], right[result])
            for no, record, result in zip(*columns, strict=True)
            if (no, record) in places
        )
        return Shown(
            "backward",
            tuple(shown.values()),
            tuple(items[one] for one in asked),
            tuple(drawn_edges),
            total,
            tuple(notes),
        )

    def _contents(
        self, sink: Sink, source: Source, ids: list[int], edges: pa.Table
    ) -> tuple[list[Item], str | None]:
        """Records with their own columns; without, where these can't be had."""
        wanted, note = np.array(ids, np.int64), None
        try:
            if source.is_step:
                part = edges.filter(pa.array(edges["source_no"].to_numpy() == source.no))
                part = part.filter(pa.array(np.isin(part["source_id"].to_numpy(), wanted)))
                keys = part["source_id"].to_numpy()
                known = self._edges.rows_of_step(sink, source, part["result_id"].to_numpy(), keys)
            else:
                known = records.found(self._reader, source, wanted)
        except HeadwaterError as error:
            known = records.found(self._reader, source, wanted, own=False)
            note = f"The columns of {source.name} can't be shown: {error}"
        rows = records.beside(known, wanted)
        return _items("record", source.name, rows.set_column(0, "id", pa.array(wanted))), note

    # --- forward ------------------------------------------------------------------------------

    def _forward(self, source: Source, id: object, sink: Sink | None, limit: int) -> Shown:
        if isinstance(id, list):
            raise HeadwaterError("show draws what one record reached; give one id")
        number = record_ids.resolved(source, id, self._reader.query)
        asked = np.array([number], np.int64)
        sinks = self._catalog.sinks_of(source) if sink is None else (sink,)
        sinks = tuple(one for one in sinks if not one.is_step)
        everything = Selection.of(None, None, None, None)
        reached, final, total = list[Item](), None, 0
        for one in sinks:
            rows = forward.forward(self._edges, source, (one,), asked, everything, many=False)
            final = rows["final"][0].as_py() if rows.num_rows else final
            rows = rows.filter(rows["result_id"].is_valid())
            total += rows.num_rows
            rows = rows.sort_by([("event_time", "ascending"), ("result_id", "ascending")])
            rows = rows.slice(0, max(0, limit - len(reached))).drop_columns(["sink", "final"])
            reached += _items("result", one.name, rows)
        record = _items("record", source.name, self._record(source, asked))
        notes = []
        if not total:
            notes.append(f"store.why_not({source.name!r}, {id!r}) says what became of it.")
        if final is not None:
            ends = "No more results of it can come." if final else "More results of it may come."
            notes.append(ends)
        edges = tuple((0, place) for place in range(len(reached)))
        return Shown("forward", tuple(record), tuple(reached), edges, total, tuple(notes))

    def _record(self, source: Source, asked: Any) -> pa.Table:
        try:
            known = records.found(self._reader, source, asked, own=not source.is_step)
        except HeadwaterError:
            known = records.found(self._reader, source, asked, own=False)
        return records.beside(known, asked).set_column(0, "id", pa.array(asked))


_HOW = (
    "show takes a result_id, a sink and a result_id, or source= and id=: show(7), "
    "show('stopped', 7), show(source='reports', id=7)"
)


def _listed(given: Any) -> list[int]:
    return [one_id(one) for one in (given if isinstance(given, tuple) else values(given))]


def _unique(sink: Sink, sinks: list[Sink]) -> str:
    """What the sink is called where several flows may have one of its name."""
    alike = [one for one in sinks if one.name == sink.name]
    return sink.name if len(alike) == 1 else sink.qualified


def _items(kind: Any, name: str, rows: pa.Table) -> list[Item]:
    """Rows of an id, a time, and own columns."""
    own = rows.column_names[2:]
    return [
        Item(kind, name, row[0], row[1], dict(zip(own, row[2:], strict=True)))
        for row in zip(*(column.to_pylist() for column in rows.columns), strict=True)
    ]
