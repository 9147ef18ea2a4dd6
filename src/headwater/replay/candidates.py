"""Which results a record may have reached: the ancestor functions read forwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from headwater.columns import FEW_VALUES
from headwater.flow.terms import Ref, unaliased
from headwater.replay.ancestors import Range, ranges
from headwater.replay.columns import aggregate_key, source_column
from headwater.store.batch import TIME
from headwater.store.schema import quoted

if TYPE_CHECKING:
    from headwater.flow import nodes


def candidates(sink: nodes.Sink, source: str, records: pa.Table) -> str:
    """A condition in SQL that holds for every stored result that some records reached.

    `records` has the records' own columns and their time.
    """
    conditions = ["true"]
    range_ = ranges(sink).get(source)
    times = records[TIME]
    if isinstance(range_, Range) and not times.null_count:
        micros = times.cast(pa.int64())
        low = pc.min(micros).as_py() - range_.after
        high = pc.max(micros).as_py() + range_.before
        conditions.append(
            f"({TIME} IS NULL OR {TIME} BETWEEN make_timestamptz({low}) "
            f"AND make_timestamptz({high}))"
        )
    for column, own in _keys(sink, source):
        kind = records.schema.field(own).type
        if not pa.types.is_integer(kind) or records[own].null_count:
            continue
        values = pc.unique(records[own]).to_pylist()
        if len(values) <= FEW_VALUES:
            conditions.append(f"{quoted(column)} IN ({', '.join(map(str, values))})")
    return " AND ".join(conditions)


def _keys(sink: nodes.Sink, source: str) -> list[tuple[str, str]]:
    """The sink's columns that are keys of its last aggregate, and the source's that they are."""
    found = []
    for column in _columns(sink):
        at = aggregate_key(sink, column)
        if at is None:
            continue
        step, key = at
        term = unaliased(step.keys[key].term)
        if not isinstance(term, Ref) or len(term.parts) != 1:
            continue
        origin = source_column(step.input, term.parts[0])
        if origin is not None and origin[0].name == source:
            found.append((column, origin[1]))
    return found


def _columns(sink: nodes.Sink) -> list[str]:
    """The names that the sink's rows may have for keys of an aggregate."""
    from headwater.flow import nodes as kinds

    names: dict[str, None] = {}
    for node in sink.upstream():
        match node:
            case kinds.Aggregate(keys=keys):
                names |= {key.name: None for key in keys if key.name}
            case kinds.Project(columns=columns):
                names |= {expr.name: None for expr in columns if expr.name}
            case kinds.Rename(names=renamed):
                names |= {new: None for _, new in renamed}
    return list(names)
