"""What is to be exported: a query's answer, or all results of a span, put into the spool by ids."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from headwater.errors import HeadwaterError, UnknownId
from headwater.query import records
from headwater.query.predicate import Selection
from headwater.query.results import ask, view
from headwater.store.batch import SEQ

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.export.spool import Ids, Spool
    from headwater.query.edges import Edges
    from headwater.store.catalog import Sink, Source

Direction = Literal["backward", "forward"]

WEIGHT = 400_000
"""Results and edges that are taken from the store at a time."""
_ASKED = 10_000
"""Ids that are asked for at a time."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for: some results, some records, an entity of a workflow, or a span."""

    sink: Sink | None = None
    results: tuple[int, ...] | None = None
    source: Source | None = None
    records: tuple[int, ...] | None = None
    entity: str | None = None
    direction: Direction = "backward"
    selection: Selection = field(default_factory=Selection)
    batches: tuple[int | None, int | None] | None = None
    """The first and the last batch; None is any."""
    columns: bool = True

    def __post_init__(self) -> None:
        """Refuse what means nothing, or two things at once."""
        if self.results is not None and self.sink is None:
            raise HeadwaterError("export: result_id= needs the sink= that the results are of")
        if (self.source is None) != (self.records is None):
            raise HeadwaterError("export: source= and id= go together, for a record's results")
        if self.direction not in ("backward", "forward"):
            raise HeadwaterError(
                f"export: direction={self.direction!r} is neither 'backward' nor 'forward'"
            )
        queries = [self.results is not None, self.records is not None, self.entity is not None]
        span = self.batches is not None or self.selection.filters
        other_sink = self.sink is not None and self.results is None
        if sum(queries) > 1 or (any(queries) and (span or other_sink)):
            raise HeadwaterError(
                "export takes one query (sink= with result_id=, source= with id=, or entity=) or a "
                "range (sink=, where=, since=, until=, batches=), not both"
            )
        first, last = self.batches or (None, None)
        if first is not None and last is not None and first > last:
            raise HeadwaterError(f"export: batch {first} is after batch {last}")


def choose(edges: Edges, asked: Asked, spool: Spool) -> None:
    """Put the ids of what is asked for into the spool."""
    if asked.records is not None and asked.source is not None:
        for some in _pieces(asked.records):
            _of_records(edges, asked.source, np.unique(np.array(some, np.int64)), spool)
    elif asked.results is not None and asked.sink is not None:
        for some in _pieces(asked.results):
            _of_results(edges, asked.sink, some, spool)
    else:
        _of_span(edges, asked, spool)


