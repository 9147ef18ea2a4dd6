"""Ordered steps in Spark's workers: rows packed by bucket, a stateful processor, rows unpacked.

A processor of Spark's gets the rows of one key at a time, and each call costs more than a row is
worth. So the keys are spread over buckets, the rows of a bucket travel as one Arrow table in a
binary column, and the step works on all keys of a bucket together.

Workers import this module, and little else of Headwater's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from headwater.ordered.step import in_order
from headwater.ordered.tables import packed, packed_state, unpacked, unpacked_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle, TimerValues

    from headwater.ordered.step import State, Step

BUCKETS = 32
"""Over so many buckets keys are spread: state is kept by them, so the number may not change."""

BUCKET, ROWS = "__hw_bucket", "__hw_rows"
PACKED = f"{BUCKET} int, {ROWS} binary"

ARRIVED = "arrived"
"""Beside a step's own state: no rows, of the shape in which they arrive."""

AT_ONCE = 250_000
"""As many rows of a partition are packed together."""


def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows to one packed table for each bucket."""
    waiting: list[pa.RecordBatch] = []
    number = 0
    for batch in batches:
        waiting.append(batch)
        number += batch.num_rows
        if number >= AT_ONCE:
            yield _by_bucket(waiting)
            waiting, number = [], 0
    if number:
        yield _by_bucket(waiting)


def _by_bucket(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    rows = pa.Table.from_batches(batches)
    buckets = rows[BUCKET].to_numpy()
    rows = rows.drop_columns([BUCKET])
    order = np.argsort(buckets, kind="stable")
    rows = rows.take(order).combine_chunks()
    unique, starts = np.unique(buckets[order], return_index=True)
    ends = [*starts[1:], len(buckets)]
    parts = [packed(rows.slice(a, b - a)) for a, b in zip(starts, ends, strict=True)]
    return pa.RecordBatch.from_arrays(
        [pa.array(unique, pa.int32()), pa.array(parts, pa.binary())], [BUCKET, ROWS]
    )


def unpacker(arrow: pa.Schema) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function from packed tables back to rows of a schema."""

    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for content in batch.column(0):
                table = unpacked(content.as_buffer())
                yield from table.select(arrow.names).cast(arrow).to_batches()

    return unpack


class Host(StatefulProcessor):
    """A stateful processor of Spark's around a step: one value of state for each bucket."""

    def __init__(self, step: Step, sort: tuple[str, ...], told: bool = False) -> None:
        self.step = step
        self.sort = sort
        self.told = told

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        self._handle = handle
        self._state = handle.getValueState("state", "tables binary")

    def handleInputRows(  # type: ignore[override]
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: TimerValues
    ) -> Iterator[pd.DataFrame]:
        """A bucket's rows of a micro-batch, in order, through the step."""
        arrived = [unpacked(content) for frame in rows for content in frame.iloc[:, -1]]
        yield from self._applied(in_order(pa.concat_tables(arrived), self.sort), timerValues)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: Any
    ) -> Iterator[pd.DataFrame]:
        """A bucket in which something is due, without new rows."""
        yield from self._applied(None, timerValues)

    def _applied(self, rows: pa.Table | None, times: TimerValues) -> Iterator[pd.DataFrame]:
        before = self._state.get()
        state = unpacked_state(before[0] if before else None)
        nothing = state.pop(ARRIVED, None)
        arrived = nothing if rows is None else rows
        watermark = times.getCurrentWatermarkInMs() * 1000 if self.told else None
        out, state = self.step.apply(state, arrived, watermark)
        if self.told:
            self._remind(state)
            state[ARRIVED] = arrived.slice(0, 0)
        self._state.update((packed_state(state),))
        if out.num_rows:
            yield pd.DataFrame({ROWS: [packed(out)]})

    def _remind(self, state: State) -> None:
        """Have the bucket looked at again at the first watermark at which something is due."""
        due = self.step.due(state)  # type: ignore[attr-defined]
        wanted = set() if due is None else {-(-due // 1000)}
        there = set(self._handle.listTimers())
        for time in there - wanted:
            self._handle.deleteTimer(time)
        for time in wanted - there:
            self._handle.registerTimer(time)

    def close(self) -> None:
        """Nothing to give back."""
