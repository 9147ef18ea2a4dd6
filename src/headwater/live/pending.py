"""The times of records that may still reach a result, by id, from the batch that brought them on.

A result names its records by id; when it is given out, the batch that read them may be long past.
What is here is what a process that goes on after a crash needs as well, so each batch's part lies
in a file of its own until every record in it is past.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.live import files
from headwater.live.ids import places

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Ints = npt.NDArray[np.int64]

UNKNOWN = -(1 << 63) + 1
"""Stands for the time of a record that never came."""


@dataclass(frozen=True, slots=True)
class _Run:
    """Ids in order, and their times."""

    ids: Ints
    times: Ints

    @classmethod
    def of(cls, ids: Ints, times: Ints) -> _Run:
        order = np.argsort(ids, kind="stable")
        return cls(ids[order], times[order])

    def merged(self, other: _Run) -> _Run:
        ids = np.concatenate([self.ids, other.ids])
        return _Run.of(ids, np.concatenate([self.times, other.times]))

    def only(self, keep: npt.NDArray[np.bool_]) -> _Run:
        return _Run(self.ids[keep], self.times[keep])


@dataclass(slots=True)
class Pending:
    """The times of one source's records.

    `until` says how far records at some times reach, `held` which ids some session step holds;
    there are such steps if `tracked`.
    """

    folder: Path
    until: Callable[[Ints], Ints]
    held: Callable[[Ints], npt.NDArray[np.bool_]]
    tracked: bool
    _runs: list[_Run] = field(default_factory=list)
    _files: dict[int, tuple[int, Ints]] = field(default_factory=dict)
    """By batch: how far all of it reaches, and its ids where sessions may hold them."""
    _purged: int = 0

    def __len__(self) -> int:
        return sum(len(run.ids) for run in self._runs)

    @property
    def waits(self) -> bool:
        """Whether some record is not past."""
        return bool(self._files)

    def restore(self, last_batch: int | None) -> None:
        """Read what the batches up to the last committed one left; a later one runs again."""
        for batch in list(files.batches(self.folder)):
            if last_batch is None or batch > last_batch:
                files.remove(self.folder, batch)
                continue
            table = files.read(self.folder, batch)
            self._take(batch, table["id"].to_numpy(), table["time"].to_numpy())

    def add(self, batch: int, ids: Ints, times: Ints) -> None:
        """Take the records of a batch, and keep them for a process that comes after this one."""
        if not len(ids):
            return
        files.write(self.folder, batch, pa.table({"id": ids, "time": times}))
        self._take(batch, ids, times)

    def at(self, ids: Ints) -> Ints:
        """The times of records by id; `UNKNOWN` where none came."""
        times = np.full(len(ids), UNKNOWN, np.int64)
        for run in self._runs:
            at, there = places(run.ids, ids)
            times[there] = run.times[at[there]]
        return times

    def expire(self, watermark: int) -> None:
        """Forget what is past at a watermark, and is not held by a session."""
        for batch, (until, ids) in list(self._files.items()):
            if until <= watermark and not self.held(ids).any():
                files.remove(self.folder, batch)
                del self._files[batch]
        # Looking through all of it costs as much as it holds: only once it has doubled.
        if len(self) > 2 * self._purged + 1024:
            kept = [
                run.only((self.until(run.times) > watermark) | self.held(run.ids))
                for run in self._runs
            ]
            self._runs = [run for run in kept if len(run.ids)]
            self._purged = len(self)

    def _take(self, batch: int, ids: Ints, times: Ints) -> None:
        if not len(ids):
            return
        watched = ids if self.tracked else np.empty(0, np.int64)
        self._files[batch] = int(self.until(times).max()), watched
        self._runs.append(_Run.of(ids, times))
        while len(self._runs) > 1 and len(self._runs[-2].ids) <= 2 * len(self._runs[-1].ids):
            last = self._runs.pop()
            self._runs[-1] = self._runs[-1].merged(last)
