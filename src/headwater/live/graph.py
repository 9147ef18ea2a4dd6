"""The live graph of one flow: what each micro-batch adds to it.

As Ananke's algorithm for one operator does: a record's vertex when its first result is given out,
an edge with each result, a label once the record's reach is past. A result is past when it is given
out. All three go into the transaction of the batch whose watermark they are delivered at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from headwater.errors import RunError
from headwater.flow.reach import FOREVER, OWN_BATCH, Reach
from headwater.live.files import times_folder
from headwater.live.ids import distinct, places
from headwater.live.pending import UNKNOWN, Pending
from headwater.live.sessions import SessionStep
from headwater.store.batch import GraphChanges, Vertices
from headwater.times import NO_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import pyarrow as pa

Ints = npt.NDArray[np.int64]
Expiry = Literal["tight", "ananke"]
EXPIRIES: tuple[Expiry, ...] = ("tight", "ananke")

Known: TypeAlias = "Callable[[str, Ints], Ints]"
"""Of some ids of a source, those that are vertices of the stored graph."""


@dataclass(frozen=True, slots=True)
class _Alive:
    """The vertices of a source that are not labelled, ids in order, and how far they reach."""

    ids: Ints
    due: Ints

    @classmethod
    def none(cls) -> _Alive:
        return cls(np.empty(0, np.int64), np.empty(0, np.int64))


class LiveSource:
    """The records of one source."""

    def __init__(self, reach: Reach, expiry: Expiry, folder: Path) -> None:
        self.name = reach.source
        self.reach = reach
        self.unbounded = reach.unbounded
        self._until = reach.until if expiry == "tight" else reach.as_ananke
        self.endless = self.unbounded is not None
        self.sessions = [
            SessionStep(rule, reach, folder / self.name / "sessions" / step)
            for step, rule in reach.sessions.items()
            if not self.endless
        ]
        times = times_folder(folder, self.name)
        self.pending = Pending(times, self._until, self._held, bool(self.sessions))
        self.alive = _Alive.none()

    def restore(self, last_batch: int | None, ids: Ints, times: Ints) -> None:
        """Go on from what the store and the files beside it have."""
        self.pending.restore(last_batch)
        for step in self.sessions:
            step.restore(last_batch)
        order = np.argsort(ids, kind="stable")
        self.alive = _Alive(ids[order], self._due(times[order]))

    def _due(self, times: Ints) -> Ints:
        if self.endless:
            return np.full(len(times), FOREVER, np.int64)
        return self._until(times)

    @property
    def is_waiting(self) -> bool:
        """Whether some record waits for a watermark."""
        return bool(
            len(self.alive.ids) or self.pending.waits or any(s.holds for s in self.sessions)
        )

    def _held(self, ids: Ints) -> npt.NDArray[np.bool_]:
        held = np.zeros(len(ids), bool)
        for step in self.sessions:
            held |= step.due(ids) > OWN_BATCH
        return held

    def reached(
        self, ids: Ints, watermark: int, previous: int, known: Known
    ) -> tuple[Vertices, Ints, _Alive]:
        """New vertices and labels, given the records of the batch's edges; and who stays alive."""
        new = ids[~places(self.alive.ids, ids)[1]]
        times = np.full(len(new), NO_TIME, np.int64) if self.endless else self.pending.at(new)
        if len(lost := new[times == UNKNOWN]):
            raise RunError(
                f"source {self.name!r}: record {lost[0]} has a result but its time never came; "
                "are its ids the same each time it is read?"
            )
        due = self._due(times)
        # One that was past before this batch has come a second time: it has its vertex and label.
        again = new[due <= previous]
        if len(again) and len(have := known(self.name, again)):
            fresh = ~np.isin(new, have)
            new, times, due = new[fresh], times[fresh], due[fresh]
        all_ids = np.concatenate([self.alive.ids, new])
        all_due = np.concatenate([self.alive.due, due])
        late = all_due
        for step in self.sessions:
            late = np.maximum(late, step.due(all_ids))
        past = late <= watermark
        order = np.argsort(all_ids[~past], kind="stable")
        alive = _Alive(all_ids[~past][order], all_due[~past][order])
        return Vertices(new, times), np.sort(all_ids[past]), alive


