"""Records that are marked as private, the results that hold them, and their erasure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.query import erasing, marks
from headwater.query.opened import Opened, values

if TYPE_CHECKING:
    import pyarrow as pa

    from headwater.query.erasing import EraseReport
    from headwater.query.marks import MarkReport


class MarkQueries(Opened):
    """The part of a store that marks and erases records."""

    def mark(
        self, source: str, *, where: str | None = None, ids: Any = None, reason: str = ""
    ) -> MarkReport:
        """Mark records, and so every result that holds one, now and as they come.

        `where` is SQL over the source's columns; where the store keeps the source's records, those
        that come later and match are marked as well. `ids` are as in `forward`.
        """
        self._refresh()
        given = None if ids is None else values(ids)
        return marks.mark(self._edges, self._source(source), where, given, reason)

    def unmark(self, number: int) -> None:
        """Take a mark away."""
        marks.unmark(self._edges, number)

    def marks(self) -> pa.Table:
        """The marks: `mark`, `source`, `reason`, `predicate`, `marked_at`, `records` by now."""
        self._refresh()
        return marks.marks(self._edges)

    def marked(self, sink: str | None = None) -> pa.Table:
        """The results that hold a marked record: `sink`, `result_id`, `event_time`, `mark`, …

        A result with records of several marks has a row for each.
        """
        self._refresh()
        return marks.marked(self._edges, None if sink is None else self._sink(sink))

    def erase(
        self,
        source: str,
        *,
        where: str | None = None,
        ids: Any = None,
        mark: int | None = None,
        reason: str = "",
        dry_run: bool = False,
    ) -> EraseReport:
        """Remove the contents of records from the store, for good; ids and edges stay.

        A record that was erased has null columns in answers, is not read again from its source and
        not stored again when it is delivered again. Results keep their values: those that hold
        such a record are listed. `dry_run` only says what would be erased.
        """
        self._refresh()
        return erasing.erase(
            self._edges,
            self._source(source),
            where=where,
            given=None if ids is None else values(ids),
            mark=mark,
            reason=reason,
            dry_run=dry_run,
        )
