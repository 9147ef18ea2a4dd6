"""Marks: records that matter, and every result that holds one, now and as they come.

Which results are marked is not stored: it is read from the edges whenever somebody asks. A mark
with a predicate holds the records that matched when it was made, which are stored with it, and
those of later batches that match, which are looked for in the store's copies when somebody asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import HeadwaterError, PredicateError
from headwater.query.columns import FIXED, TIME, fixed
from headwater.query.predicate import Selection
from headwater.store import ids as record_ids
from headwater.store import matching
from headwater.store.batch import ID, SEQ
from headwater.store.batch import TIME as STORED_TIME
from headwater.store.catalog import unknown_name
from headwater.store.commands import apply
from headwater.store.marks import Mark, Unmark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.query.edges import Edges
    from headwater.store.catalog import Sink, Source
    from headwater.store.reader import Reader

Ids = npt.NDArray[np.int64]

TOUCHED = pa.schema(fixed("sink", "result_id", "event_time"))
"""The results that some records reached."""
MARKED = pa.schema([*TOUCHED, ("mark", pa.int32()), ("reason", pa.string())])
MARKS = pa.schema(
    [
        ("mark", pa.int32()),
        ("source", pa.string()),
        ("reason", pa.string()),
        ("predicate", pa.string()),
        ("marked_at", TIME),
        ("records", pa.int64()),
    ]
)
_PAIRS = pa.schema([("mark", pa.int32()), ("id", pa.int64())])


@dataclass(frozen=True, slots=True)
class MarkReport:
    """A new mark: its number, how many records it holds, and the results that they reached."""

    number: int
    source: str
    records: int
    results: pa.Table

    def __repr__(self) -> str:
        return (
            f"MarkReport(number={self.number}, source={self.source!r}, records={self.records}, "
            f"results={self.results.num_rows})"
        )


def mark(
    edges: Edges, source: Source, where: str | None, given: Sequence[object] | None, reason: str
) -> MarkReport:
    """Mark the records that match a predicate, or those of some ids."""
    one_of(where=where, ids=given)
    found, seq = chosen(edges.reader, source, where, given)
    number = apply(edges.reader.path, Mark(source.no, found, reason, where, seq))
    # What came while the mark was made is in it too.
    held = records(edges.reader, source, number)
    results = touched(edges, source, edges.catalog.sinks_of(source), held)
    return MarkReport(number, source.name, len(held), results)


def unmark(edges: Edges, number: int) -> None:
    """Take a mark away."""
    apply(edges.reader.path, Unmark(number))


def marks(edges: Edges) -> pa.Table:
    """The marks, and how many records each holds by now."""
    rows = _marks(edges.reader)
    by_no = {source.no: source for source in edges.catalog.sources}
    counts: dict[int, int] = {}
    for source in _of(edges, rows):
        held, count = np.unique(pairs(edges.reader, source)["mark"].to_numpy(), return_counts=True)
        counts |= dict(zip(held.tolist(), count.tolist(), strict=True))
    return pa.table(
        [
            rows["mark_no"],
            pa.array([by_no[no].name for no in rows["source_no"].to_pylist()], pa.string()),
            rows["reason"],
            rows["predicate"],
            rows["marked_at"],
            pa.array([counts.get(no, 0) for no in rows["mark_no"].to_pylist()], pa.int64()),
        ],
        schema=MARKS,
    )


def marked(edges: Edges, sink: Sink | None) -> pa.Table:
    """The results that hold a marked record: one row for each and each of its marks."""
    rows = _marks(edges.reader)
    reasons = dict(zip(rows["mark_no"].to_pylist(), rows["reason"].to_pylist(), strict=True))
    tables = []
    for source in _of(edges, rows):
        below = edges.catalog.sinks_of(source)
        sinks = below if sink is None else tuple(one for one in below if one == sink)
        held = pairs(edges.reader, source)
        if not sinks or not held.num_rows:
            continue
        reached = edges.of_records(source, sinks, np.unique(held["id"].to_numpy()))
        for number in np.unique(held["mark"].to_numpy()).tolist():
            ids = held.filter(pc.equal(held["mark"], number))["id"].combine_chunks()
            mine = _results(edges, sinks, reached.filter(pc.is_in(reached["source_id"], ids)))
            mark_no = pa.array(np.full(mine.num_rows, number, np.int32))
            why = pa.array([reasons.get(number, "")] * mine.num_rows, pa.string())
            tables.append(pa.table([*mine.columns, mark_no, why], schema=MARKED))
    answer = pa.concat_tables(tables) if tables else MARKED.empty_table()
    return _sorted(answer, "sink", "result_id", "mark")


def holding(edges: Edges, sink: Sink, results: Sequence[int]) -> set[int]:
    """Those of a sink's results that hold a marked record."""
    rows = _marks(edges.reader)
    marked_here = [s for s in _of(edges, rows) if s in edges.catalog.sources_of(sink)]
    if not marked_here or not results:
        return set()
    found = edges.of_results(sink, Selection(ids=tuple(results)))
    holds: set[int] = set()
    for source in marked_here:
        mine = found.filter(pc.equal(found["source_no"], source.no))
        ids = np.unique(mine["source_id"].to_numpy())
        held = pairs(edges.reader, source, among=ids)["id"]
        holds |= set(mine.filter(pc.is_in(mine["source_id"], held))["result_id"].to_pylist())
    return holds


