"""A shard of records: the vertices and labels that a batch adds, and what is kept of the others.

Its state is a list of runs: rows of records that wait for a result with their times, of vertices
with how far they reach, and of vertices that are gone since. A batch adds a run with what is new.
Once the runs hold twice what is still needed, or are many, one takes the place of all.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.live.graph import Alive, past, reached, require_times
from headwater.live.ids import distinct, places
from headwater.live.parallel import rows as kinds
from headwater.live.parallel.rows import by_shard, loaded, numbers
from headwater.live.pending import UNKNOWN
from headwater.live.sessions import longest
from headwater.store.lake.tables import Added, columns_of
from headwater.store.lake.tasks import data_file, lines
from headwater.times import NO_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from headwater.flow.reach import Reach
    from headwater.live.graph import Expiry, Ints, Moment
    from headwater.store.batch import Vertices
    from headwater.store.lake.place import Place

FOLDER = "records"
PENDING, ALIVE, GONE = range(3)
"""Kinds of rows of a state."""
RUNS = 16
"""Runs of a shard that make it write one for all."""
SPARE = 4096
"""Rows that are not worth while to be tidied away."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """Rows of one source in a state."""

    pending: tuple[Ints, Ints]
    alive: tuple[Ints, Ints]
    gone: Ints

    @property
    def rows(self) -> int:
        return len(self.pending[0]) + len(self.alive[0]) + len(self.gone)

    def table(self, source_no: int) -> pa.Table:
        kept = (*self.pending, PENDING), (*self.alive, ALIVE), (self.gone, self.gone, GONE)
        return pa.concat_tables(
            pa.table(
                {
                    "source_no": np.full(len(ids), source_no, np.int16),
                    "kind": np.full(len(ids), kind, np.int8),
                    "id": ids,
                    "value": values,
                }
            )
            for ids, values, kind in kept
        )


@dataclass(frozen=True, slots=True)
class Records:
    """Takes what a batch brings to some shards of records.

    `sources` has the name and the reach of each source by its number, `files` the runs by shard.
    """

    place: Place
    folder: str
    seq: int
    at: Moment
    expiry: Expiry
    sources: Mapping[int, tuple[str, Reach]]
    files: Mapping[str, Sequence[str]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Advance shards; a line for each file that was written."""
        for shard, rows in by_shard(batches):
            yield lines(self._shard(shard, rows))

    def _shard(self, shard: int, came: pa.Table) -> list[Added]:
        before = self.files.get(str(shard), ())
        state = loaded(self.place, self.folder, before)
        told = [Added(**json.loads(one)) for one in came["told"].to_pylist() if one is not None]
        vertices, labels = [], []
        fresh: list[tuple[int, _Kept]] = []
        whole: list[tuple[int, _Kept]] = []
        waiting = 0
        latest: dict[str, Sequence[int]] = {}
        for no, (name, reach) in self.sources.items():
            source = _Source(name, reach, self.expiry, self.at, no, state, came)
            new, gone = source.advance()
            vertices.append(self._vertices(no, new))
            labels.append(self._labels(no, gone))
            fresh.append((no, source.fresh))
            whole.append((no, source.whole))
            waiting += source.whole.rows
            if source.latest is not None:
                latest[name] = [source.latest]
        written = [self._file("vertices", pa.concat_tables(vertices))]
        written.append(self._file("labels", pa.concat_tables(labels)))
        held = 0 if state is None else state.num_rows
        added = sum(kept.rows for _, kept in fresh)
        anew = held + added > 2 * waiting + SPARE or (added and len(before) >= RUNS)
        rows = pa.concat_tables(kept.table(no) for no, kept in (whole if anew else fresh))
        run = self._file(f"{self.folder}/{FOLDER}", rows, shard)
        stats = {"shard": shard, "anew": bool(anew), "waiting": waiting}
        # A line even where nothing was written: it tells how the shard stands.
        path = "" if run is None else run.path
        line = Added(f"{self.folder}/{FOLDER}", path, 0, rows.num_rows, stats, latest)
        return [*told, *(one for one in written if one is not None), line]

    def _file(self, relation: str, rows: pa.Table, shard: int | None = None) -> Added | None:
        if not rows.num_rows:
            return None
        filesystem, root = self.place.filesystem()
        place = "" if shard is None else f"-{shard}"
        path = f"{self.seq}{place}-{uuid.uuid4().hex}.parquet"
        return data_file(filesystem, root, relation, path, rows)

    def _vertices(self, no: int, new: Vertices) -> pa.Table:
        times = pa.array(new.times, mask=new.times == NO_TIME)
        return self._rows("vertices", no, new.ids, times.cast(pa.timestamp("us", "UTC")))

    def _labels(self, no: int, ids: Ints) -> pa.Table:
        return self._rows("labels", no, ids)

    def _rows(self, relation: str, no: int, ids: Ints, *more: pa.Array) -> pa.Table:
        many = len(ids)
        own = [np.full(many, self.seq, np.int64), np.full(many, no, np.int16), ids, *more]
        return pa.table(own, schema=columns_of(relation))


