"""Why not: what became of a record on its way to each sink, and why it is in no result.

A replay of all records that may have met it follows the rows that hold it (`replay/following.py`);
what it says of results is checked against those of the store.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import HeadwaterError, StoreError, UnknownId, UnknownName, UnsupportedError
from headwater.flow import nodes
from headwater.lowering.identity import can_be_read_again
from headwater.query import records
from headwater.query.columns import TIME
from headwater.query.explaining import explanation
from headwater.replay import fates
from headwater.replay.engine import require_deterministic
from headwater.replay.fates import Fate
from headwater.replay.following import deciding, follow
from headwater.store.batch import BASE, ID, SEQ
from headwater.store.batch import TIME as STORED_TIME

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headwater.query.edges import Edges
    from headwater.store.catalog import Sink, Source

COLUMNS = pa.schema(
    [
        ("sink", pa.string()),
        ("kind", pa.string()),
        ("step", pa.string()),
        ("detail", pa.string()),
        ("event_time", TIME),
        ("watermark", TIME),
        ("closes_at", TIME),
        ("survivor", pa.int64()),
        ("result_id", pa.int64()),
        ("values", pa.string()),
    ]
)
"""The columns of an answer."""

_LAST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A record, and the queries of its flow with the last batch that each committed."""

    edges: Edges
    source: Source
    id: int
    time: int | None
    values: str
    runs: tuple[tuple[str, int], ...]


def why_not(
    edges: Edges, source: Source, sinks: Sequence[Sink], id_: int, given: object = None
) -> pa.Table:
    """What became of a record: one row for each row that it was part of where that one ended.

    `given` is the id as the user wrote it, for messages.
    """
    below = _below(edges, source, sinks)
    for sink, node in below:
        try:
            _require_again(sink, node)
        except UnsupportedError as error:
            hint = "; ask for another sink with sink=" if len(below) > 1 else ""
            raise UnsupportedError(f"{error}{hint}") from error
    asked = _asked(edges, source, id_, id_ if given is None else given)
    rows = []
    for sink, node in below:
        steps = {above.step: above for above in node.upstream()}
        order = list(steps)
        found = sorted(_fates(asked, sink, node), key=lambda f: (order.index(f.step), _time(f)))
        rows += [_row(sink, steps[fate.step], fate) for fate in found]
    return pa.Table.from_pylist(rows, COLUMNS)


def _time(fate: Fate) -> datetime:
    return fate.closes_at or fate.event_time or _LAST


def _row(sink: Sink, node: nodes.Node, fate: Fate) -> dict[str, Any]:
    return {
        "sink": sink.name,
        "kind": fate.kind,
        "step": fate.step,
        "detail": explanation(node, fate),
        "event_time": fate.event_time,
        "watermark": fate.watermark,
        "closes_at": fate.closes_at,
        "survivor": fate.survivor,
        "result_id": fate.result,
        "values": fate.values,
    }


def _below(edges: Edges, source: Source, sinks: Sequence[Sink]) -> list[tuple[Sink, nodes.Sink]]:
    """The sinks that a source's records may reach, as the flow itself has them."""
    if source.is_step:
        raise HeadwaterError(
            f"{source.name!r} is a step in terms of which sinks are captured; why_not asks for a "
            "record of a source"
        )
    found = []
    for sink in sinks:
        node = edges.engine.node(sink)
        if any(isinstance(n, nodes.Source) and n.name == source.name for n in node.upstream()):
            found.append((sink, node))
    if not found:
        names = ", ".join(sink.name for sink in sinks)
        raise UnknownName(f"no record of source {source.name!r} goes to {names}")
    return found


def _require_again(sink: Sink, node: nodes.Sink) -> None:
    """Refuse what a replay would decide otherwise, or would not have all records of."""
    require_deterministic(sink, node)
    for above in node.upstream():
        again = isinstance(above, nodes.Source) and can_be_read_again(above)
        if isinstance(above, nodes.Source) and not again and above.keep != "all":
            raise UnsupportedError(
                f"sink {sink.name!r} can't be replayed: source {above.name!r} can't be read again; "
                "give it keep='all'"
            )


