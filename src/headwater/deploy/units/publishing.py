"""Results of a piece's sinks, published as streams, batch by batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from headwater.deploy.building.carried import EVENT_ID, EVENT_TIME
from headwater.store.batch import TIME
from headwater.streams.schema import parse

if TYPE_CHECKING:
    from headwater.streams import Streams
    from headwater.streams.declaration import Producer


@dataclass(frozen=True, slots=True)
class Publishing:
    """Where the results of one sink go.

    A batch is published under the query's id and its number: Spark and the store may bring it
    again after a crash, the stream has it once.
    """

    streams: Streams
    into: tuple[str, ...]
    """The streams that get every result."""
    schema: str
    producer: Producer

    def take(self, query_id: str, batch: int, ids: pa.Array, rows: pa.Table) -> None:
        """Publish a batch."""
        events = stream_table(ids, rows, parse(self.schema))
        for name in self.into:
            self.streams.publish(
                name, events, key=(query_id, batch), producer=self.producer, consent=True
            )


def stream_table(ids: pa.Array, rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Results as events: ids and times first, in the order of their times."""
    named = {name: rows[name] for name in rows.column_names}
    columns = {**named, EVENT_ID: ids, EVENT_TIME: rows[TIME]}
    table = pa.table([_cast(columns[f.name], f.type) for f in schema], schema=schema)
    # Spark gives the rows of a batch in whatever order; run again, it is to be the same.
    order = pc.sort_indices(table, sort_keys=[(EVENT_TIME, "ascending"), (EVENT_ID, "ascending")])
    return table.take(order)


def _cast(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    return column if column.type == kind else column.cast(kind)
