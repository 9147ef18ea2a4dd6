"""The live graph as users see it: vertices, edges and labels, now or at an earlier watermark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.errors import HeadwaterError, UnknownId, UnknownName
from headwater.live import files
from headwater.live.files import flow_folder, times_folder
from headwater.query.columns import TIME
from headwater.query.live import live_flows
from headwater.query.predicate import moment
from headwater.store import batch as stored
from headwater.store.topics import in_topics

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headwater.query.predicate import Time
    from headwater.store.catalog import Catalog, Sink, Source
    from headwater.store.reader import Located, Reader

_DELIVERED = [("delivered", TIME), ("batch", pa.int64())]
VERTICES = pa.schema(
    [
        ("kind", pa.string()),
        ("name", pa.string()),
        ("id", pa.int64()),
        ("event_time", TIME),
        *_DELIVERED,
    ]
)
EDGES = pa.schema(
    [
        ("source", pa.string()),
        ("source_id", pa.int64()),
        ("sink", pa.string()),
        ("result_id", pa.int64()),
        *_DELIVERED,
    ]
)
LABELS = pa.schema([("kind", pa.string()), ("name", pa.string()), ("id", pa.int64()), *_DELIVERED])


@dataclass(frozen=True, slots=True)
class Graph:
    """Records, results and what connects them, each with the watermark it was delivered at.

    `labels` has the records that can reach no more, and every result.
    """

    vertices: pa.Table
    edges: pa.Table
    labels: pa.Table

    def __repr__(self) -> str:
        counts = (
            f"{table.num_rows:,} {name}"
            for name, table in (
                ("vertices", self.vertices),
                ("edges", self.edges),
                ("labels", self.labels),
            )
        )
        return f"Graph({', '.join(counts)})"


@dataclass(frozen=True, slots=True)
class Parts:
    """The flows with a live graph, and which of their batches are meant, as SQL over `b`."""

    reader: Reader
    sources: Sequence[Source]
    sinks: Sequence[Sink]
    condition: str = "true"
    params: tuple[object, ...] = ()

    def graph(self) -> Graph:
        """The graph that these batches made."""
        return Graph(self.vertices(), self.edges(), self.labels())

    def vertices(self, only: str = "true") -> pa.Table:
        """Records, then results, in the order of their delivery."""
        results = self._of_results(f", {stored.TIME} AS event_time")
        return self._ask(
            VERTICES,
            f"SELECT {_kind(self.sources, 'v.source_no')} AS kind, "
            f"{_name(self.sources, 'v.source_no')} AS name, v.id, "
            f"v.event_time, b.watermark, b.batch, b.seq FROM vertices v JOIN batches b USING (seq) "
            f"WHERE v.source_no IN ({_numbers(self.sources)}) AND {self.condition} "
            f"UNION ALL BY NAME {results}",
            order="b_seq, kind = 'result', kind, name, id",
            only=only,
        )

    def edges(self) -> pa.Table:
        """Edges in the order of their delivery."""
        return self._ask(
            EDGES,
            f"SELECT {_name(self.sources, 'e.source_no')} AS source, e.source_id, "
            f"{_name(self.sinks, 'e.sink_no')} AS sink, e.result_id, b.watermark, b.batch, b.seq "
            f"FROM edges e JOIN batches b USING (seq) WHERE e.sink_no IN ({_numbers(self.sinks)}) "
            f"AND {self.condition}",
            order="b_seq, sink, result_id, source, source_id",
        )

    def labels(self, only: str = "true") -> pa.Table:
        """Labels in the order of their delivery; a result has its own from the start."""
        return self._ask(
            LABELS,
            f"SELECT {_kind(self.sources, 'l.source_no')} AS kind, "
            f"{_name(self.sources, 'l.source_no')} AS name, l.id, "
            f"b.watermark, b.batch, b.seq FROM labels l JOIN batches b USING (seq) "
            f"WHERE l.source_no IN ({_numbers(self.sources)}) AND {self.condition} "
            f"UNION ALL BY NAME {self._of_results('')}",
            order="b_seq, kind = 'result', kind, name, id",
            only=only,
        )

    def _of_results(self, more: str) -> str:
        """The results of all sinks, as SQL."""
        each = [
            f"SELECT 'result' AS kind, {_literal(sink.name)} AS name, {stored.ID} AS id{more}, "
            f"b.watermark, b.batch, b.seq FROM result_{sink.no} r "
            f"JOIN batches b ON r.{stored.SEQ} = b.seq WHERE {self.condition}"
            for sink in self.sinks
            if not sink.is_step
        ]
        return " UNION ALL BY NAME ".join(each)

    def _ask(self, schema: pa.Schema, sql: str, order: str, only: str = "true") -> pa.Table:
        columns = ", ".join(name for name in schema.names if name not in ("delivered", "batch"))
        rows = self.reader.query(
            f"SELECT {columns}, watermark AS delivered, batch FROM "
            f"(SELECT * RENAME (seq AS b_seq) FROM ({sql})) WHERE {only} ORDER BY {order}",
            list(self.params) * sql.count("?"),
        )
        return rows.cast(schema)


def unbounded(reader: Reader) -> dict[str, str]:
    """By source of a live graph: why its records are kept until the flow is finished."""
    return {
        source: str(step)
        for flow in live_flows(reader).values()
        for source in flow.described
        if (step := flow.reach(source).unbounded) is not None
    }


def parts(reader: Reader, catalog: Catalog, flow: str | None) -> Parts:
    """The parts of the live graph of a flow, or of all flows that have one."""
    live = live_flows(reader)
    if flow is not None and flow not in live:
        known = ", ".join(live) or "none"
        raise UnknownName(f"flow {flow!r} has no live graph here; those with one: {known}")
    if not live:
        raise HeadwaterError("no flow in this store keeps a live graph; start one with live=True")
    wanted = [flow] if flow is not None else list(live)
    return Parts(
        reader,
        [s for s in catalog.sources if s.flow in wanted],
        [s for s in catalog.sinks if s.flow in wanted and s.capture != "none"],
    )


def graph(reader: Reader, catalog: Catalog, flow: str | None, at: Time | None) -> Graph:
    """The graph now, or as it stood once the batches up to a watermark had been committed."""
    found = parts(reader, catalog, flow)
    if at is None:
        return found.graph()
    # Before the first watermark a batch has none.
    until = "(b.watermark IS NULL OR b.watermark <= ?)"
    return Parts(reader, found.sources, found.sinks, until, (moment(at, "at"),)).graph()


def between(found: Parts, after: int, until: int) -> Graph:
    """What the batches after one position and up to another added."""
    condition = f"(b.seq > {after} AND b.seq <= {until})"
    return Parts(found.reader, found.sources, found.sinks, condition).graph()


def labelled(reader: Reader, source: Source, *, past: bool) -> pa.Table:
    """The records of a source's graph that have a label, or those that have none."""
    has = "EXISTS" if past else "NOT EXISTS"
    return reader.query(
        "SELECT v.id, v.event_time, b.watermark AS delivered, b.batch "
        "FROM vertices v JOIN batches b USING (seq) "
        f"WHERE v.source_no = {source.no} AND {has} (SELECT 1 FROM labels l "
        "WHERE l.source_no = v.source_no AND l.id = v.id) ORDER BY v.seq, v.id"
    )


