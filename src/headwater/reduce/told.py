"""Edges as they were told, as columns of numbers: what parsing gives to the reducers.

>>> from headwater.reduce.elements import Edge
>>> parsed = assembled([of_edges([(0, Edge("used", "m1", "in-7", time=5))])])
>>> parsed.edges.num_rows, sorted(parsed.names.to_pylist()), parsed.spans["last"].to_pylist()
(1, ['in-7', 'm1'], [5])
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import HeadwaterError
from headwater.reduce.blocks import NO_TIME, Bools, Ints, vertex_ids
from headwater.reduce.elements import EDGES, Edge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Columns = Mapping[str, pa.Array]

TYPES = tuple(EDGES)
USED, GENERATED, DERIVED, MEMBER = range(4)
"""The types' places in `TYPES`."""

FIELDS = ("activity", "entity", "generatedEntity", "usedEntity", "collection")
"""Fields that name a vertex."""

_WORDS = pa.dictionary(pa.int32(), pa.string())
_REJECTED = pa.schema([("line", pa.string()), ("reason", pa.string()), ("where", pa.int64())])


@dataclass(frozen=True, slots=True, eq=False)
class Parsed:
    """What some lines or a document told."""

    edges: pa.Table
    """source, destination, execution: int64; function, node: dictionary; time: µs; as told."""
    ids: Ints
    """The edges' vertices, in order and distinct."""
    names: pa.StringArray
    kept: Ints
    """Entities told to be outputs, in order and distinct."""
    spans: pa.Table
    """A row for each execution of which a time was told: execution, function, node, first, last."""
    rejected: pa.Table
    """line (its text, cut), reason, where (the row, or a document's line, counted from 0)."""
    filtered: dict[str, int]
    """Elements of which no edge is made, by type."""
    ends: list[str]
    """Jobs whose end was told."""
    told: dict[str, int]
    """Edges by type."""


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """Edges and the names of their vertices; ids may come more than once."""

    where: Ints
    source: Ints
    destination: Ints
    execution: Ints
    time: Ints
    ran: Bools
    """Whether the execution is one of a function: an activity, or told."""
    function: pa.DictionaryArray
    node: pa.DictionaryArray
    kept: Ints
    counts: Ints
    """Edges of each type."""
    ids: Ints
    names: pa.StringArray


def of_columns(types: Ints, columns: Columns, where: Ints, time: Ints) -> Told:
    """Edges from columns that have been checked; `types` are places in `TYPES`."""
    found = _Vertices(types, columns)
    used, generated = types == USED, types == GENERATED
    activity, entity = found.ids("activity"), found.ids("entity")
    source, destination = np.where(used, activity, entity), np.where(used, entity, activity)
    for place in (DERIVED, MEMBER):
        chosen = types == place
        if chosen.any():
            begin, end = EDGES[TYPES[place]]
            source[chosen] = found.ids(begin)[chosen]
            destination[chosen] = found.ids(end)[chosen]
    by_activity = used | generated
    execution, told = _executions(columns, by_activity, activity, source)
    output = pc.fill_null(columns["output"], False).to_numpy(zero_copy_only=False)
    return Told(
        where,
        source,
        destination,
        execution,
        time,
        by_activity | told,
        _words(columns["function"]),
        _words(columns["node"]),
        np.where(used, destination, source)[output],
        np.bincount(types, minlength=len(TYPES)),
        np.concatenate(found.known),
        pa.concat_arrays(found.names),
    )


def of_edges(edges: Sequence[tuple[int, Edge]]) -> Told:
    """The same from edges that were read one by one, each with its row."""
    types = [TYPES.index(edge.type) for _, edge in edges]
    rows: list[dict[str, Any]] = [
        {
            **dict(zip(EDGES[edge.type], (edge.source, edge.destination), strict=True)),
            "execution": edge.execution,
            "function": edge.function,
            "node": edge.node,
            "output": edge.output,
        }
        for _, edge in edges
    ]
    text = (*FIELDS, "execution", "function", "node")
    columns = {name: pa.array([row.get(name) for row in rows], pa.string()) for name in text}
    columns["output"] = pa.array([row["output"] for row in rows], pa.bool_())
    where = np.array([at for at, _ in edges], np.int64)
    time = np.array([edge.time for _, edge in edges], np.int64)
    return of_columns(np.array(types, np.int64), columns, where, time)


def assembled(
    parts: Sequence[Told],
    rejected: Sequence[Any] = (),
    filtered: Mapping[str, int] | None = None,
    ends: Sequence[str | None] = (),
) -> Parsed:
    """The parts as one, in the order of their rows."""
    parts = parts or [of_edges([])]
    where = np.concatenate([part.where for part in parts])
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("source", "destination", "execution", "time", "ran")
    }
    words = {
        name: _united([getattr(part, name) for part in parts]) for name in ("function", "node")
    }
    if len(parts) > 1:
        order = np.argsort(where, kind="stable")
        columns = {name: column[order] for name, column in columns.items()}
        words = {name: column.take(pa.array(order)) for name, column in words.items()}
    ran = columns.pop("ran") & (columns["time"] != NO_TIME)
    ids, names = _named(parts)
    counts = np.sum([part.counts for part in parts], axis=0)
    return Parsed(
        pa.table(
            {
                **{name: columns[name] for name in ("source", "destination", "execution")},
                **words,
                "time": columns["time"],
            }
        ),
        ids,
        names,
        np.unique(np.concatenate([part.kept for part in parts])),
        spans(columns["execution"], columns["time"], ran, words["function"], words["node"]),
        pa.Table.from_pylist(
            [{"line": r.line, "reason": r.reason, "where": r.where} for r in rejected], _REJECTED
        ),
        dict(filtered or {}),
        [job for job in ends if job is not None],
        {name: int(counts[place]) for place, name in enumerate(TYPES) if counts[place]},
    )


