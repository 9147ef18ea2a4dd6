"""What a store holds: its sources, sinks, flows and batches, their names, and what they take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.errors import UnknownName
from headwater.query import stats
from headwater.query.opened import Opened
from headwater.store import ids as record_ids

if TYPE_CHECKING:
    import pyarrow as pa

    from headwater.query.stats import Stats


class ContentQueries(Opened):
    """The part of a store that says what is in it."""

    def sources(self) -> pa.Table:
        """The registered sources."""
        return self._reader.query("SELECT flow, name, definition FROM sources ORDER BY source_no")

    def sinks(self) -> pa.Table:
        """The registered sinks."""
        return self._reader.query("SELECT flow, name, definition FROM sinks ORDER BY sink_no")

    def flows(self) -> pa.Table:
        """The registered flows, one row per streaming query."""
        return self._reader.query("SELECT * FROM flows ORDER BY flow, query_id")

    def batches(self) -> pa.Table:
        """The committed batches, in order."""
        return self._reader.query(
            "SELECT f.flow, b.query_id, b.batch, b.watermark, b.results, b.edges, b.records, "
            "b.committed_at FROM batches b LEFT JOIN flows f USING (query_id) "
            # In a lake, what is settled of a job comes as batches of its own.
            "WHERE b.query_id NOT IN (SELECT query_id FROM jobs) ORDER BY b.seq"
        )

    def entity(self, name: str, id: object) -> str:
        """The global name `hw:<flow>/<source-or-sink>/<id>` of a record or result."""
        try:
            source = self._source(name)
        except UnknownName:
            return entity_name(self._sink(name).flow, self._sink(name).name, int(str(id)))
        number = record_ids.resolved(source, id, self._reader.query)
        return entity_name(source.flow, source.name, number)

    def stats(self) -> Stats:
        """What the store takes in its file, by sink and by relation, and how it is encoded."""
        self._refresh()
        return stats.stats(self._reader, self._catalog)


def entity_name(flow: str, name: str, id: int) -> str:
    """The global name of a record or result.

    >>> entity_name("traffic", "reports", 7)
    'hw:traffic/reports/7'
    """
    return f"hw:{flow}/{name}/{id}"
