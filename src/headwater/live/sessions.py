"""Open sessions: which records a session step holds, and until when.

How long a session stays open depends on the rows that come, so no rule tells it beforehand. The
rows that enter the step are seen here as Spark sees them: late ones are dropped, those of a key
whose times lie within the gap belong together, and a session is given out once the watermark has
reached its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.flow.reach import FOREVER, OWN_BATCH
from headwater.live import files
from headwater.live.ids import places
from headwater.times import NO_TIME

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.flow.reach import Reach, Rule

Ints = npt.NDArray[np.int64]
_COLUMNS = ("key", "time", "id", "end", "closed")


@dataclass(frozen=True, slots=True)
class Held:
    """Rows in sessions that are open, or given out on a path that goes on: a row per record.

    `end` is the end of the session; `closed` says that the watermark has reached it.
    """

    key: Ints
    time: Ints
    id: Ints
    end: Ints
    closed: npt.NDArray[np.bool_]

    @classmethod
    def none(cls) -> Held:
        empty = np.empty(0, np.int64)
        return cls(empty, empty, empty, empty, np.empty(0, bool))

    def only(self, keep: npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> Held:
        rows = (self.key[keep], self.time[keep], self.id[keep], self.end[keep], self.closed[keep])
        return Held(*rows)

    def columns(self) -> tuple[Ints, Ints, Ints, Ints, npt.NDArray[np.bool_]]:
        return self.key, self.time, self.id, self.end, self.closed

    def with_(self, other: Held) -> Held:
        def both(name: str) -> npt.NDArray[Any]:
            return np.concatenate([getattr(self, name), getattr(other, name)])

        return Held(both("key"), both("time"), both("id"), both("end"), both("closed"))


class SessionStep:
    """The records of one source in the sessions of one step."""

    def __init__(self, rule: Rule, reach: Reach, folder: Path) -> None:
        self.step = rule.step
        self.gap = rule.size
        self.folder = folder
        self._reach = reach
        self._lag = rule.lag
        self._held = Held.none()

    @property
    def holds(self) -> bool:
        """Whether some session is open, or given out on a path that goes on."""
        return bool(len(self._held.id))

    def restore(self, last_batch: int | None) -> None:
        """Take what the last committed batch left."""
        if last_batch is not None and files.place(self.folder, last_batch).exists():
            table = files.read(self.folder, last_batch)
            self._held = Held(*(table[c].to_numpy(zero_copy_only=False) for c in _COLUMNS))

    def advance(
        self, batch: int, rows: tuple[Ints, Ints, Ints], watermark: int, previous: int
    ) -> None:
        """Take the rows (key, time, record) of a batch, and close what the watermark closes."""
        key, time, id_ = rows
        fresh = (time != NO_TIME) & (time + self.gap > max(previous - self._lag, 0))
        still = np.zeros(int(fresh.sum()), bool)
        new = Held(key[fresh], time[fresh], id_[fresh], time[fresh] + self.gap, still)
        closed, open_ = self._held.only(self._held.closed), self._held.only(~self._held.closed)
        open_ = _merged(open_.with_(new), self.gap)
        now = open_.end <= max(watermark - self._lag, 0)
        open_ = Held(*open_.columns()[:4], now)
        held = closed.with_(open_)
        # Given out and past: nothing that follows the step holds it either.
        self._held = held.only(~held.closed | (self._due(held.end) > watermark))
        self._keep(batch)

    def due(self, ids: Ints) -> Ints:
        """How far records reach by this step: `FOREVER` while their session is open."""
        due = np.full(len(ids), OWN_BATCH, np.int64)
        if not len(self._held.id):
            return due
        reach = np.where(self._held.closed, self._due(self._held.end), FOREVER)
        order = np.lexsort((reach, self._held.id))
        held, until = self._held.id[order], reach[order]
        last = np.append(held[1:] != held[:-1], True)
        held, until = held[last], until[last]
        at, there = places(held, ids)
        due[there] = until[at[there]]
        return due

    def _due(self, ends: Ints) -> Ints:
        return self._reach.after(self.step, ends)

    def _keep(self, batch: int) -> None:
        """Write what is held, for a process that comes after this one."""
        table = pa.table(dict(zip(_COLUMNS, self._held.columns(), strict=True)))
        files.write(self.folder, batch, table)
        # The batch before is what a start finds when this one does not commit.
        files.remove(self.folder, batch - 2)


def _merged(rows: Held, gap: int) -> Held:
    """The rows with the ends of the sessions that they are in together."""
    if not len(rows.id):
        return rows
    order = np.lexsort((rows.time, rows.key))
    rows = rows.only(order)
    first = np.ones(len(rows.id), bool)
    same = rows.key[1:] == rows.key[:-1]
    first[1:] = ~same | (rows.time[1:] > rows.time[:-1] + gap)
    group = np.cumsum(first) - 1
    last = np.append(np.flatnonzero(first)[1:] - 1, len(rows.id) - 1)
    end = rows.time[last][group] + gap
    return Held(rows.key, rows.time, rows.id, end, rows.closed)