def chosen(
    reader: Reader, source: Source, where: str | None, given: Sequence[object] | None
) -> tuple[Ids, int]:
    """The records that are meant, of batches up to one: which is also answered."""
    seq = latest(reader)
    if given is not None:
        ids = [record_ids.resolved(source, one, reader.query) for one in given]
        return np.unique(np.array(ids, np.int64)), seq
    assert where is not None
    Selection.of(None, where, None, None)
    matching.require_predicate(source, where)
    matching.require_contents(source)
    if source.kept:
        return np.unique(matching.kept(reader.query, source, where, 0, seq)), seq
    return matching.again(reader.query, source, where), seq


def latest(reader: Reader) -> int:
    """The latest batch in the store."""
    rows = reader.query("SELECT coalesce(max(seq), 0) AS seq FROM batches")
    return int(rows["seq"][0].as_py())


def touched(edges: Edges, source: Source, sinks: tuple[Sink, ...], ids: Ids) -> pa.Table:
    """The results of some records, each once: `sink`, `result_id`, `event_time`."""
    if not len(ids) or not sinks:
        return TOUCHED.empty_table()
    found = _results(edges, sinks, edges.of_records(source, sinks, ids))
    return _sorted(found, "sink", "result_id")


def numbers(reader: Reader, source: Source) -> list[int]:
    """The marks on records of a source."""
    rows = reader.query(f"SELECT mark_no FROM marks WHERE source_no = {source.no} ORDER BY 1")
    return list(rows["mark_no"].to_pylist())


def records(reader: Reader, source: Source, number: int) -> Ids:
    """The records that a mark holds by now."""
    if number not in (known := numbers(reader, source)):
        raise unknown_name(f"mark on source {source.name!r}", number, map(str, known))
    held = pairs(reader, source)
    ids: Ids = held.filter(pc.equal(held["mark"], number))["id"].to_numpy()
    return ids


def pairs(reader: Reader, source: Source, among: Ids | None = None) -> pa.Table:
    """Each mark on records of a source beside each record that it holds: `mark`, `id`."""
    within, params = "", list[object]()
    if among is not None:
        within, params = " AND m.id IN (SELECT unnest(?::BIGINT[]))", [among.tolist()]
    stored = reader.query(
        "SELECT m.mark_no AS mark, m.id FROM marked m JOIN marks k USING (mark_no) "
        f"WHERE k.source_no = {source.no}{within}",
        params,
    )
    return _distinct([stored, later(reader, source, among)])


