"""The store as users query it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from headwater.errors import HeadwaterError, UnknownId, UnknownName
from headwater.query import (
    backward,
    erasing,
    follow,
    forward,
    join,
    marks,
    partial,
    results,
    stats,
    workflow,
)
from headwater.query.edges import Edges
from headwater.query.jobs import JobQueries
from headwater.query.live_queries import LiveQueries, one_id
from headwater.query.predicate import Selection, Time
from headwater.query.show_queries import ShowQueries
from headwater.store import ids as record_ids
from headwater.store.catalog import Catalog, Sink, Source
from headwater.store.marks import erased_among

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater.export import Exported
    from headwater.export.choosing import Direction
    from headwater.export.files import Target
    from headwater.flow.flow import Flow
    from headwater.query.erasing import EraseReport
    from headwater.query.follow import Match
    from headwater.query.marks import MarkReport
    from headwater.query.stats import Stats
    from headwater.replay.result import ReplayedResult
    from headwater.store.reader import StoreReader

ResultIds: TypeAlias = "int | Sequence[int] | pa.Array | pa.ChunkedArray"


class Store(JobQueries, LiveQueries, ShowQueries):
    """Results, the source records they came from, and the results that records reached.

    Answers are `pyarrow.Table`s; times are UTC.
    """

    def __init__(self, reader: StoreReader, flow: Flow | None = None) -> None:
        self._reader = reader
        self._catalog = Catalog.read(reader.query)
        self._edges = Edges(reader, self._catalog, flow)

    def results(
        self,
        sink: str | None = None,
        *,
        where: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """A sink's results in order of delivery: `result_id`, `event_time`, own columns.

        `where` is SQL over these columns; `since` and `until` bound the event time, [since, until).
        """
        selection = Selection.of(None, where, since, until)
        return results.results(self._reader, self._sink(sink), selection, limit)

    def results_page(
        self,
        sink: str | None = None,
        *,
        where: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
        limit: int = 100,
        newest: bool = True,
        after: tuple[int, int] | None = None,
    ) -> tuple[pa.Table, tuple[int, int] | None]:
        """Some results of a sink, the newest first, and the place after which to go on, if any."""
        selection = Selection.of(None, where, since, until)
        return results.page(
            self._reader, self._sink(sink), selection, limit, newest=newest, after=after
        )

    def backward(
        self,
        sink: str | None = None,
        result_id: ResultIds | None = None,
        *,
        entity: str | None = None,
        steps: bool = False,
        where: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
        columns: bool = True,
        to: str | None = None,
    ) -> pa.Table:
        """The source records of a result: `source`, `id`, `event_time`, own columns.

        With a list of results, or with conditions in place of ids, the first column is `result_id`.
        `columns=False` answers without the records' own columns, and so without the source.
        `to` names a source, to leave out the others, or a step: then the answer has the rows of
        that step which the result came from, in place of the records behind them.
        `entity` asks across jobs and flows instead: `id`, `kind`, `job`, `event_time` of the
        workflow's inputs that it depends on; with `steps`, of the entities between jobs as well.
        """
        if entity is not None:
            return workflow.reached(self._edges, entity, "backward", steps=steps)
        known = self._sink(sink)
        selection, many = self._selection(result_id, where, since, until)
        if to is not None and to not in {s.name for s in self._catalog.sources_of(known)}:
            if columns:
                chosen = self._edges.chosen(known, selection)["result_id"].to_pylist()
                erasing.require_not_erased(self._reader, known, chosen)
            answer = partial.backward(self._edges, known, selection, to, columns=columns, many=many)
        else:
            answer = backward.backward(
                self._edges, self._catalog, known, selection, columns=columns, many=many, to=to
            )
        if not many and not answer.num_rows and selection.ids is not None:
            self._require(known, selection.ids[0])
        return answer

    def forward(
        self,
        source: str | None = None,
        id: object = None,
        *,
        entity: str | None = None,
        steps: bool = False,
        sink: str | None = None,
        where: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
    ) -> pa.Table:
        """The results of a record: `sink`, `result_id`, `event_time`, `final`, own columns.

        `id` is the record's id or the user's own value (text; a tuple for several id columns), or a
        list of them; then the first column is `id`. `final` is whether no more can come, if known.
        `entity` asks across jobs and flows instead, as in `backward`, for the workflow's outputs.
        """
        if entity is not None:
            return workflow.reached(self._edges, entity, "forward", steps=steps)
        if source is None:
            raise HeadwaterError("forward needs a source and an id, or entity=")
        known = self._source(source)
        many = isinstance(id, _LISTS)
        asked = np.array(
            [record_ids.resolved(known, one, self._reader.query) for one in _values(id)], np.int64
        )
        sinks = self._catalog.sinks_of(known) if sink is None else (self._sink(sink),)
        if where is not None and len(sinks) > 1:
            names = ", ".join(one.name for one in sinks)
            raise HeadwaterError(f"forward(where=...) needs sink=, one of: {names}")
        selection = Selection.of(None, where, since, until)
        return forward.forward(self._edges, known, sinks, np.unique(asked), selection, many=many)

    def join(
        self,
        sink: str,
        result_id: ResultIds | None = None,
        *,
        where: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
    ) -> pa.Table:
        """Each result beside each of its source records, with the own columns of both."""
        known = self._sink(sink)
        selection, many = self._selection(result_id, where, since, until)
        answer = join.join(self._edges, self._catalog, known, selection)
        if not many and not answer.num_rows and selection.ids is not None:
            self._require(known, selection.ids[0])
        return answer

    def replay(self, sink: str, result_id: int, *, steps: bool = False) -> ReplayedResult:
        """Compute a result again from its provenance alone, and compare it with the stored one.

        The answer has `row`, `matches`, `differences` by column, `sources` (the records) and, with
        `steps=True`, the rows of every step on the way.
        """
        from headwater.replay.result import replay_result

        known = self._sink(sink)
        if known.capture == "none":
            raise HeadwaterError(
                f"sink {sink!r} was captured with capture='none': its results have no provenance"
            )
        erasing.require_not_erased(self._reader, known, [one_id(result_id)])
        records = self.backward(sink, result_id)
        return replay_result(self._edges.engine, known, one_id(result_id), records, steps=steps)

    def why_not(self, source: str, id: object, *, sink: str | None = None) -> pa.Table:
        """What became of a record on its way to each sink, and why it is in no result there.

        The answer has `sink`, `kind`, `step`, `detail` (one line), `event_time`, `watermark`,
        `closes_at`, `survivor`, `result_id` and `values` (JSON), a row for each end that the record
        met: `kind` is `reached`, `late`, `filtered`, `nothing`, `open`, `unmatched`, `duplicate`,
        `passed_over` or `unread`. `id` is as in `forward`, of one record.
        """
        from headwater.query import why_not

        known = self._source(source)
        if isinstance(id, _LISTS):
            raise HeadwaterError("why_not asks for one record at a time")
        asked = record_ids.resolved(known, _values(id)[0], self._reader.query)
        if len(erased_among(self._reader.query, known, np.array([asked], np.int64))):
            raise HeadwaterError(
                f"record {asked} of source {source!r} was erased: what became of it can't be told"
            )
        self._refresh()
        below = tuple(one for one in self._catalog.sinks if one.flow == known.flow)
        sinks = below if sink is None else (self._sink(sink),)
        return why_not.why_not(self._edges, known, sinks, asked)

    def watch(
        self,
        sink: str,
        *,
        where: str | None = None,
        after: int | None = None,
        to: str | None = None,
        marked: bool = False,
        wait: bool = True,
        timeout: float | None = None,
    ) -> Iterator[Match]:
        """A standing query: each new result that `where` selects, with its source records.

        `after` is the `position` of the last match that was dealt with; by default only what comes
        from now on. `to` is a webhook's URL or the directory of a stream: a match is yielded once
        it has been handed on there. `marked` leaves only results that hold a marked record.
        """
        known = self._sink(sink)
        selection = Selection.of(None, where, None, None)
        if after is None:
            latest = self._reader.query("SELECT coalesce(max(seq), 0) AS seq FROM batches")
            after = int(latest["seq"][0].as_py())
        # A broken predicate is told now, not with the first batch.
        results.results(self._reader, known, selection, 0)
        committed = follow.batches(self._reader, [known.flow], after, wait=wait, timeout=timeout)
        found = follow.matches(
            self._reader,
            known,
            selection,
            committed,
            lambda ids: self.backward(sink, ids),
            (lambda ids: marks.holding(self._edges, known, ids)) if marked else None,
        )
        return found if to is None else follow.delivered(found, to)

    def mark(
        self, source: str, *, where: str | None = None, ids: Any = None, reason: str = ""
    ) -> MarkReport:
        """Mark records, and so every result that holds one, now and as they come.

        `where` is SQL over the source's columns; where the store keeps the source's records, those
        that come later and match are marked as well. `ids` are as in `forward`.
        """
        self._refresh()
        given = None if ids is None else _values(ids)
        return marks.mark(self._edges, self._source(source), where, given, reason)

    def unmark(self, number: int) -> None:
        """Take a mark away."""
        marks.unmark(self._edges, number)

    def marks(self) -> pa.Table:
        """The marks: `mark`, `source`, `reason`, `predicate`, `marked_at`, `records` by now."""
        self._refresh()
        return marks.marks(self._edges)

    def marked(self, sink: str | None = None) -> pa.Table:
        """The results that hold a marked record: `sink`, `result_id`, `event_time`, `mark`, …

        A result with records of several marks has a row for each.
        """
        self._refresh()
        return marks.marked(self._edges, None if sink is None else self._sink(sink))

    def erase(
        self,
        source: str,
        *,
        where: str | None = None,
        ids: Any = None,
        mark: int | None = None,
        reason: str = "",
        dry_run: bool = False,
    ) -> EraseReport:
        """Remove the contents of records from the store, for good; ids and edges stay.

        A record that was erased has null columns in answers, is not read again from its source and
        not stored again when it is delivered again. Results keep their values: those that hold
        such a record are listed. `dry_run` only says what would be erased.
        """
        self._refresh()
        return erasing.erase(
            self._edges,
            self._source(source),
            where=where,
            given=None if ids is None else _values(ids),
            mark=mark,
            reason=reason,
            dry_run=dry_run,
        )

    def export(
        self,
        to: Target,
        *,
        format: str = "prov-json",
        sink: str | None = None,
        result_id: ResultIds | None = None,
        source: str | None = None,
        id: object = None,
        entity: str | None = None,
        direction: Direction = "backward",
        where: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
        batches: tuple[int | None, int | None] | None = None,
        columns: bool = True,
    ) -> Exported:
        """Write results, their records and what connects them to a file, or to a binary stream.

        `format` is `prov-json`, `prov-n`, `dot`, `graphml` or `openlineage`. What is written is the
        answer of `backward` (`sink` and `result_id`), of `forward` (`source` and `id`), or of
        either for an `entity`; or else all results, or those of a `sink`, `where` a condition
        holds, in a span of event time or of `batches` (the first and the last). A file appears
        whole or not at all.
        """
        from headwater import export

        self._refresh()
        known = None if source is None else self._source(source)
        given = list(result_id) if isinstance(result_id, tuple) else result_id
        asked = export.Asked(
            sink=None if sink is None else self._sink(sink),
            results=None if given is None else tuple(one_id(one) for one in _values(given)),
            source=known,
            records=None if id is None else self._records(known, id),
            entity=entity,
            direction=direction,
            selection=Selection.of(None, where, since, until),
            batches=batches,
            columns=columns,
        )
        return export.export(
            self._edges, asked, to, format, lambda: getattr(self, asked.direction)(entity=entity)
        )

    def sources(self) -> pa.Table:
        """The registered sources."""
        return self._reader.query("SELECT flow, name, definition FROM sources ORDER BY source_no")

    def sinks(self) -> pa.Table:
        """The registered sinks."""
        return self._reader.query("SELECT flow, name, definition FROM sinks ORDER BY sink_no")

    def flows(self) -> pa.Table:
        """The registered flows, one row per streaming query."""
        return self._reader.query("SELECT * FROM flows ORDER BY flow, query_id")

    def batches(self) -> pa.Table:
        """The committed batches, in order."""
        return self._reader.query(
            "SELECT f.flow, b.query_id, b.batch, b.watermark, b.results, b.edges, b.records, "
            "b.committed_at FROM batches b LEFT JOIN flows f USING (query_id) ORDER BY b.seq"
        )

    def entity(self, name: str, id: object) -> str:
        """The global name `hw:<flow>/<source-or-sink>/<id>` of a record or result."""
        try:
            source = self._source(name)
        except UnknownName:
            return entity_name(self._sink(name).flow, self._sink(name).name, int(str(id)))
        number = record_ids.resolved(source, id, self._reader.query)
        return entity_name(source.flow, source.name, number)

    def stats(self) -> Stats:
        """What the store takes in its file, by sink and by relation, and how it is encoded."""
        self._refresh()
        return stats.stats(self._reader, self._catalog)

    @property
    def replays(self) -> bool:
        """Whether some sink's provenance is found by a replay, which needs Spark."""
        return any(sink.is_lazy for sink in self._catalog.sinks)

    @property
    def rows_read(self) -> int:
        """How many rows of source files the latest replay took in; 0 before the first."""
        return self._edges.rows_read

    def close(self) -> None:
        """Let go of the store."""
        self._reader.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        try:
            self._refresh()
            sizes = self._reader.query("SELECT sum(results), sum(edges), count(*) FROM batches")
        except HeadwaterError as error:
            return f"Store({str(self._reader.path)!r}: {error})"
        counts = [column[0].as_py() or 0 for column in sizes.columns]
        sources = ", ".join(source.name for source in self._catalog.sources) or "no sources"
        sinks = ", ".join(sink.name for sink in self._catalog.sinks) or "no sinks"
        return (
            f"Store({str(self._reader.path)!r}: {sources} → {sinks}; {counts[0]:,} results, "
            f"{counts[1]:,} edges, {counts[2]:,} batches)"
        )

    def _refresh(self) -> None:
        self._catalog = self._edges.catalog = Catalog.read(self._reader.query)

    def _sink(self, name: str | None) -> Sink:
        if name is None:
            self._refresh()
            if len(self._catalog.sinks) == 1:
                return self._catalog.sinks[0]
            names = ", ".join(sink.name for sink in self._catalog.sinks) or "none yet"
            raise UnknownName(f"say which sink; the store has: {names}")
        try:
            return self._catalog.sink(name)
        except UnknownName:
            # A flow may have been registered since.
            self._refresh()
            return self._catalog.sink(name)

    def _source(self, name: str) -> Source:
        try:
            return self._catalog.source(name)
        except UnknownName:
            self._refresh()
            return self._catalog.source(name)

    def _selection(
        self,
        result_id: ResultIds | None,
        where: str | None,
        since: Time | None,
        until: Time | None,
    ) -> tuple[Selection, bool]:
        if result_id is None:
            return Selection.of(None, where, since, until), True
        # A tuple is several result ids, where it may be one id of a record.
        given = list(result_id) if isinstance(result_id, tuple) else result_id
        asked = tuple(one_id(one) for one in _values(given))
        return Selection.of(asked, where, since, until), isinstance(given, _LISTS)

    def _records(self, source: Source | None, id: object) -> tuple[int, ...]:
        """The ids of records, as the user gave them."""
        if source is None:
            return ()
        query = self._reader.query
        return tuple(record_ids.resolved(source, one, query) for one in _values(id))

    def _require(self, sink: Sink, result_id: int) -> None:
        if not results.exists(self._reader, sink, result_id):
            raise UnknownId(f"sink {sink.name!r} has no result with the id {result_id}")


def entity_name(flow: str, name: str, id: int) -> str:
    """The global name of a record or result.

    >>> entity_name("traffic", "reports", 7)
    'hw:traffic/reports/7'
    """
    return f"hw:{flow}/{name}/{id}"


_LISTS = (list, np.ndarray, pa.Array, pa.ChunkedArray)


def _values(given: Any) -> list[Any]:
    if isinstance(given, pa.Scalar):
        return [given.as_py()]
    if isinstance(given, pa.Array | pa.ChunkedArray):
        return list(given.to_pylist())
    if isinstance(given, np.ndarray):
        return list(given.tolist())
    return list(given) if isinstance(given, list) else [given]
