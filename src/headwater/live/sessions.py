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

    from headwater.flow.reach import Reach
    from headwater.flow.reach_rules import Rule

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

    def advanced(
        self,
        rows: tuple[Ints, Ints, Ints],
        rule: Rule,
        reach: Reach,
        watermark: int,
        previous: int,
    ) -> Held:
        """What is held with the rows (key, time, record) of a batch, and past is what closes."""
        key, time, id_ = rows
        fresh = (time != NO_TIME) & (time + rule.size > max(previous - rule.lag, 0))
        still = np.zeros(int(fresh.sum()), bool)
        new = Held(key[fresh], time[fresh], id_[fresh], time[fresh] + rule.size, still)
        closed, open_ = self.only(self.closed), self.only(~self.closed)
        open_ = _merged(open_.with_(new), rule.size)
        now = open_.end <= max(watermark - rule.lag, 0)
        held = closed.with_(Held(*open_.columns()[:4], now))
        # Given out and past: nothing that follows the step holds it either.
        return held.only(~held.closed | (reach.after(rule.step, held.end) > watermark))

    def until(self, rule: Rule, reach: Reach) -> Ints:
        """How far each row's record reaches by the step."""
        return np.where(self.closed, reach.after(rule.step, self.end), FOREVER)


def longest(held: Ints, until: Ints, ids: Ints) -> Ints:
    """How far records reach by id, given rows that hold some of them."""
    due = np.full(len(ids), OWN_BATCH, np.int64)
    if not len(held):
        return due
    order = np.lexsort((until, held))
    held, until = held[order], until[order]
    last = np.append(held[1:] != held[:-1], True)
    held, until = held[last], until[last]
    at, there = places(held, ids)
    due[there] = until[at[there]]
    return due


class SessionStep:
    """The records of one source in the sessions of one step."""

    def __init__(self, rule: Rule, reach: Reach, folder: Path) -> None:
        self.step = rule.step
        self.folder = folder
        self._rule = rule
        self._reach = reach
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
        self._held = self._held.advanced(rows, self._rule, self._reach, watermark, previous)
        self._keep(batch)

    def due(self, ids: Ints) -> Ints:
        """How far records reach by this step: `FOREVER` while their session is open."""
        return longest(self._held.id, self._held.until(self._rule, self._reach), ids)

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