def later(reader: Reader, source: Source, among: Ids | None = None) -> pa.Table:
    """The records that marks hold because they came later and match: `mark`, `id`."""
    rows = reader.query(
        f"SELECT mark_no, predicate, seq FROM marks WHERE source_no = {source.no} "
        "AND predicate IS NOT NULL"
    )
    tables = []
    for row in rows.to_pylist() if source.kept else ():
        try:
            ids = matching.kept(reader.query, source, row["predicate"], row["seq"], None, among)
        except PredicateError as error:
            raise PredicateError(
                f"mark {row['mark_no']} on source {source.name!r}: {error}; take it away with "
                f"unmark({row['mark_no']}) and mark anew"
            ) from error
        tables.append(pa.table({"mark": np.full(len(ids), row["mark_no"], np.int32), "id": ids}))
    return _distinct(tables)


def on(reader: Reader, source: Source, id: int) -> list[dict[str, Any]]:
    """The marks that hold a record: `mark` and `reason` of each."""
    held = pairs(reader, source, among=np.array([id], np.int64))["mark"].to_pylist()
    rows = _marks(reader).to_pylist()
    return [{"mark": r["mark_no"], "reason": r["reason"]} for r in rows if r["mark_no"] in held]


def one_of(**given: object) -> None:
    """Refuse all but exactly one way to say which records are meant."""
    if sum(value is not None for value in given.values()) != 1:
        raise HeadwaterError(f"say which records: by exactly one of {', '.join(given)}")


def _distinct(tables: Sequence[pa.Table]) -> pa.Table:
    united = pa.concat_tables([_PAIRS.empty_table(), *(table.cast(_PAIRS) for table in tables)])
    marks_, ids = _unique(united["mark"], united["id"])
    return pa.table([marks_.astype(np.int32), ids], schema=_PAIRS)


def _unique(*columns: pa.ChunkedArray) -> Ids:
    """The distinct rows of some columns of whole numbers, as columns again."""
    rows = np.stack([column.to_numpy().astype(np.int64) for column in columns])
    found: Ids = np.unique(rows, axis=1)
    return found


def _sorted(table: pa.Table, *names: str) -> pa.Table:
    keys = [(name, "ascending") for name in names]
    return table.take(pc.sort_indices(table, sort_keys=keys))


def _marks(reader: Reader) -> pa.Table:
    return reader.query(
        "SELECT mark_no, source_no, reason, predicate, marked_at FROM marks ORDER BY mark_no"
    )


def _of(edges: Edges, rows: pa.Table) -> list[Source]:
    """The sources with marks."""
    numbered = set(rows["source_no"].to_pylist())
    return [source for source in edges.catalog.sources if source.no in numbered]


def _results(edges: Edges, sinks: tuple[Sink, ...], reached: pa.Table) -> pa.Table:
    """The results of some edges, each once, with their event times."""
    tables = [TOUCHED.empty_table()]
    numbers_, ids, seqs = _unique(reached["sink_no"], reached["result_id"], reached["seq"])
    for sink in sinks:
        mine = ids[numbers_ == sink.no]
        if not len(mine):
            continue
        rows = edges.reader.query(
            f"SELECT {ID} AS result_id, {STORED_TIME} AS event_time FROM result_{sink.no} "
            f"WHERE {SEQ} IN (SELECT unnest(?::BIGINT[])) "
            f"AND {ID} IN (SELECT unnest(?::BIGINT[]))",
            [np.unique(seqs[numbers_ == sink.no]).tolist(), mine.tolist()],
        )
        name = pa.array([sink.name] * rows.num_rows, pa.string())
        times = rows["event_time"].cast(FIXED["event_time"])
        tables.append(pa.table([name, rows["result_id"], times], schema=TOUCHED))
    return pa.concat_tables(tables)
