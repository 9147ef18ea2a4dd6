"""What a batch brings to a live graph, beside its edges: written by the batch's own tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.live.graph import records_of
from headwater.store.batch import ID, TIME
from headwater.times import as_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from headwater.live.graph import Ints
    from headwater.store.batch import ResultSet
    from headwater.store.lake.tasks import Sorted

TIMES, SESSIONS = "times", "sessions"
TIMES_COLUMNS = "source_no smallint, id bigint, time bigint"
SESSIONS_COLUMNS = "step smallint, source_no smallint, key bigint, time bigint, id bigint"


@dataclass(frozen=True, slots=True)
class Came:
    """Takes from a batch's rows what the graph has to be told.

    `folder` is the graph's own in the lake, `sources` the numbers of the sources whose records are
    past at some watermark, `steps` the session steps with the sources whose records they hold.
    """

    folder: str
    sources: Mapping[str, int]
    steps: tuple[tuple[str, tuple[str, ...]], ...]

    def relation(self, kind: str) -> str:
        """The folder of the files of one kind, within the lake."""
        return f"{self.folder}/{kind}"

    def __call__(self, found: Sorted) -> Iterator[tuple[str, pa.Table]]:
        """What is to be written, and where."""
        came = {**found.times, **found.records}
        times = [
            _table(source_no=no, id=came[name][ID].to_numpy(), time=as_numbers(came[name][TIME]))
            for name, no in self.sources.items()
            if name in came
        ]
        if times:
            yield self.relation(TIMES), pa.concat_tables(times)
        entered = [
            table
            for number, (step, sources) in enumerate(self.steps)
            if step in found.sessions
            for table in self._entered(number, sources, found.sessions[step])
        ]
        if entered:
            yield self.relation(SESSIONS), pa.concat_tables(entered)

    def _entered(
        self, number: int, sources: tuple[str, ...], rows: ResultSet
    ) -> Iterator[pa.Table]:
        """A row for each record of each row that enters a session step."""
        keys, times = rows.rows[ID].to_numpy(), as_numbers(rows.rows[TIME])
        for name in sources:
            key, time, ids = records_of(keys, times, rows.origins.get(name))
            yield _table(step=number, source_no=self.sources[name], key=key, time=time, id=ids)


def _table(**columns: int | Ints) -> pa.Table:
    """Columns of numbers; one that is a single number is the same in each row."""
    many = max(len(one) for one in columns.values() if not isinstance(one, int))
    return pa.table(
        {
            name: pa.array(np.full(many, one, np.int16) if isinstance(one, int) else one)
            for name, one in columns.items()
        }
    )
