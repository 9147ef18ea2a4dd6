"""Random records for sources: out of order, late, equal times, duplicates, nulls."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from hypothesis import strategies as st

SCHEMA = "id bigint, ts timestamp, k int, v int, s string, xs array<int>"
START = datetime(2024, 1, 1, 12, 0, tzinfo=UTC)
STEP = 30
"""Seconds by which event time moves on from one micro-batch to the next, about."""

Record = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class SourceData:
    """A source's micro-batches and its watermark's delay; without one the flow must set it.

    There is a file for each micro-batch, a second after the other; `shift` is how many
    milliseconds later than those of other sources they are.
    """

    name: str
    delay: str
    declared: bool
    batches: tuple[tuple[Record, ...], ...]
    shift: int = 0

    def modified(self, batch: int) -> int:
        """The time of a micro-batch's file, in milliseconds."""
        return (1_700_000_000 + batch) * 1000 + self.shift


def _record(rnd: Random, id: int, batch: int) -> Record:
    # Mostly around the batch's own time; sometimes far behind, sometimes whole tens of seconds,
    # so that times meet each other and the edges of windows.
    offset = rnd.randint(-140, -40) if rnd.random() < 0.2 else rnd.randint(-25, 15)
    seconds = batch * STEP + offset
    if rnd.random() < 0.45:
        seconds -= seconds % 10
    return (
        id,
        START + timedelta(seconds=seconds),
        rnd.choice([0, 1, 2, 1, 2, None]),
        rnd.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, None]),
        rnd.choice(["a", "b", "ab", "", None]),
        rnd.choice([(), (1,), (1, 2), (3, 3), (None, 4), None]),
    )


@st.composite
def source_data(
    draw: st.DrawFn,
    name: str,
    first_id: int,
    batches: tuple[int, int] = (3, 7),
    rows_each: tuple[int, int] = (3, 11),
) -> SourceData:
    """Micro-batches of records; some come late, some come twice."""
    # One seed for all values: drawn one by one, the first example would be all zeros, and
    # generating would take longer than running.
    rnd = Random(draw(st.integers(0, 2**32 - 1)) + first_id)
    sent: list[Record] = []
    files: list[tuple[Record, ...]] = []
    for batch in range(rnd.randint(*batches)):
        rows: list[Record] = []
        for _ in range(rnd.randint(*rows_each)):
            if sent and rnd.random() < 0.1:
                rows.append(rnd.choice(sent))
                continue
            rows.append(_record(rnd, first_id + len(sent), batch))
            sent.append(rows[-1])
        files.append(tuple(rows))
    delay = draw(st.sampled_from(["0 seconds", "5 seconds", "10 seconds", "20 seconds"]))
    return SourceData(name, delay, draw(st.integers(0, 3)) < 3, tuple(files))
