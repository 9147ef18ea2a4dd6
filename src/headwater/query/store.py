"""The store as users query it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headwater.errors import HeadwaterError, StoreError
from headwater.query import (
    backward,
    erasing,
    follow,
    forward,
    join,
    marks,
    partial,
    results,
    workflow,
)
from headwater.query.contents import ContentQueries
from headwater.query.edges import Edges
from headwater.query.export_queries import ExportQueries
from headwater.query.jobs import JobQueries
from headwater.query.live_queries import LiveQueries
from headwater.query.mark_queries import MarkQueries
from headwater.query.opened import LISTS, ResultIds, one_id, values
from headwater.query.predicate import Selection, Time
from headwater.query.show_queries import ShowQueries
from headwater.store import ids as record_ids
from headwater.store.catalog import Catalog
from headwater.store.marks import erased_among

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from headwater.flow.flow import Flow
    from headwater.query.follow import Match
    from headwater.query.frames import Frames
    from headwater.replay.result import ReplayedResult
    from headwater.store.reader import OpenReader


class Store(JobQueries, LiveQueries, MarkQueries, ExportQueries, ShowQueries, ContentQueries):
    """Results, the source records they came from, and the results that records reached.

    Answers are `pyarrow.Table`s; times are UTC.
    """

    def __init__(self, reader: OpenReader, flow: Flow | None = None) -> None:
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
        many = isinstance(id, LISTS)
        asked = np.array(
            [record_ids.resolved(known, one, self._reader.query) for one in values(id)], np.int64
        )
        sinks = self._catalog.sinks_of(known) if sink is None else (self._sink(sink),)
        if where is not None and len(sinks) > 1:
            names = ", ".join(one.name for one in sinks)
            raise HeadwaterError(f"forward(where=...) needs sink=, one of: {names}")
        selection = Selection.of(None, where, since, until)
        shown = None if many else values(id)[0]
        return forward.forward(
            self._edges, known, sinks, np.unique(asked), selection, many=many, given=shown
        )

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
        if isinstance(id, LISTS):
            raise HeadwaterError("why_not asks for one record at a time")
        asked = record_ids.resolved(known, values(id)[0], self._reader.query)
        if len(erased_among(self._reader.query, known, np.array([asked], np.int64))):
            raise HeadwaterError(
                f"record {asked} of source {source!r} was erased: what became of it can't be told"
            )
        self._refresh()
        below = tuple(one for one in self._catalog.sinks if one.flow == known.flow)
        sinks = below if sink is None else (self._sink(sink),)
        return why_not.why_not(self._edges, known, sinks, asked, values(id)[0])

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

    def frames(self, spark: SparkSession | None = None) -> Frames:
        """A lake's results, records and edges for Spark, for large questions, as they are now.

        The session is the active one where none is given.
        """
        from headwater.query.frames import Frames
        from headwater.query.spark import session
        from headwater.store.lake.reader import LakeReader

        if not isinstance(self._reader, LakeReader):
            raise StoreError(
                f"{self._reader.path} is a store in one file, which Spark's tasks can't read: "
                "take hw.to_spark(store.results(…)), or copy it to a lake (headwater copy)"
            )
        self._refresh()
        return Frames(self._reader, self._catalog, session(spark))

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
