"""Local reducers: what is done with the edges of one bucket, batch after batch.

Each strategy is a plain function of a bucket's state and what came. Around them is either a
stateful processor of Spark's or, where nothing is kept from batch to batch, none.

Whatever came in a batch leaves with it, reduced, so that the store has all of it: nothing waits in
Spark's state but the edges of activities that may still get more (strategy watermark) and copies
of the last elements (strategy window).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from headwater.live.ids import distinct, places
from headwater.reduce.blocks import NO_TIME, Block, Residue, is_activity
from headwater.reduce.contraction import contract
from headwater.reduce.facts import as_elements, letters
from headwater.reduce.partitioning import part
from headwater.reduce.windowing import SlidingWindow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Step:
    """What a local reducer makes of a batch."""

    hot: Sequence[Block] = ()
    residue: Sequence[Residue] = ()
    late: pa.Table | None = None
    """Edges that came too late, as letters."""
    state: bytes | None = None
    """What it keeps from here on."""
    held: int | None = None
    """The oldest time (µs) among the edges that it keeps back."""
    due: int | None = None
    """The watermark (µs) at which it has something to do, even if nothing comes."""


class Strategy(Protocol):
    """When vertices are eliminated, and what of them is kept."""

    def apply(
        self, state: bytes | None, blocks: Sequence[Block], watermark: int | None, ended: bool
    ) -> Step:
        """What becomes of blocks that come to a bucket with this state, at a watermark (µs).

        When the job has `ended`, nothing more comes.
        """


@dataclass(frozen=True, slots=True)
class Grouping:
    """Eliminates at once whatever has edges in and out, and hands on the residue."""

    local_batch: int
    named: bool = False
    """Whether the names of what was eliminated are needed."""

    def apply(
        self, state: bytes | None, blocks: Sequence[Block], watermark: int | None, ended: bool
    ) -> Step:
        """Contract so many elements at a time; nothing is kept."""
        reduced = [contract(chunk) for chunk in chunks(blocks, self.local_batch)]
        aside = [r.residue for r in reduced if len(r.residue)]
        return Step([r.hot for r in reduced], aside if self.named else list(map(nameless, aside)))


@dataclass(frozen=True, slots=True)
class Window:
    """The paper's sliding window: eliminates at once, and remembers the last elements only."""

    local_batch: int
    size: int
    """How many elements are remembered."""

    def apply(
        self, state: bytes | None, blocks: Sequence[Block], watermark: int | None, ended: bool
    ) -> Step:
        """Take so many elements at a time, one by one; the last stay for the next batch."""
        window = (
            SlidingWindow.start(self.size) if state is None else SlidingWindow.from_bytes(state)
        )
        hot = []
        for chunk in chunks(blocks, self.local_batch):
            reduced, window = window.add(chunk).flush()
            hot.append(reduced)
        return Step(hot, state=window.to_bytes())


@dataclass(frozen=True, slots=True)
class Watermark:
    """Eliminates activities, once no edge of them can still come; needs no residue."""

    lifetime: int
    """How long (µs) after its latest edge another edge of a vertex may come."""

    def apply(
        self, state: bytes | None, blocks: Sequence[Block], watermark: int | None, ended: bool
    ) -> Step:
        """Hand on the edges of activities that are past, and keep those of all others."""
        blocks, late = on_time(blocks, watermark)
        kept = [] if state is None else [Block.from_bytes(state)]
        pending = Block.merged([*kept, *blocks])
        activity = np.where(is_activity(pending.source), pending.source, pending.destination)
        waits = is_activity(activity)
        ids = distinct([activity[waits]])
        at, _ = places(ids, activity)
        last = np.full(len(ids), NO_TIME)
        np.maximum.at(last, at[waits], pending.time[waits])
        open_ones = last + self.lifetime >= _before(watermark, ended)
        waits[waits] = open_ones[at[waits]]
        hot = contract(part(pending, ~waits), eliminable=is_activity).hot
        if not waits.any():
            return Step([hot] if len(hot) else [], late=late)
        left = part(pending, waits)
        return Step(
            [hot] if len(hot) else [],
            late=late,
            state=left.to_bytes(),
            held=int(left.time.min()),
            due=int(last[open_ones].min()) + self.lifetime + 1,
        )


def _before(watermark: int | None, ended: bool) -> int:
    """The time before which all is past."""
    if ended:
        return np.iinfo(np.int64).max
    return NO_TIME if watermark is None else watermark


def on_time(
    blocks: Sequence[Block], watermark: int | None
) -> tuple[Sequence[Block], pa.Table | None]:
    """The edges that are not before the watermark; and letters of those that are."""
    if watermark is None or not any((block.time < watermark).any() for block in blocks):
        return blocks, None
    moment = np.datetime64(watermark, "us")
    reason = "late: its time is before the watermark"
    lines = [line for block in blocks for line in as_elements(block, block.time < watermark)]
    where = f"watermark {moment}Z"
    return [part(b, b.time >= watermark) for b in blocks], letters(reason, where, lines)


def nameless(residue: Residue) -> Residue:
    """A residue without the names of what was eliminated: nobody asks for them."""
    return replace(residue, edges=residue.edges.named(np.empty(0, np.int64)))


def chunks(blocks: Iterable[Block], size: int) -> Iterator[Block]:
    """The same edges in the same order, so many at a time; what is left at the end is a chunk."""
    parts: list[Block] = []
    room = size
    for block in blocks:
        start = 0
        while start < len(block):
            end = min(start + room, len(block))
            whole = start == 0 and end == len(block)
            parts.append(block if whole else part(block, np.arange(start, end)))
            room -= end - start
            start = end
            if not room:
                yield Block.joined(parts)
                parts, room = [], size
    if parts:
        yield Block.joined(parts)
