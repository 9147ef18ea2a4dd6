"""The newest results of a live graph for a sample of it, with the edges behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.query import marks
from headwater.query.graph import EDGES, VERTICES
from headwater.store import batch as stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.query.edges import Edges
    from headwater.store.catalog import Sink, Source
    from headwater.store.reader import Reader

_PER_RESULT = 64
"""Edges of one result that a sample shows at most."""


@dataclass(frozen=True, slots=True)
class Span:
    """The batches that are meant, as SQL over `seq`."""

    after: int
    until: int

    def sql(self, column: str = "seq") -> str:
        """A condition on a column of batches."""
        return f"{column} > {self.after} AND {column} <= {self.until}"


def newest(reader: Reader, sinks: Sequence[Sink], span: Span, limit: int) -> pa.Table:
    """The newest results, the newest first."""
    each = [
        f"(SELECT 'result' AS kind, {sql_text(sink.name)} AS name, {stored.ID} AS id, "
        f"{stored.TIME} AS event_time, {stored.SEQ} AS seq FROM result_{sink.no} "
        f"WHERE {span.sql(stored.SEQ)} ORDER BY {stored.SEQ} DESC, {stored.ID} DESC LIMIT {limit})"
        for sink in sinks
    ]
    if not each:
        return VERTICES.empty_table().append_column("seq", pa.array([], pa.int64()))
    return reader.query(
        "SELECT kind, name, id, event_time, b.watermark AS delivered, b.batch, r.seq FROM "
        f"(SELECT * FROM ({' UNION ALL '.join(each)}) ORDER BY seq DESC, id DESC LIMIT {limit}) r "
        "JOIN batches b USING (seq) ORDER BY r.seq DESC, id DESC, name"
    )


def edges_of(
    reader: Reader,
    sources: Sequence[Source],
    sinks: Sequence[Sink],
    results: pa.Table,
    limit: int,
) -> pa.Table:
    """The edges of some results, with the numbers of their sources."""
    schema = pa.schema([*EDGES.remove(5).remove(4), ("source_no", pa.int16())])
    if not results.num_rows:
        return schema.empty_table()
    names = {source.no: source.name for source in sources}
    joined, params = _joined(sinks, results)
    rows = reader.query(
        f"SELECT e.source_no, e.source_id, r.name AS sink, e.result_id FROM {joined} "
        "QUALIFY row_number() OVER (PARTITION BY e.sink_no, e.result_id "
        f"ORDER BY e.source_no, e.source_id) <= {_PER_RESULT} "
        "ORDER BY e.seq DESC, e.result_id DESC, r.name, e.source_no, e.source_id "
        f"LIMIT {limit}",
        params,
    )
    named = pa.array([names.get(no) for no in rows["source_no"].to_pylist()], pa.string())
    return rows.append_column("source", named).select(schema.names).cast(schema)


def _joined(sinks: Sequence[Sink], results: pa.Table) -> tuple[str, list[object]]:
    """The edges `e` of some results `r`, as SQL, and its parameters."""
    numbers = {sink.name: sink.no for sink in sinks}
    seqs, names = results["seq"].to_pylist(), results["name"].to_pylist()
    # Batches as constants: a join alone would read all edges.
    sql = (
        f"(SELECT * FROM edges WHERE seq >= {min(seqs)} AND seq <= {max(seqs)}) e JOIN (SELECT "
        "unnest(?::SMALLINT[]) AS sink_no, unnest(?::BIGINT[]) AS result_id, "
        "unnest(?::BIGINT[]) AS seq, unnest(?::VARCHAR[]) AS name) r "
        "USING (sink_no, result_id, seq)"
    )
    return sql, [[numbers[name] for name in names], results["id"].to_pylist(), seqs, names]


def fitting(
    results: pa.Table, shown: pa.Table, limit: int, *, whole: bool
) -> tuple[pa.Table, pa.Table]:
    """As many of the newest results as fit with the records behind them, and their edges.

    Of the first there may be too many. Without `whole`, edges of the last may be missing.
    """
    behind: dict[tuple[str, int], set[tuple[int, int]]] = {}
    for row in shown.to_pylist():
        ends = behind.setdefault((row["sink"], row["result_id"]), set())
        ends.add((row["source_no"], row["source_id"]))
    keys = list(zip(results["name"].to_pylist(), results["id"].to_pylist(), strict=True))
    if not whole and behind:
        keys = keys[: max(1, keys.index(list(behind)[-1]))]
    there: set[tuple[int, int]] = set()
    count = 0
    for key in keys:
        more = there | behind.get(key, set())
        if count and count + 1 + len(more) > limit:
            break
        count, there = count + 1, more
    kept = set(keys[:count])
    ends_of = zip(shown["sink"].to_pylist(), shown["result_id"].to_pylist(), strict=True)
    mask = pa.array([one in kept for one in ends_of], pa.bool_())
    return results.slice(0, count), shown.filter(mask)


def tainted(
    edges: Edges, sources: Sequence[Source], sinks: Sequence[Sink], results: pa.Table
) -> set[tuple[str, int]]:
    """Those of some results that hold a marked record, whether it is shown or not."""
    held: set[tuple[str, int]] = set()
    for source in sources:
        if not results.num_rows or not marks.numbers(edges.reader, source):
            continue
        joined, params = _joined(sinks, results)
        rows = edges.reader.query(
            f"SELECT e.source_id, r.name, e.result_id FROM {joined} "
            f"WHERE e.source_no = {source.no}",
            params,
        )
        ids = np.unique(rows["source_id"].to_numpy())
        marked = marks.pairs(edges.reader, source, among=ids)["id"].combine_chunks()
        mine = rows.filter(pa.compute.is_in(rows["source_id"], marked))
        held |= set(zip(mine["name"].to_pylist(), mine["result_id"].to_pylist(), strict=True))
    return held


def sql_text(text: str) -> str:
    """A text as SQL says it."""
    return "'" + text.replace("'", "''") + "'"
