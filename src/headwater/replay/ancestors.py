"""Ancestor functions: from the time of a result back to the times of the records it may come from.

SAF's reverse mapping, composed over a flow from its sink to its sources. For every kind of step
there is one function, from the times of its rows to the times of its input's rows; what the key
says beyond time narrows a slice further (`headwater.replay.slicing`). The range that comes out
always holds, with the records of a result, everything that decided about the rows on the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.flow import nodes
from headwater.flow.watermarks import joins_streams
from headwater.flow.windows import Session, Window
from headwater.replay.columns import source_column

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Range:
    """Times of records relative to that of a result, in microseconds: from `before` to `after`."""

    before: int = 0
    after: int = 0

    def wider(self, before: int, after: int = 0) -> Range:
        """The range with more before and after it."""
        return Range(self.before + before, self.after + after)

    def joined(self, other: Range) -> Range:
        """The least range that holds both."""
        return Range(max(self.before, other.before), max(self.after, other.after))


@dataclass(frozen=True, slots=True)
class Unbounded:
    """Why a step has no ancestor function."""

    step: str
    why: str

    def __str__(self) -> str:
        return f"step {self.step!r} {self.why}"


def ranges(sink: nodes.Sink) -> dict[str, Range | Unbounded]:
    """By streaming source: where, in time, the records of a result may lie."""
    found: dict[str, Range | Unbounded] = {}
    for source, range_ in _visit(sink, Range()):
        known = found.get(source.name)
        if known is None or isinstance(range_, Unbounded):
            found[source.name] = range_
        elif isinstance(known, Range):
            found[source.name] = known.joined(range_)
    return found


def _visit(
    node: nodes.Node, range_: Range | Unbounded
) -> Iterator[tuple[nodes.Source, Range | Unbounded]]:
    if isinstance(node, nodes.Source):
        if node.streaming:
            yield node, _of_source(node, range_)
        return
    above = range_ if isinstance(range_, Unbounded) else _ancestors(node, range_)
    for one in node.inputs:
        yield from _visit(one, above)


def _of_source(node: nodes.Source, range_: Range | Unbounded) -> Range | Unbounded:
    if node.event_time is None and not isinstance(range_, Unbounded):
        return Unbounded(node.step, "has no event_time=")
    return range_


def _ancestors(node: nodes.Node, range_: Range) -> Range | Unbounded:
    """The ancestor function of one step: where its input's rows may lie."""
    match node:
        case nodes.Aggregate(window=Window(size=size)):
            # The window ends just after the result's time and began its size before.
            return range_.wider(size)
        case nodes.Aggregate(window=Session()):
            return Unbounded(node.step, "makes sessions, whose beginning a result does not tell")
        case nodes.Aggregate():
            # Groups by a window or time that the input has: its rows have the group's own time.
            return range_
        case nodes.Join(range=span) if joins_streams(node):
            if span is None:
                return Unbounded(node.step, "joins by a time that is not the event time of both")
            return range_.wider(span, span)
        case nodes.Watermark(column=column):
            found = source_column(node.input, column)
            if found is None or found[0].event_time != found[1]:
                return Unbounded(node.step, f"takes {column!r} for the time, which no source does")
            return range_
    return range_