class _Source:
    """The records of one source in a shard, in one batch."""

    def __init__(
        self,
        name: str,
        reach: Reach,
        expiry: Expiry,
        at: Moment,
        no: int,
        state: pa.Table | None,
        came: pa.Table,
    ) -> None:
        self.name, self.at = name, at
        self.endless = reach.unbounded is not None
        self._until = past(reach, expiry)
        take = _taker(came, no)
        self._reached, _ = take(kinds.REACHED)
        self._known, _ = take(kinds.KNOWN)
        self._holds = take(kinds.HELD)
        self._came = take(kinds.CAME)
        old = (lambda _: _EMPTY) if state is None else _taker(state, no)
        ids, times = old(PENDING)
        came_ids, came_times = self._came
        self._ids = np.concatenate([ids, came_ids])
        self._times = np.concatenate([times, came_times])
        alive, due = old(ALIVE)
        still = ~np.isin(alive, old(GONE)[0])
        self._alive = Alive.of(alive[still], due[still])
        self.latest = int(came_times.max()) if len(came_times) else None

    def advance(self) -> tuple[Vertices, Ints]:
        """The vertices and labels of the batch; after it, `fresh` and `whole` are the state."""
        new, gone, alive = reached(
            distinct([self._reached]),
            self._alive,
            self._times_of,
            self._until,
            self._held,
            self.at,
            lambda ids: self._known,
        )
        added = ~places(self._alive.ids, alive.ids)[1]
        left = ~places(alive.ids, self._alive.ids)[1]
        none = np.empty(0, np.int64)
        pending = self._ids, self._times
        self.fresh = _Kept(
            self._waiting(*self._came), (alive.ids[added], alive.due[added]), self._alive.ids[left]
        )
        self.whole = _Kept(self._waiting(*pending), (alive.ids, alive.due), none)
        return new, gone

    def _waiting(self, ids: Ints, times: Ints) -> tuple[Ints, Ints]:
        """Of some records, those that may still have a result."""
        still = np.maximum(self._until(times), self._held(ids)) > self.at.watermark
        return ids[still], times[still]

    def _held(self, ids: Ints) -> Ints:
        return longest(*self._holds, ids)

    def _times_of(self, ids: Ints) -> Ints:
        if self.endless:
            return np.full(len(ids), NO_TIME, np.int64)
        order = np.argsort(self._ids, kind="stable")
        known, times = self._ids[order], self._times[order]
        last = np.append(known[1:] != known[:-1], True) if len(known) else np.empty(0, bool)
        known, times = known[last], times[last]
        at, there = places(known, ids)
        found = np.full(len(ids), UNKNOWN, np.int64)
        found[there] = times[at[there]]
        return require_times(self.name, ids, found)


_EMPTY = np.empty(0, np.int64), np.empty(0, np.int64)


def _taker(rows: pa.Table, no: int) -> Callable[[int], tuple[Ints, Ints]]:
    """What gives the ids and values of a source's rows of one kind."""
    own = numbers(rows, "source_no") == no
    kind, ids, values = numbers(rows, "kind"), numbers(rows, "id"), numbers(rows, "value")

    def take(wanted: int) -> tuple[Ints, Ints]:
        these = own & (kind == wanted)
        return ids[these], values[these]

    return take
