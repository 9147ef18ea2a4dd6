"""`store.export`: an answer, or a span of results, in a format of other tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.query.opened import Opened, ResultIds, one_id, values
from headwater.query.predicate import Selection, Time

if TYPE_CHECKING:
    from headwater.export import Exported
    from headwater.export.choosing import Direction
    from headwater.export.files import Target


class ExportQueries(Opened):
    """The part of a store that writes its answers to files."""

    def export(
        self,
        to: Target,
        *,
        format: str = "prov-json",
        sink: str | None = None,
        result_id: ResultIds | None = None,
        source: str | None = None,
        id: object = None,
        entity: str | None = None,
        direction: Direction = "backward",
        where: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
        batches: tuple[int | None, int | None] | None = None,
        columns: bool = True,
    ) -> Exported:
        """Write results, their records and what connects them to a file, or to a binary stream.

        `format` is `prov-json`, `prov-n`, `dot`, `graphml` or `openlineage`. What is written is the
        answer of `backward` (`sink` and `result_id`), of `forward` (`source` and `id`), or of
        either for an `entity`; or else all results, or those of a `sink`, `where` a condition
        holds, in a span of event time or of `batches` (the first and the last). A file appears
        whole or not at all.
        """
        from headwater import export

        self._refresh()
        known = None if source is None else self._source(source)
        given = list(result_id) if isinstance(result_id, tuple) else result_id
        asked = export.Asked(
            sink=None if sink is None else self._sink(sink),
            results=None if given is None else tuple(one_id(one) for one in values(given)),
            source=known,
            records=None if id is None else self._records(known, id),
            entity=entity,
            direction=direction,
            selection=Selection.of(None, where, since, until),
            batches=batches,
            columns=columns,
        )
        return export.export(
            self._edges, asked, to, format, lambda: getattr(self, asked.direction)(entity=entity)
        )