def _pieces(ids: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    distinct = tuple(dict.fromkeys(ids))
    for start in range(0, len(distinct), _ASKED):
        yield distinct[start : start + _ASKED]


def _of_results(edges: Edges, sink: Sink, ids: tuple[int, ...], spool: Spool) -> None:
    found = edges.chosen(sink, Selection(ids=ids))
    missing = np.setdiff1d(np.array(ids, np.int64), found["result_id"].to_numpy())
    if len(missing):
        raise UnknownId(f"sink {sink.name!r} has no result with the id {missing[0]}")
    _take(edges, sink, found["result_id"].to_numpy(), found[SEQ].to_numpy(), spool)


def _of_records(edges: Edges, source: Source, ids: Ids, spool: Spool) -> None:
    sinks = edges.catalog.sinks_of(source)
    found = edges.of_records(source, sinks, ids)
    mine = np.isin(found["sink_no"].to_numpy(), [sink.no for sink in sinks])
    found = found.filter(mine)
    idle = np.setdiff1d(ids, found["source_id"].to_numpy())
    if len(idle):
        unknown = np.setdiff1d(idle, records.is_known(edges.reader, source, idle))
        if len(unknown):
            raise UnknownId(
                f"source {source.name!r} has no record with the id {unknown[0]}; "
                "a record that reached no result is only known if the source keeps its records "
                "or can be read again"
            )
    spool.add_records(source.no, ids)
    spool.add_edges(found, source_no=source.no)
    for sink in sinks:
        reached = found.filter(found["sink_no"].to_numpy() == sink.no)
        spool.add_results(sink.no, reached["result_id"].to_numpy(), reached["seq"].to_numpy())


def _of_span(edges: Edges, asked: Asked, spool: Spool) -> None:
    sinks = [asked.sink] if asked.sink else [s for s in edges.catalog.sinks if not s.is_step]
    if asked.selection.where is not None and len(sinks) > 1:
        names = ", ".join(one.name for one in sinks)
        raise HeadwaterError(f"export(where=...) needs sink=, one of: {names}")
    # What is committed from here on is not part of it.
    upto = edges.reader.query("SELECT coalesce(max(seq), 0) AS seq FROM batches")["seq"][0].as_py()
    conditions = [f"{SEQ} <= {upto}"]
    if asked.batches is not None:
        first, last = asked.batches
        bounds = [] if first is None else [f"batch >= {int(first)}"]
        bounds += [] if last is None else [f"batch <= {int(last)}"]
        only = " AND ".join(bounds) or "true"
        conditions.append(f"{SEQ} IN (SELECT seq FROM batches WHERE {only})")
    if not asked.selection.filters:
        spool.add_batches(_batches(edges, sinks, " AND ".join(conditions).replace(SEQ, "seq")))
    for sink in sinks:
        for ids, seqs in _chosen(edges, sink, asked.selection, conditions):
            _take(edges, sink, ids, seqs, spool)


def _batches(edges: Edges, sinks: list[Sink], condition: str) -> Ids:
    flows = sorted({sink.flow for sink in sinks})
    found = edges.reader.query(
        f"SELECT seq FROM batches JOIN flows USING (query_id) WHERE {condition} "
        "AND flow IN (SELECT unnest(?::VARCHAR[]))",
        [flows],
    )
    seqs: Ids = found["seq"].to_numpy()
    return seqs


def _take(edges: Edges, sink: Sink, ids: Ids, seqs: Ids, spool: Spool) -> None:
    """Results, and the edges that they have."""
    spool.add_results(sink.no, ids, seqs)
    if len(ids) and sink.capture != "none":
        found = edges.of_results(sink, Selection(ids=tuple(ids.tolist())))
        spool.add_edges(found, sink_no=sink.no)


def _chosen(
    edges: Edges, sink: Sink, selection: Selection, conditions: list[str]
) -> Iterator[tuple[Ids, Ids]]:
    """The selected results of a sink and their batches, in pieces that have not too many edges."""
    condition, params = selection.sql()
    within = " AND ".join([*conditions, condition])
    sizes = ask(
        edges.reader,
        f"SELECT r.{SEQ} AS seq, r.n, ceil(r.n * (1 + b.edges / greatest(b.results, 1)))::BIGINT "
        f"AS weight FROM (SELECT {SEQ}, count(*) AS n FROM {view(sink)} WHERE {within} GROUP BY 1) "
        f"r JOIN batches b ON b.seq = r.{SEQ} ORDER BY 1",
        params,
        selection,
    ).to_pylist()
    for low, high, most in _spans([(row["seq"], row["n"], row["weight"]) for row in sizes]):
        after: tuple[int, ...] = ()
        while True:
            beyond = f"AND result_id > {after[0]}" if after else ""
            found = ask(
                edges.reader,
                f"SELECT result_id, {SEQ} FROM {view(sink)} WHERE {SEQ} BETWEEN {low} AND {high} "
                f"AND {within} {beyond} ORDER BY {SEQ}, result_id"
                + ("" if most is None else f" LIMIT {most}"),
                params,
                selection,
            )
            if found.num_rows:
                yield found["result_id"].to_numpy(), found[SEQ].to_numpy()
            if most is None or found.num_rows < most:
                break
            after = (found["result_id"][-1].as_py(),)


def _spans(sizes: list[tuple[int, int, int]]) -> Iterator[tuple[int, int, int | None]]:
    """Batches put together, by (seq, results, weight); a heavy one is taken in so many results.

    >>> list(_spans([(1, 5, 10), (2, 5, 10), (3, 100, 4_000_000), (4, 1, 1)]))
    [(1, 2, None), (3, 3, 10), (4, 4, None)]
    """
    first = last = total = 0
    for seq, results, weight in sizes:
        if total and total + weight > WEIGHT:
            yield first, last, None
            total = 0
        if weight > WEIGHT:
            yield seq, seq, max(1, results * WEIGHT // weight)
            continue
        first = first if total else seq
        last = seq
        total += weight
    if total:
        yield first, last, None