class LiveGraph:
    """The live graph of a flow, batch by batch."""

    def __init__(
        self,
        reaches: Mapping[str, Reach],
        expiry: Expiry,
        folder: Path,
        steps: frozenset[str] = frozenset(),
    ) -> None:
        self.steps = steps
        self._fresh: dict[str, Ints] = {}
        self.sources = {name: LiveSource(reach, expiry, folder) for name, reach in reaches.items()}
        self._watermark = OWN_BATCH
        self._previous = OWN_BATCH
        self._alive: dict[str, _Alive] = {}

    def restore(
        self,
        last_batch: int | None,
        watermark: int | None,
        alive: Mapping[str, tuple[Ints, Ints]],
    ) -> None:
        """Go on after the last batch that the store has, with its watermark (µs)."""
        self._watermark = OWN_BATCH if watermark is None else watermark
        empty = np.empty(0, np.int64)
        for name, source in self.sources.items():
            source.restore(last_batch, *alive.get(name, (empty, empty)))

    def begin(
        self,
        batch: int,
        watermark: int | None,
        times: Mapping[str, tuple[Ints, Ints]],
        sessions: Mapping[str, tuple[Ints, Ints, Mapping[str, pa.ChunkedArray]]],
    ) -> None:
        """Take a batch's records (ids and times by source) and the rows that entered sessions."""
        self._previous = self._watermark
        # A watermark never goes back; before the first, nothing that waits for one is past.
        self._watermark = max(self._watermark, OWN_BATCH if watermark is None else watermark)
        for name, source in self.sources.items():
            if name in times and not source.endless:
                source.pending.add(batch, *times[name])
            if name in self.steps:
                # A row of a step is in the graph whether or not it reaches a result.
                self._fresh[name] = times[name][0] if name in times else np.empty(0, np.int64)
            for step in source.sessions:
                key, time, sets = sessions[step.step]
                rows = _records(key, time, sets.get(name))
                step.advance(batch, rows, max(self._watermark, 0), max(self._previous, 0))

    @property
    def watermark(self) -> int:
        """The latest watermark (µs)."""
        return self._watermark

    @property
    def is_waiting(self) -> bool:
        """Whether a later watermark would let go of some record."""
        return any(source.is_waiting for source in self.sources.values())

    def changes(self, reached: Mapping[str, Ints], known: Known, *, last: bool) -> GraphChanges:
        """What the batch adds, given the records that it has edges to, by source.

        With `last`, no batch comes after it: all that is alive is past.
        """
        vertices, labels = {}, {}
        for name, source in self.sources.items():
            found = [reached[name]] if name in reached else []
            found += [self._fresh[name]] if name in self._fresh else []
            ids = distinct(found)
            watermark = 2 * FOREVER - 1 if last else self._watermark
            new, past, self._alive[name] = source.reached(ids, watermark, self._previous, known)
            if len(new.ids):
                vertices[name] = new
            if len(past):
                labels[name] = past
        return GraphChanges(vertices, labels)

    def accept(self) -> None:
        """The batch is committed."""
        for name, source in self.sources.items():
            source.alive = self._alive.pop(name, source.alive)
            source.pending.expire(self._watermark)


def _records(key: Ints, time: Ints, sets: pa.ChunkedArray | None) -> tuple[Ints, Ints, Ints]:
    """A row for each record of each row's set."""
    if sets is None:
        empty = np.empty(0, np.int64)
        return empty, empty, empty
    whole = sets.combine_chunks()
    parents = pc.list_parent_indices(whole).to_numpy()
    ids = pc.list_flatten(whole).to_numpy(zero_copy_only=False)
    return key[parents], time[parents], ids
