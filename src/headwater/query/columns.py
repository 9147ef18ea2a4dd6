"""The fixed columns of answers, and the schema of an answer with its own columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.query.naming import Names, own_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.store.catalog import Sink, Source

TIME = pa.timestamp("us", tz="UTC")

FIXED: Mapping[str, pa.DataType] = {
    "source": pa.string(),
    "sink": pa.string(),
    "id": pa.int64(),
    "result_id": pa.int64(),
    "event_time": TIME,
    "final": pa.bool_(),
}


def fixed(*names: str) -> list[pa.Field]:
    """Fixed columns as fields."""
    return [pa.field(name, FIXED[name]) for name in names]


class Own:
    """How the own columns of some sources and sinks are called in one answer."""

    def __init__(self, parts: Sequence[Source | Sink], names: Sequence[str]) -> None:
        self._parts = parts
        # Two flows may use one name: then the flow tells them apart.
        labels = [part.name for part in parts]
        self._labels = [
            part.name if labels.count(part.name) == 1 else part.qualified for part in parts
        ]
        columns = {
            label: part.schema.names for label, part in zip(self._labels, parts, strict=True)
        }
        self._names = own_names(columns, names)

    def names(self, part: Source | Sink) -> Names:
        """The answer's name of each own column of `part`."""
        return self._names[self._labels[self._parts.index(part)]]

    def fields(self, part: Source | Sink) -> list[pa.Field]:
        """The own columns of `part` as they stand in the answer."""
        names = self.names(part)
        return [pa.field(names[column.name], column.type) for column in part.schema]
