"""What a writer can say of its store, whether that is one file or a lake."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, Protocol

from headwater.store.select import Closed

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    import pyarrow as pa


class Holding(Protocol):
    """A store that this process writes: its facts, and the way to change them for others."""

    _lock: threading.RLock
    _closing: bool

    def query(self, sql: str, params: Sequence[object] = ()) -> pa.Table:
        """The rows of one SELECT."""
        ...

    def _one(self, sql: str, *params: object) -> Any:
        """The one value of a SELECT; none without a row."""
        ...

    @property
    def store_id(self) -> str:
        """What tells this store from every other, also after it was moved."""
        return str(self._one("SELECT value FROM meta WHERE key = 'store_id'"))

    def flows(self) -> list[dict[str, Any]]:
        """The registered flows, one per streaming query, as they were given."""
        rows = self.query("SELECT * FROM flows").to_pylist()
        return [{**row, "definition": json.loads(row["definition"])} for row in rows]

    def last_batch(self, query_id: str) -> int | None:
        """The latest batch of a query that the store has."""
        last: int | None = self._one("SELECT max(batch) FROM batches WHERE query_id = ?", query_id)
        return last

    def watermark(self, query_id: str) -> datetime | None:
        """The watermark of the latest batch of a query that has one."""
        found: datetime | None = self._one(
            "SELECT max(watermark) FROM batches WHERE query_id = ?", query_id
        )
        return found

    def arrivals(self, flow: str) -> dict[str, list[str]]:
        """The files that the batches of a flow have read, by source."""
        rows = self.query(
            "SELECT s.name, a.path FROM arrivals a JOIN sources s USING (source_no) "
            "WHERE s.flow = ?",
            [flow],
        )
        found: dict[str, list[str]] = {}
        for row in rows.to_pylist():
            found.setdefault(row["name"], []).append(row["path"])
        return found

    @contextlib.contextmanager
    def _giving_way(self) -> Iterator[None]:
        """The lock, for a call that is served: who closes waits for those with it in hand."""
        while not self._lock.acquire(timeout=0.1):
            if self._closing:
                raise Closed
        try:
            if self._closing:
                raise Closed
            yield
        finally:
            self._lock.release()
