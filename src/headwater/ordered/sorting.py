"""The bounded-pass sort."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.ordered.step import Indices, State, segments

BUFFER = "buffer"


@dataclass(frozen=True, slots=True)
class BoundedSort:
    """Keeps `slack` rows of each key back; for each that arrives, the least goes on.

    `order` are columns that a row takes over from the one at whose arrival it came out.
    """

    slack: int
    on: tuple[str, ...]
    order: tuple[str, ...]

    def apply(
        self, state: State, rows: pa.Table, watermark: int | None = None
    ) -> tuple[pa.Table, State]:
        """The rows that left the buffers, and what is in them."""
        parts = segments(state.get(BUFFER), rows)
        ranks = self._ranks(parts.rows)
        out: list[int] = []
        at: list[int] = []
        kept: list[list[int]] = []
        for start, end, old in zip(
            parts.starts.tolist(), parts.ends.tolist(), parts.old.tolist(), strict=True
        ):
            buffer = [(ranks[i], i) for i in range(start, start + old)]
            heapq.heapify(buffer)
            for i in range(start + old, end):
                if len(buffer) < self.slack:
                    heapq.heappush(buffer, (ranks[i], i))
                    continue
                out.append(heapq.heappushpop(buffer, (ranks[i], i))[1])
                at.append(i)
            kept.append(sorted(i for _, i in buffer))
        left = parts.rows.take(pa.array(out, pa.int64()))
        came = parts.rows.select(self.order).take(pa.array(at, pa.int64()))
        for name in self.order:
            left = left.set_column(left.column_names.index(name), name, came[name])
        staying = [i for mine in kept for i in mine]
        return left, {BUFFER: parts.rows.take(pa.array(staying, pa.int64()))}

    def _ranks(self, rows: pa.Table) -> list[int]:
        """Where each row stands on the columns, equal rows in order of arrival."""
        keys = [(name, "ascending", "at_start") for name in self.on]
        order: Indices = pc.sort_indices(rows.select(self.on), sort_keys=keys).to_numpy()
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        result: list[int] = ranks.tolist()
        return result
