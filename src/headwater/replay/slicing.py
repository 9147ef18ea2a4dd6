"""Which part of each source a replay must read for some results: one engine, two rules.

`ancestors`: the times and keys that a result's own key leads back to. `intervals`: the positions
that it carries, and the times as well where they are known. A slice holds, with a result's records,
all that decided about them; where positions can't promise that they are not used, and where times
have no bound, all that had arrived is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.flow import nodes
from headwater.replay.ancestors import Range, Unbounded, ranges
from headwater.replay.shape import is_monotone

if TYPE_CHECKING:
    from collections.abc import Sequence

Ids = npt.NDArray[np.int64]
Spans = tuple[tuple[int, int], ...]

TIME = "time"
LOW, HIGH = "low ", "high "
MOST_SPANS = 64


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a source: spans of positions and of times (µs), both ends included.

    What is None does not limit it: `Slice()` is all of the source.
    """

    positions: Spans | None = None
    times: Spans | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing of the source is needed."""
        return self.positions == () or self.times == ()


def slices(sink: nodes.Sink, capture: str, asked: pa.Table) -> dict[str, Slice]:
    """The slice of each source for some results of a sink.

    `asked` has their `time` in microseconds and, captured as intervals, `low <source>` and
    `high <source>`.
    """
    by_time = ranges(sink)
    by_position = capture == "intervals" and is_monotone(sink)
    found = {}
    for node in sink.upstream():
        if isinstance(node, nodes.Source):
            positions = _positions(node, asked) if by_position else None
            found[node.name] = Slice(positions, _times(by_time.get(node.name), asked))
    return found


def _times(range_: Range | Unbounded | None, asked: pa.Table) -> Spans | None:
    if not isinstance(range_, Range) or asked[TIME].null_count:
        return None
    times = asked[TIME].to_numpy()
    return merged(times - range_.before, times + range_.after)


def _positions(node: nodes.Source, asked: pa.Table) -> Spans | None:
    if LOW + node.name not in asked.column_names:
        return None
    low, high = asked[LOW + node.name], asked[HIGH + node.name]
    if not node.streaming and low.null_count == len(low):
        return None
    return merged(_present(low), _present(high))


def _present(column: pa.ChunkedArray) -> Ids:
    values: Ids = pc.drop_null(column).to_numpy()
    return values


def merged(lows: Ids, highs: Ids) -> Spans:
    """Spans that overlap or touch as one; where many remain, the nearest are joined as well.

    >>> merged(np.array([5, 1, 20]), np.array([9, 5, 30]))
    ((1, 9), (20, 30))
    """
    if not len(lows):
        return ()
    order = np.argsort(lows, kind="stable")
    lows, highs = lows[order], np.maximum.accumulate(highs[order])
    breaks = np.flatnonzero(lows[1:] > highs[:-1] + 1) + 1
    if len(breaks) >= MOST_SPANS:
        gaps = lows[breaks] - highs[breaks - 1]
        breaks = np.sort(breaks[np.argsort(gaps)[-(MOST_SPANS - 1) :]])
    starts, ends = np.concatenate([[0], breaks]), np.concatenate([breaks, [len(lows)]])
    return tuple((int(lows[a]), int(highs[b - 1])) for a, b in zip(starts, ends, strict=True))


def contains(spans: Sequence[tuple[int, int]], low: int, high: int) -> tuple[int, int] | None:
    """The part of [low, high] between the first and last span that meet it, if any does."""
    met = [(a, b) for a, b in spans if a <= high and b >= low]
    if not met:
        return None
    return max(low, met[0][0]), min(high, met[-1][1])