def safe_offset(reader: Located, catalog: Catalog, source: Source) -> pa.Table:
    """The first batch whose records of a source may be needed again, and its files."""
    flow = live_flows(reader, source.flow)[source.flow]
    reach = flow.reach(source.name)
    replayed = any(sink.is_lazy for sink in catalog.sinks_of(source))
    first: int | None = 0
    if not replayed and reach.unbounded is None and not reach.sessions:
        # A batch's file of times lies there for as long as one of its records may reach a result.
        folder = flow_folder(reader.path, source.flow)
        first = next(files.batches(times_folder(folder, source.name)), None)
    if flow.finished and not replayed:
        first = None
    watermark = flow.watermark(reader)
    since = None if watermark is None or replayed else reach.alive_since(watermark)
    # Of a topic the store has the end of a stretch there, which is no time.
    modified = "to_timestamp(a.modified / 1000.0)"
    modified = "NULL::TIMESTAMPTZ" if in_topics(source) else modified
    return reader.query(
        "SELECT make_timestamptz(?) AS event_time, b.batch, a.path, "
        f"{modified} AS modified FROM batches b "
        f"LEFT JOIN arrivals a ON a.seq = b.seq AND a.source_no = {source.no} "
        "WHERE b.query_id = ? AND b.batch >= ? ORDER BY b.batch, a.modified, a.path LIMIT 1",
        [since, flow.query_id, first if first is not None else 1 << 62],
    )


def vertex(found: Parts, id: int, name: str | None) -> pa.Table:
    """The vertices with an id, and the watermark at which each was labelled, if it was."""
    only = f"id = {int(id)}" + ("" if name is None else f" AND name = {_literal(name)}")
    rows = found.vertices(only)
    if not rows.num_rows:
        where = f" of {name!r}" if name else ""
        raise UnknownId(f"the live graph has no vertex{where} with the id {id}")
    labels = found.labels(only).to_pylist()
    past = {(label["kind"], label["name"]): label["delivered"] for label in labels}
    keys = [(row["kind"], row["name"]) for row in rows.to_pylist()]
    return rows.append_column("expired", pa.array([key in past for key in keys])).append_column(
        "labelled", pa.array([past.get(key) for key in keys], TIME)
    )


def _name(parts: Iterable[Source | Sink], column: str) -> str:
    """The name of a source or sink by its number, as SQL."""
    cases = " ".join(f"WHEN {part.no} THEN {_literal(part.name)}" for part in parts)
    return f"CASE {column} {cases} END" if cases else "NULL::VARCHAR"


def _kind(sources: Iterable[Source], column: str) -> str:
    """What a vertex is, by the number of its source, as SQL."""
    steps = ", ".join(str(source.no) for source in sources if source.is_step)
    return f"CASE WHEN {column} IN ({steps or 'NULL'}) THEN 'step' ELSE 'source' END"


def _numbers(parts: Iterable[Source | Sink]) -> str:
    return ", ".join(str(part.no) for part in parts) or "NULL"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