def _asked(edges: Edges, source: Source, id_: int, given: object) -> _Asked:
    found = records.found(edges.reader, source, np.array([id_], np.int64))
    if not found.num_rows:
        raise UnknownId(f"source {source.name!r} has no record with the id {given!r}")
    moment = pc.cast(found[STORED_TIME], pa.int64())[0].as_py()
    own = found.select(source.schema.names).slice(0, 1).to_pylist()[0]
    runs = edges.reader.query(
        "SELECT f.query_id, max(b.batch) AS batch FROM flows f JOIN batches b USING (query_id) "
        "WHERE f.flow = ? GROUP BY ALL ORDER BY max(b.seq)",
        [source.flow],
    )
    done = tuple((run["query_id"], run["batch"]) for run in runs.to_pylist())
    return _Asked(edges, source, id_, moment, json.dumps(own, default=str), done)


def _fates(asked: _Asked, sink: Sink, node: nodes.Sink) -> list[Fate]:
    """What became of the record in all queries of its flow, each thing once."""
    found: dict[Fate, None] = {}
    read = False
    for run in asked.runs:
        told = follow(asked.edges.engine, sink, run, (asked.source.name, asked.id), asked.time)
        if any(fate.kind == fates.ARRIVED for fate in told):
            read = True
            found |= dict.fromkeys(_settled(asked, sink, node, run[0], told))
    if not read:
        return [Fate(asked.source.name, fates.UNREAD, values=asked.values)]
    return list(found)


def _settled(
    asked: _Asked, sink: Sink, node: nodes.Sink, query_id: str, told: Sequence[Fate]
) -> list[Fate]:
    """The fates alone, after what only the store knows: which results there are."""
    mine = {fate.step: fate for fate in told if fate.kind == fates.TIED}
    ties = {fate.step for fate in told if fate.kind == fates.TIES}
    ended = [f for f in told if f.kind not in (fates.ARRIVED, fates.TIED, fates.TIES)]
    ends = {fate.step for fate in ended}
    for step in ties & deciding(node):
        if any(_is_below(above, step) for above in node.upstream() if above.step in ends):
            raise _spark_chose(sink, node, step)
    settled = [fate for fate in ended if fate.kind != fates.REACHED]
    reached = [fate for fate in ended if fate.kind == fates.REACHED]
    stored = _stored(asked, sink, query_id, reached)
    for fate in reached:
        assert fate.result is not None
        if sink.capture == "none" and not ties:
            settled.append(replace(fate, result=None))
        elif fate.result in stored:
            settled += [replace(fate, result=one) for one in stored[fate.result]]
        elif mine:
            # It came out of the replay and not of the run: another row of its batch was kept.
            settled += _lost_ties(asked, mine.values())
        elif ties:
            raise _spark_chose(sink, node, min(ties))
        else:
            raise StoreError(
                f"sink {sink.name!r}: a replay gives result {fate.result}, which is not stored: "
                "the source or the flow's code has changed since"
            )
    if not settled:
        raise StoreError(f"sink {sink.name!r}: record {asked.id} was lost from sight in a replay")
    return settled


def _stored(
    asked: _Asked, sink: Sink, query_id: str, reached: Sequence[Fate]
) -> dict[int, list[int]]:
    """The stored results of a sink, by the id that a replay gives them."""
    if not reached:
        return {}
    rows = asked.edges.reader.query(
        f"SELECT coalesce(r.{BASE}, r.{ID}) AS base, r.{ID} AS id FROM result_{sink.no} r "
        f"JOIN batches b ON r.{SEQ} = b.seq WHERE b.query_id = ? "
        f"AND coalesce(r.{BASE}, r.{ID}) IN (SELECT unnest(?::BIGINT[])) ORDER BY ALL",
        [query_id, [fate.result for fate in reached]],
    )
    found: dict[int, list[int]] = {}
    for row in rows.to_pylist():
        found.setdefault(row["base"], []).append(row["id"])
    return found


def _lost_ties(asked: _Asked, ties: Iterable[Fate]) -> list[Fate]:
    """Ties as duplicates of the others; one with another row of the same record is none."""
    own = f"{asked.source.name} {asked.id}"
    named = [(tie, [o for o in (tie.other or "").split(", ") if o != own]) for tie in ties]
    return [
        replace(tie, kind=fates.DUPLICATE, other=" or ".join(others))
        for tie, others in named
        if others
    ][:1]


def _is_below(node: nodes.Node, step: str) -> bool:
    return node.step != step and any(above.step == step for above in node.upstream())


def _spark_chose(sink: Sink, node: nodes.Sink, step: str) -> UnsupportedError:
    dedup = next(above for above in node.upstream() if above.step == step)
    return UnsupportedError(
        f"sink {sink.name!r} can't be replayed: deduplicate step {step!r} at {dedup.site}: which "
        "of several rows of one batch survived was Spark's choice"
    )
