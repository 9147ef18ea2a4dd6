"""Join: each result beside each of its source records (Ariadne's p-join)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.query.backward import origins
from headwater.query.columns import Own, fixed
from headwater.query.naming import by, united
from headwater.query.records import beside
from headwater.query.results import results
from headwater.store.batch import ID

if TYPE_CHECKING:
    from headwater.query.edges import Edges
    from headwater.query.predicate import Selection
    from headwater.store.catalog import Catalog, Sink

FIXED = ("result_id", "event_time", "source", "id")


def join(edges: Edges, catalog: Catalog, sink: Sink, selection: Selection) -> pa.Table:
    """`result_id`, `event_time`, the result's own columns, `source`, `id`, the record's own."""
    sources = catalog.sources_of(sink)
    own = Own((sink, *sources), FIXED)
    chosen = results(edges.reader, sink, selection)
    chosen = chosen.rename_columns([ID, "event_time", *own.names(sink).values()])
    tables = []
    for source, asked, rows in origins(edges, sources, sink, selection, own=True):
        left = beside(chosen, asked.to_numpy()).rename_columns(
            ["result_id", *chosen.column_names[1:]]
        )
        left = left.append_column("source", pa.repeat(pa.scalar(source.name), rows.num_rows))
        left = left.append_column("id", rows[ID])
        for name, column in zip(own.names(source).values(), rows.columns[2:], strict=True):
            left = left.append_column(name, column)
        tables.append(left)
    fields = [field for source in sources for field in own.fields(source)]
    answer = united(
        tables,
        pa.schema(
            [
                *fixed("result_id", "event_time"),
                *own.fields(sink),
                *fixed("source", "id"),
                *fields,
            ]
        ),
    )
    return by("result_id", answer)
