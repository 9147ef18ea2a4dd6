"""Backward: from results to the source records that they came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.query import records
from headwater.query.columns import Own, fixed
from headwater.query.naming import by, united
from headwater.store.batch import ID

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.query.edges import Edges
    from headwater.query.predicate import Selection
    from headwater.store.catalog import Catalog, Sink, Source


def backward(
    edges: Edges,
    catalog: Catalog,
    sink: Sink,
    selection: Selection,
    *,
    columns: bool,
    many: bool,
    to: str | None = None,
) -> pa.Table:
    """The records of the selected results: `source`, `id`, `event_time`, then own columns.

    With `many`, a first column `result_id` says whose record each is. `to` is the only source.
    """
    names = ("result_id",) * many + ("source", "id", "event_time")
    sources = tuple(s for s in catalog.sources_of(sink) if to in (None, s.name))
    own = Own(sources, names) if columns else None
    tables = []
    for source, asked, rows in origins(edges, sources, sink, selection, own=columns):
        table = rows.rename_columns(
            ["id", "event_time", *(own.names(source).values() if own else ())]
        )
        label = pa.repeat(pa.scalar(source.name), rows.num_rows)
        table = table.append_column("source", label)
        tables.append(table.append_column("result_id", asked) if many else table)
    fields = [field for source in sources for field in own.fields(source)] if own else []
    answer = united(tables, pa.schema([*fixed(*names), *fields]))
    return by("result_id", answer) if many else answer


def origins(
    found: Edges, sources: tuple[Source, ...], sink: Sink, selection: Selection, *, own: bool
) -> Iterator[tuple[Source, pa.Array, pa.Table]]:
    """By source: the result ids of the selected edges, and beside each its record."""
    edges = found.of_results(sink, selection)
    numbers = edges["source_no"].to_numpy()
    for source in sources:
        part = edges.filter(pa.array(numbers == source.no))
        if not part.num_rows:
            continue
        ids = part["source_id"].to_numpy()
        near = part["seq"].to_numpy()
        if source.is_step and own:
            known = found.rows_of_step(sink, source, part["result_id"].to_numpy(), ids)
        else:
            known = records.found(found.reader, source, ids, own=own, near=near)
        rows = records.beside(known, ids)
        yield source, part["result_id"], rows.set_column(0, ID, pa.array(ids))
