"""A part of the live graph that can be looked at: the newest results and records, up to a limit.

The whole may have millions of vertices. Reading it to show some would be slow, so each part is
chosen in the store: the newest results, each with the records behind it, as far as there is room;
then the newest records that may still reach one; then others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.errors import HeadwaterError, UnknownName
from headwater.query import marks
from headwater.query.graph import VERTICES, parts
from headwater.query.live import live_flows
from headwater.query.predicate import moment
from headwater.query.sampled import Span, edges_of, fitting, newest, sql_text, tainted
from headwater.store import batch as stored

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from headwater.query.edges import Edges
    from headwater.query.graph import Parts
    from headwater.query.predicate import Time
    from headwater.store.catalog import Source
    from headwater.store.reader import Reader

Ids = npt.NDArray[np.int64]

SEEN = pa.schema([*VERTICES, ("expired", pa.bool_()), ("marked", pa.bool_())])
"""The columns of a sample's vertices."""
_AMONG = 4
"""Among so many times the records that there is room for, those that are alive are looked for."""


@dataclass(frozen=True, slots=True)
class Totals:
    """How much of the graph there is, whether shown or not."""

    vertices: int
    edges: int
    labels: int

    def __add__(self, other: Totals) -> Totals:
        """Both together.

        >>> Totals(3, 2, 1) + Totals(1, 1, 1)
        Totals(vertices=4, edges=3, labels=2)
        """
        return Totals(
            self.vertices + other.vertices, self.edges + other.edges, self.labels + other.labels
        )


@dataclass(frozen=True, slots=True)
class Sample:
    """Some vertices of a flow's live graph with the edges between them, and what there is in all.

    `position` is the batch up to which it goes: following the graph goes on from there.
    """

    flow: str
    position: int
    watermark: datetime | None
    totals: Totals
    vertices: pa.Table
    edges: pa.Table


def latest_flow(edges: Edges) -> str:
    """The flow with a live graph that committed last."""
    live = live_flows(edges.reader)
    if not live:
        raise HeadwaterError("no flow in this store keeps a live graph; start one with live=True")
    queries = {flow.query_id: name for name, flow in live.items()}
    rows = edges.reader.query(
        "SELECT query_id FROM batches WHERE query_id IN (SELECT unnest(?::VARCHAR[])) "
        "GROUP BY query_id ORDER BY max(seq) DESC LIMIT 1",
        [list(queries)],
    )
    return queries[rows["query_id"][0].as_py()] if rows.num_rows else next(iter(live))


def watermarks(edges: Edges, flow: str, limit: int) -> pa.Table:
    """The batches of a flow, evenly thinned out: `position`, `batch`, `watermark`, `results`."""
    query_id = query_id_of(edges.reader, flow)
    return edges.reader.query(
        "SELECT seq AS position, batch, watermark, results FROM (SELECT *, "
        "row_number() OVER (ORDER BY seq DESC) - 1 AS place, count(*) OVER () AS n FROM batches "
        "WHERE query_id = ?) WHERE place % greatest(1, ceil(n / ?)::BIGINT) = 0 ORDER BY seq",
        [query_id, limit],
    )


