"""The live graph of one flow: what each micro-batch adds to it.

As Ananke's algorithm for one operator does: a record's vertex when its first result is given out,
an edge with each result, a label once the record's reach is past. A result is past when it is given
out. All three go into the transaction of the batch whose watermark they are delivered at.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
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

Known: TypeAlias = "Callable[[Ints], Ints]"
"""Of some ids of a source, those that are vertices of the stored graph."""


Due: TypeAlias = "Callable[[Ints], Ints]"
"""How far some records reach, by their ids or by their times."""


@dataclass(frozen=True, slots=True)
class Alive:
    """The vertices of a source that are not labelled, ids in order, and how far they reach."""

    ids: Ints
    due: Ints

    @classmethod
    def none(cls) -> Alive:
        """No vertices."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64))

    @classmethod
    def of(cls, ids: Ints, due: Ints) -> Alive:
        """Vertices in any order."""
        order = np.argsort(ids, kind="stable")
        return cls(ids[order], due[order])


@dataclass(frozen=True, slots=True)
class Moment:
    """When a batch is delivered: its watermark, and that of the batch before (µs)."""

    watermark: int
    previous: int


LAST = 2 * FOREVER - 1
"""The watermark of a batch that no other comes after."""


def past(reach: Reach, expiry: Expiry) -> Due:
    """The rule that labels go by: how far records at some times reach, sessions apart."""
    if reach.unbounded is not None:
        return lambda times: np.full(len(times), FOREVER, np.int64)
    return reach.until if expiry == "tight" else reach.as_ananke


def reached(
    ids: Ints, alive: Alive, times_of: Due, until: Due, held: Due, at: Moment, known: Known
) -> tuple[Vertices, Ints, Alive]:
    """New vertices and labels, given the records of a batch's edges; and who stays alive.

    `times_of` and `held` tell of ids when records were and how long sessions hold them, `until`
    tells of times, `known` which of some ids have been vertices before.
    """
    new = ids[~places(alive.ids, ids)[1]]
    times = times_of(new)
    due = until(times)
    # One that was past before this batch has come a second time: it has its vertex and label.
    again = new[due <= at.previous]
    if len(again) and len(have := known(again)):
        fresh = ~np.isin(new, have)
        new, times, due = new[fresh], times[fresh], due[fresh]
    all_ids = np.concatenate([alive.ids, new])
    all_due = np.concatenate([alive.due, due])
    gone = np.maximum(all_due, held(all_ids)) <= at.watermark
    return Vertices(new, times), np.sort(all_ids[gone]), Alive.of(all_ids[~gone], all_due[~gone])


def require_times(source: str, ids: Ints, times: Ints) -> Ints:
    """The times of records, refused where one never came."""
    if len(lost := ids[times == UNKNOWN]):
        raise RunError(
            f"source {source!r}: record {lost[0]} has a result but its time never came; "
            "are its ids the same each time it is read?"
        )
    return times


class LiveSource:
    """The records of one source."""

    def __init__(self, reach: Reach, expiry: Expiry, folder: Path) -> None:
        self.name = reach.source
        self.reach = reach
        self._until = past(reach, expiry)
        self.endless = reach.unbounded is not None
        self.sessions = [
            SessionStep(rule, reach, folder / self.name / "sessions" / step)
            for step, rule in reach.sessions.items()
            if not self.endless
        ]
        times = times_folder(folder, self.name)
        self.pending = Pending(times, self._until, self._is_held, bool(self.sessions))
        self.alive = Alive.none()

    def restore(self, last_batch: int | None, ids: Ints, times: Ints) -> None:
        """Go on from what the store and the files beside it have."""
        self.pending.restore(last_batch)
        for step in self.sessions:
            step.restore(last_batch)
        self.alive = Alive.of(ids, self._until(times))

    @property
    def is_waiting(self) -> bool:
        """Whether some record waits for a watermark."""
        return bool(
            len(self.alive.ids) or self.pending.waits or any(s.holds for s in self.sessions)
        )

    def _held(self, ids: Ints) -> Ints:
        held = np.full(len(ids), OWN_BATCH, np.int64)
        for step in self.sessions:
            held = np.maximum(held, step.due(ids))
        return held

    def _is_held(self, ids: Ints) -> npt.NDArray[np.bool_]:
        return self._held(ids) > OWN_BATCH

    def _times(self, ids: Ints) -> Ints:
        if self.endless:
            return np.full(len(ids), NO_TIME, np.int64)
        return require_times(self.name, ids, self.pending.at(ids))

    def reached(self, ids: Ints, at: Moment, known: Known) -> tuple[Vertices, Ints, Alive]:
        """New vertices and labels, given the records of the batch's edges; and who stays alive."""
        return reached(ids, self.alive, self._times, self._until, self._held, at, known)


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
        self._alive: dict[str, Alive] = {}

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
                rows = records_of(key, time, sets.get(name))
                step.advance(batch, rows, max(self._watermark, 0), max(self._previous, 0))

    @property
    def watermark(self) -> int:
        """The latest watermark (µs)."""
        return self._watermark

    @property
    def is_waiting(self) -> bool:
        """Whether a later watermark would let go of some record."""
        return any(source.is_waiting for source in self.sources.values())

    def changes(
        self,
        reached: Mapping[str, Ints],
        known: Callable[[str, Ints], Ints],
        *,
        last: bool,
    ) -> GraphChanges:
        """What the batch adds, given the records that it has edges to, by source.

        With `last`, no batch comes after it: all that is alive is past.
        """
        vertices, labels = {}, {}
        for name, source in self.sources.items():
            found = [reached[name]] if name in reached else []
            found += [self._fresh[name]] if name in self._fresh else []
            ids = distinct(found)
            at = Moment(LAST if last else self._watermark, self._previous)
            new, gone, self._alive[name] = source.reached(ids, at, partial(known, name))
            if len(new.ids):
                vertices[name] = new
            if len(gone):
                labels[name] = gone
        return GraphChanges(vertices, labels)

    def accept(self) -> None:
        """The batch is committed."""
        for name, source in self.sources.items():
            source.alive = self._alive.pop(name, source.alive)
            source.pending.expire(self._watermark)


def records_of(key: Ints, time: Ints, sets: pa.ChunkedArray | None) -> tuple[Ints, Ints, Ints]:
    """A row for each record of each row's set."""
    if sets is None:
        empty = np.empty(0, np.int64)
        return empty, empty, empty
    whole = sets.combine_chunks()
    parents = pc.list_parent_indices(whole).to_numpy()
    ids = pc.list_flatten(whole).to_numpy(zero_copy_only=False)
    return key[parents], time[parents], ids
