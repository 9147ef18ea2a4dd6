"""Partial provenance: results in terms of the rows of a step on the way (Ariadne's P(O, I))."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from headwater.query.columns import FIXED
from headwater.query.naming import by, own_names

if TYPE_CHECKING:
    from headwater.query.edges import Edges
    from headwater.query.predicate import Selection
    from headwater.store.catalog import Sink


def backward(
    edges: Edges, sink: Sink, selection: Selection, to: str, *, columns: bool, many: bool
) -> pa.Table:
    """The rows of a step behind the selected results: `source`, `id`, `event_time`, own columns.

    They are found by a replay, whatever the capture mode; a row's id is its key in that step.
    """
    names = ("result_id",) * many + ("source", "id", "event_time")
    chosen = edges.chosen(sink, selection)["result_id"].to_numpy()
    if not len(chosen):
        return pa.schema([(name, FIXED[name]) for name in names]).empty_table()
    found = edges.engine.sets(sink, chosen, to=to)
    rows = edges.engine.step_rows(sink, chosen, to, found["source_id"].to_numpy())
    beside = rows.take(pc.index_in(found["source_id"], rows.column(0)))
    table = pa.table(
        {
            "result_id": found["result_id"],
            "source": found["source"],
            "id": found["source_id"],
            "event_time": beside.column(1).cast(FIXED["event_time"]),
        }
    ).select(names)
    if columns:
        own = rows.column_names[2:]
        called = own_names({to: own}, names)[to]
        for at, name in enumerate(own):
            table = table.append_column(called[name], beside.column(at + 2))
    return by("result_id", table) if many else table
