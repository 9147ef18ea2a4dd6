"""Erasing: the contents of records leave the store, what the graph knows of them stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import HeadwaterError, StoreError
from headwater.query import marks
from headwater.query.predicate import Selection
from headwater.store.batch import ID
from headwater.store.catalog import LAZY
from headwater.store.commands import apply
from headwater.store.marks import EDGES, LATE, Erase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.query.edges import Edges
    from headwater.store.catalog import Sink, Source
    from headwater.store.reader import Reader

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class EraseReport:
    """An erasure: how many records, how many copies it removed, and the results that hold them.

    The values inside these results are as they were: they are listed for whoever must judge them.
    """

    source: str
    records: int
    copies: int
    results: pa.Table

    def __repr__(self) -> str:
        return (
            f"EraseReport(source={self.source!r}, records={self.records}, copies={self.copies}, "
            f"results={self.results.num_rows})"
        )


def erase(
    edges: Edges,
    source: Source,
    *,
    where: str | None,
    given: Sequence[object] | None,
    mark: int | None,
    reason: str,
    dry_run: bool,
) -> EraseReport:
    """Erase the contents of records; with `dry_run` only say what would be erased."""
    marks.one_of(where=where, ids=given, mark=mark)
    if source.is_step:
        raise HeadwaterError(
            f"{source.name!r} is a step in terms of which sinks are captured: it has no contents "
            "in the store; erase records of a source"
        )
    reader, sinks = edges.reader, edges.catalog.sinks_of(source)
    for sink in sinks:
        if sink.capture in LAZY and source.complete:
            _require_finished(reader, source, sink)
    # Read first: what comes after it is found without the contents.
    seq = marks.latest(reader)
    ids = (
        marks.records(reader, source, mark)
        if mark is not None
        else marks.chosen(reader, source, where, given)[0]
    )
    if not len(ids):
        return EraseReport(source.name, 0, 0, marks.TOUCHED.empty_table())
    if dry_run:
        results = marks.touched(edges, source, sinks, ids)
        return EraseReport(source.name, len(ids), _copies(reader, source, ids), results)
    known = marks.numbers(reader, source)
    late = marks.later(reader, source, ids).rename_columns(["mark_no", "id"]).cast(LATE)
    found = _sets(edges, source, ids)
    change = Erase(source.no, ids, reason, seq, tuple(known), late, found)
    copies = apply(reader.path, change)
    return EraseReport(source.name, len(ids), copies, marks.touched(edges, source, sinks, ids))


def require_not_erased(reader: Reader, sink: Sink, results: Sequence[int]) -> None:
    """Refuse to compute what needs contents that were erased."""
    rows = reader.query(
        "SELECT min(e.result_id) AS result_id FROM edges e JOIN erased x "
        "ON x.source_no = e.source_no AND x.id = e.source_id "
        f"WHERE e.sink_no = {sink.no} AND e.result_id IN (SELECT unnest(?::BIGINT[]))",
        [list(results)],
    )
    if (result := rows["result_id"][0].as_py()) is not None:
        raise HeadwaterError(
            f"result {result} of sink {sink.name!r} came from a record that was erased: "
            "it can't be computed again"
        )


def _sets(edges: Edges, source: Source, ids: Ids) -> pa.Table:
    """The edges of results whose sets are found by a replay, and need the contents for that."""
    tables = [EDGES.empty_table()]
    for sink in edges.catalog.sinks_of(source):
        if not sink.is_lazy:
            continue
        if source.complete:
            # Replays run over the store's copies, and one that is missing may change any result.
            selection = Selection()
        else:
            reached = edges.of_records(source, (sink,), ids)
            mine = reached.filter(pc.equal(reached["sink_no"], sink.no))
            selection = Selection(ids=tuple(np.unique(mine["result_id"].to_numpy()).tolist()))
        if selection.ids is None or selection.ids:
            found = edges.of_results(sink, selection)
            number = pa.array(np.full(found.num_rows, sink.no, np.int16))
            tables.append(found.append_column("sink_no", number).select(EDGES.names).cast(EDGES))
    return pa.concat_tables(tables)


def _require_finished(reader: Reader, source: Source, sink: Sink) -> None:
    rows = reader.query(
        "SELECT count(*) AS n FROM flows WHERE flow = ? AND NOT finished", [source.flow]
    )
    if rows["n"][0].as_py():
        raise StoreError(
            f"can't erase records of source {source.name!r} yet: sink {sink.name!r} "
            f"({sink.capture}) is replayed from the store's copies of it, for results that may "
            f"still come; end flow {source.flow!r} with run.finish(), or capture the sink as eager"
        )


def _copies(reader: Reader, source: Source, ids: Ids) -> int:
    if not source.kept:
        return 0
    rows = reader.query(
        f"SELECT count(*) AS n FROM record_{source.no} WHERE {ID} IN (SELECT unnest(?::BIGINT[]))",
        [ids.tolist()],
    )
    return int(rows["n"][0].as_py())
