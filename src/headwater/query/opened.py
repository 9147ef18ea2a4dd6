"""What every question to a store starts from: its reader, and the names and ids that users give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from headwater.errors import UnknownId, UnknownName
from headwater.query import results
from headwater.query.predicate import Selection, Time
from headwater.store import ids as record_ids
from headwater.store.catalog import Catalog, Sink, Source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.query.edges import Edges
    from headwater.store.reader import OpenReader

ResultIds: TypeAlias = "int | Sequence[int] | pa.Array | pa.ChunkedArray"
LISTS = (list, np.ndarray, pa.Array, pa.ChunkedArray)
"""What is several ids; a tuple may be one id of a record."""


class Opened:
    """A store that is open. Its questions are in classes of their own, a kind of them in each."""

    _reader: OpenReader
    _catalog: Catalog
    _edges: Edges

    def _refresh(self) -> None:
        self._catalog = self._edges.catalog = Catalog.read(self._reader.query)

    def _sink(self, name: str | None) -> Sink:
        if name is None:
            self._refresh()
            if len(self._catalog.sinks) == 1:
                return self._catalog.sinks[0]
            names = ", ".join(sink.name for sink in self._catalog.sinks) or "none yet"
            raise UnknownName(f"say which sink; the store has: {names}")
        try:
            return self._catalog.sink(name)
        except UnknownName:
            # A flow may have been registered since.
            self._refresh()
            return self._catalog.sink(name)

    def _source(self, name: str) -> Source:
        try:
            return self._catalog.source(name)
        except UnknownName:
            self._refresh()
            return self._catalog.source(name)

    def _selection(
        self,
        result_id: ResultIds | None,
        where: str | None,
        since: Time | None,
        until: Time | None,
    ) -> tuple[Selection, bool]:
        if result_id is None:
            return Selection.of(None, where, since, until), True
        # A tuple is several result ids, where it may be one id of a record.
        given = list(result_id) if isinstance(result_id, tuple) else result_id
        asked = tuple(one_id(one) for one in values(given))
        return Selection.of(asked, where, since, until), isinstance(given, LISTS)

    def _records(self, source: Source | None, id: object) -> tuple[int, ...]:
        """The ids of records, as the user gave them."""
        if source is None:
            return ()
        query = self._reader.query
        return tuple(record_ids.resolved(source, one, query) for one in values(id))

    def _require(self, sink: Sink, result_id: int) -> None:
        if not results.exists(self._reader, sink, result_id):
            raise UnknownId(f"sink {sink.name!r} has no result with the id {result_id}")


def one_id(given: object) -> int:
    """An id as a number."""
    try:
        return int(given)  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError) as error:
        raise UnknownId(f"a result id is a whole number, not {given!r}") from error


def values(given: Any) -> list[Any]:
    """One id or several, as a list."""
    if isinstance(given, pa.Scalar):
        return [given.as_py()]
    if isinstance(given, pa.Array | pa.ChunkedArray):
        return list(given.to_pylist())
    if isinstance(given, np.ndarray):
        return list(given.tolist())
    return list(given) if isinstance(given, list) else [given]