def spans(execution: Ints, time: Ints, ran: Bools, function: pa.Array, node: pa.Array) -> pa.Table:
    """The first and the last time of each execution; edges that `ran` leaves out say nothing."""
    at = np.flatnonzero(ran)
    if len(at) != len(execution):
        execution, time = execution[at], time[at]
    # Edges of an execution mostly stand together: first by runs, then runs of one execution.
    starts = np.flatnonzero(np.diff(execution, prepend=~execution[:1]))
    first, last = (reduce.reduceat(time, starts) if len(starts) else time for reduce in _ENDS)
    runs, rows = execution[starts], at[starts]
    order = np.argsort(runs, kind="stable")
    again = np.flatnonzero(np.diff(runs[order], prepend=~runs[order][:1]))
    if len(again) < len(order):
        first, last = (
            reduce.reduceat(times[order], again)
            for reduce, times in zip(_ENDS, (first, last), strict=True)
        )
        runs, rows = runs[order][again], rows[order][again]
    chosen = pa.array(rows)
    return pa.table(
        {
            "execution": runs,
            "function": function.take(chosen),
            "node": node.take(chosen),
            "first": first,
            "last": last,
        }
    )


_ENDS = (np.minimum, np.maximum)


@dataclass(slots=True)
class _Vertices:
    """The ids of columns of names; each distinct name of a column is hashed once."""

    types: Ints
    columns: Columns
    known: list[Ints] = field(default_factory=list)
    names: list[pa.StringArray] = field(default_factory=list)

    def ids(self, name: str) -> Ints:
        """The ids of a column; 0 where an edge's type has no such field, whatever it says there."""
        column = self.columns[name]
        telling = [place for place, kind in enumerate(TYPES) if name in EDGES[kind]]
        if len(telling) < len(TYPES) and column.null_count < len(column):
            meant = np.isin(self.types, telling)
            if not meant.all():
                column = pc.if_else(pa.array(meant), column, pa.scalar(None, column.type))
        kind: Literal["activity", "entity"] = "activity" if name == "activity" else "entity"
        ids, known, names = hashed(column, kind)
        self.known.append(known)
        self.names.append(names)
        return ids


def hashed(
    column: pa.Array, kind: Literal["activity", "entity"]
) -> tuple[Ints, Ints, pa.StringArray]:
    """The id of each row, 0 where there is none; then the distinct ids and their names."""
    coded = column.dictionary_encode()
    every = pa.array(np.arange(len(coded.dictionary), dtype=np.int32))
    known = vertex_ids(pa.DictionaryArray.from_arrays(every, coded.dictionary), kind)
    if not coded.null_count:
        return known[coded.indices.to_numpy()], known, coded.dictionary
    places = pc.fill_null(coded.indices, len(known)).to_numpy()
    return np.append(known, 0)[places], known, coded.dictionary


def _executions(
    columns: Columns, by_activity: Bools, activity: Ints, source: Ints
) -> tuple[Ints, Bools]:
    """The executions' ids, and which were told; else it is the activity, else the source."""
    column = columns["execution"]
    if column.null_count == len(column):
        return np.where(by_activity, activity, source), np.zeros(len(column), bool)
    if by_activity.all() and column.equals(columns["activity"]):
        return activity, by_activity
    told = pc.fill_null(pc.binary_length(column), 0).to_numpy() > 0
    chosen = hashed(column, "activity")[0]
    return np.where(told, chosen, np.where(by_activity, activity, source)), told


def _words(column: pa.Array) -> pa.DictionaryArray:
    """Few different words; an empty one is none."""
    coded = column.dictionary_encode()
    if "" in coded.dictionary.to_pylist():
        coded = pc.if_else(pc.equal(column, ""), None, column).dictionary_encode()
    return coded


def _united(columns: list[pa.DictionaryArray]) -> pa.DictionaryArray:
    if len(columns) == 1:
        return columns[0]
    return pa.chunked_array(columns, _WORDS).unify_dictionaries().combine_chunks()


def _named(parts: Sequence[Told]) -> tuple[Ints, pa.StringArray]:
    """The parts' ids, in order and distinct, and their names; refuses one id with two names."""
    ids = np.concatenate([part.ids for part in parts])
    names = pa.concat_arrays([part.names for part in parts])
    order = np.argsort(ids)
    ordered = ids[order]
    again = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(again):
        one, other = names.take(pa.array(order[again])), names.take(pa.array(order[again + 1]))
        if not one.equals(other):
            both = zip(one.to_pylist(), other.to_pylist(), strict=True)
            before, after = next((before, after) for before, after in both if before != after)
            raise HeadwaterError(
                f"the names {before!r} and {after!r} have one hash: rename one of them"
            )
        order = np.delete(order, again + 1)
        ordered = ids[order]
    return ordered, names.take(pa.array(order))
