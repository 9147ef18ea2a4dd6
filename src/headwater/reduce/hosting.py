"""Local reducers in Spark's workers: rows in, a strategy applied to each bucket, rows out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from headwater.capture.checkpoint import LAST_WATERMARK
from headwater.reduce.blocks import Block
from headwater.reduce.facts import EDGES_ROW, END, FACTS, HELD, HOT, RESIDUE, Facts
from headwater.reduce.intake import UNORDERED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle, TimerValues

    from headwater.reduce.local import Step, Strategy

REDUCED = "bucket int, kind string, payload binary"
_ARROW = pa.schema([("bucket", pa.int32()), ("kind", pa.string()), ("payload", pa.binary())])

Arrived = list[tuple[int, str, bytes]]
"""What came to a bucket: the part of the batch, the kind, the payload."""
Made = list[tuple[str, bytes]]


def in_order(arrived: Arrived) -> tuple[Arrived, int | None]:
    """What came, in the order of the input and not after its end; and the part that has the end."""
    ends = [part for part, kind, _ in arrived if kind == END]
    end = min((part for part in ends if part != UNORDERED), default=UNORDERED)
    rows = [row for row in arrived if row[1] != END and (end == UNORDERED or row[0] <= end)]
    return sorted(rows, key=lambda row: row[0]), end if ends else None


def reduced(
    strategy: Strategy, state: bytes | None, arrived: Arrived, watermark: int | None, last: bool
) -> tuple[Made, Step]:
    """The rows that a bucket makes of what came, and what it keeps; `last` if nothing follows."""
    rows, end = in_order(arrived)
    blocks = [Block.from_bytes(payload) for _, kind, payload in rows if kind == EDGES_ROW]
    step = strategy.apply(state, blocks, watermark, ended=last or end is not None)
    made: Made = [(FACTS, payload) for _, kind, payload in rows if kind == FACTS]
    made += [(HOT, block.to_bytes()) for block in step.hot]
    made += [(RESIDUE, residue.to_bytes()) for residue in step.residue]
    if step.late is not None:
        made.append((FACTS, Facts().less(step.late).to_bytes()))
    made.append((HELD, _number(step.held)))
    if end is not None:
        made.append((END, _number(end)))
    return made, step


def _number(value: int | None) -> bytes:
    return b"" if value is None else value.to_bytes(8, "little", signed=True)


def number(payload: bytes) -> int | None:
    """The number that a row of a local reducer has, if any."""
    return int.from_bytes(payload, "little", signed=True) if payload else None


def stateless(
    strategy: Strategy,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function of Spark's partitions for a strategy that keeps nothing."""

    def reduce_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrived: dict[int, Arrived] = {}
        for batch in batches:
            columns = [
                batch.column(name).to_pylist() for name in ("bucket", "part", "kind", "payload")
            ]
            for bucket, *row in zip(*columns, strict=True):
                arrived.setdefault(bucket, []).append(tuple(row))
        for bucket in sorted(arrived):
            made, _ = reduced(strategy, None, arrived.pop(bucket), None, last=False)
            yield _table(bucket, made)

    return reduce_all


def _table(bucket: int, made: Made) -> pa.RecordBatch:
    kinds, payloads = zip(*made, strict=True)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([bucket] * len(made), pa.int32()),
            pa.array(kinds, pa.string()),
            pa.array(payloads, pa.binary()),
        ],
        schema=_ARROW,
    )


class LocalReducer(StatefulProcessor):
    """A stateful processor of Spark's around a strategy: one value of state for each bucket."""

    def __init__(self, strategy: Strategy, timed: bool) -> None:
        self.strategy = strategy
        self.timed = timed

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        self._handle = handle
        self._state = handle.getValueState("state", "block binary")

    def handleInputRows(  # type: ignore[override]
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: TimerValues
    ) -> Iterator[pd.DataFrame]:
        """What came to a bucket in a micro-batch."""
        arrived: Arrived = []
        for frame in rows:
            arrived += zip(frame["part"], frame["kind"], frame["payload"], strict=True)
        yield self._applied(key[0], arrived, timerValues)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: Any
    ) -> Iterator[pd.DataFrame]:
        """A bucket in which something is past, without anything new."""
        yield self._applied(key[0], [], timerValues)

    def _applied(self, bucket: int, arrived: Arrived, times: TimerValues) -> pd.DataFrame:
        watermark = times.getCurrentWatermarkInMs() * 1000 if self.timed else None
        before = self._state.get()
        state = bytes(before[0]) if before else None
        last = watermark == LAST_WATERMARK * 1000
        made, step = reduced(self.strategy, state, arrived, watermark or None, last)
        if step.state is not None:
            self._state.update((step.state,))
        elif before:
            self._state.clear()
        if self.timed:
            self._remind(step.due)
        kinds, payloads = zip(*made, strict=True)
        return pd.DataFrame({"bucket": bucket, "kind": kinds, "payload": payloads})

    def _remind(self, due: int | None) -> None:
        """Have the bucket looked at again at the first watermark at which something is past."""
        wanted = set() if due is None else {-(-due // 1000)}
        there = set(self._handle.listTimers())
        for time in there - wanted:
            self._handle.deleteTimer(time)
        for time in wanted - there:
            self._handle.registerTimer(time)

    def close(self) -> None:
        """Nothing to give back."""