def sample(
    edges: Edges,
    flow: str | None = None,
    *,
    at: Time | None = None,
    limit: int = 3_000,
    after: int = 0,
    until: int | None = None,
) -> Sample:
    """The newest part of a flow's live graph, now or as it stood at a watermark.

    With `after` and `until` it is of what the batches between these positions added.
    """
    name = flow if flow is not None else latest_flow(edges)
    found = parts(edges.reader, edges.catalog, name)
    sinks = [sink for sink in found.sinks if not sink.is_step]
    position, watermark = _position(edges.reader, name, at, until)
    span = Span(after, position)
    results = newest(edges.reader, sinks, span, max(1, limit // 2))
    shown = edges_of(edges.reader, found.sources, sinks, results, 4 * limit)
    results, shown = fitting(results, shown, limit, whole=shown.num_rows < 4 * limit)
    records = _records(edges, found.sources, shown, span, position, limit - results.num_rows)
    shown = _between(shown, records)
    held = tainted(edges, found.sources, sinks, results)
    results = results.sort_by([(name, "ascending") for name in ("seq", "name", "id")])
    named = zip(results["name"].to_pylist(), results["id"].to_pylist(), strict=True)
    is_tainted = pa.array([one in held for one in named], pa.bool_())
    results = results.append_column("expired", pa.array([True] * results.num_rows, pa.bool_()))
    vertices = pa.concat_tables(
        [records, results.append_column("marked", is_tainted).select(SEEN.names).cast(SEEN)]
    )
    much = _totals(edges.reader, found, span)
    return Sample(name, position, watermark, much, vertices, shown)


def end_of(reader: Reader, flow: str) -> int:
    """The batch up to which a flow's live graph goes; 0 where there is none yet."""
    return _position(reader, flow, None, None)[0]


def totals(edges: Edges, flow: str, until: int) -> Totals:
    """How much there is of a flow's live graph, up to a position."""
    return _totals(edges.reader, parts(edges.reader, edges.catalog, flow), Span(0, until))


def _position(
    reader: Reader, flow: str, at: Time | None, until: int | None
) -> tuple[int, datetime | None]:
    condition, params = "query_id = ?", list[object]([query_id_of(reader, flow)])
    if at is not None:
        condition += " AND (watermark IS NULL OR watermark <= ?)"
        params.append(moment(at, "at"))
    if until is not None:
        condition += " AND seq <= ?"
        params.append(until)
    rows = reader.query(
        "SELECT coalesce(max(seq), 0) AS seq, max(watermark) AS watermark "
        f"FROM batches WHERE {condition}",
        params,
    )
    return rows["seq"][0].as_py(), rows["watermark"][0].as_py()


def query_id_of(reader: Reader, flow: str) -> str:
    """The streaming query of a flow with a live graph."""
    live = live_flows(reader)
    if flow not in live:
        known = ", ".join(live) or "none"
        raise UnknownName(f"flow {flow!r} has no live graph here; those with one: {known}")
    return live[flow].query_id


def _records(
    edges: Edges,
    sources: Sequence[Source],
    shown: pa.Table,
    span: Span,
    position: int,
    room: int,
) -> pa.Table:
    """The records of the edges, then the newest that are alive, then others, as there is room."""
    tables = []
    for source in sources:
        mine = shown.filter(pa.compute.equal(shown["source_no"], source.no))
        tables.append(_of(edges, source, np.unique(mine["source_id"].to_numpy()), position))
    united = pa.concat_tables([SEEN.empty_table(), *tables]).slice(0, max(0, room))
    left = room - united.num_rows
    if left <= 0 or not sources:
        return united
    there = set(zip(united["name"].to_pylist(), united["id"].to_pylist(), strict=True))
    newest = " UNION ALL ".join(
        f"(SELECT source_no, id, seq FROM vertices WHERE source_no = {source.no} AND {span.sql()} "
        f"ORDER BY seq DESC, id DESC LIMIT {_AMONG * room})"
        for source in sources
    )
    rows = edges.reader.query(
        f"SELECT source_no, id FROM ({newest}) v ORDER BY EXISTS (SELECT 1 FROM labels l WHERE "
        f"l.source_no = v.source_no AND l.id = v.id AND l.seq <= {position}), seq DESC, id DESC, "
        f"source_no LIMIT {left + len(there)}"
    )
    names = {source.no: source.name for source in sources}
    fresh: dict[int, list[int]] = {}
    for no, one in zip(rows["source_no"].to_pylist(), rows["id"].to_pylist(), strict=True):
        if left > 0 and (names[no], one) not in there:
            fresh.setdefault(no, []).append(one)
            left -= 1
    more = [
        _of(edges, s, np.array(fresh[s.no], np.int64), position) for s in sources if s.no in fresh
    ]
    return pa.concat_tables([united, *more])


def _of(edges: Edges, source: Source, ids: Ids, position: int) -> pa.Table:
    """Vertices of a source by their ids, with whether they are past and whether they are marked."""
    if not len(ids):
        return SEEN.empty_table()
    rows = edges.reader.query(
        f"SELECT {sql_text('step' if source.is_step else 'source')} AS kind, "
        f"{sql_text(source.name)} AS name, v.id, v.event_time, b.watermark AS delivered, b.batch, "
        "EXISTS (SELECT 1 FROM labels l WHERE l.source_no = v.source_no AND l.id = v.id "
        f"AND l.seq <= {position}) AS expired "
        f"FROM vertices v JOIN batches b USING (seq) WHERE v.source_no = {source.no} "
        f"AND v.seq <= {position} AND v.id IN (SELECT unnest(?::BIGINT[])) ORDER BY v.seq, v.id",
        [ids.tolist()],
    )
    held = marks.pairs(edges.reader, source, among=ids)["id"].to_numpy()
    marked = pa.array(np.isin(rows["id"].to_numpy(), held), pa.bool_())
    return rows.append_column("marked", marked).select(SEEN.names).cast(SEEN)


def _between(shown: pa.Table, records: pa.Table) -> pa.Table:
    """The edges whose records are shown too."""
    there = set(zip(records["name"].to_pylist(), records["id"].to_pylist(), strict=True))
    ends = zip(shown["source"].to_pylist(), shown["source_id"].to_pylist(), strict=True)
    kept = shown.filter(pa.array([end in there for end in ends], pa.bool_()))
    return kept.drop_columns(["source_no"])


def _totals(reader: Reader, found: Parts, span: Span) -> Totals:
    of_sources = ", ".join(str(source.no) for source in found.sources) or "NULL"
    of_sinks = ", ".join(str(sink.no) for sink in found.sinks) or "NULL"
    results = " + ".join(
        f"(SELECT count(*) FROM result_{sink.no} WHERE {span.sql(stored.SEQ)})"
        for sink in found.sinks
        if not sink.is_step
    )
    counted = reader.query(
        f"SELECT (SELECT count(*) FROM vertices WHERE source_no IN ({of_sources}) "
        f"AND {span.sql()}) AS records, {results or 0} AS results, "
        f"(SELECT count(*) FROM edges WHERE sink_no IN ({of_sinks}) AND {span.sql()}) AS edges, "
        f"(SELECT count(*) FROM labels WHERE source_no IN ({of_sources}) "
        f"AND {span.sql()}) AS labels"
    ).to_pylist()[0]
    return Totals(
        counted["records"] + counted["results"],
        counted["edges"],
        counted["labels"] + counted["results"],
    )
