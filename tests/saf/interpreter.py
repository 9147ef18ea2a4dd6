"""Table I taken literally: events arrive one instant after another, and remember their inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import headwater.saf as saf


@dataclass(frozen=True, eq=False)
class Recorded:
    """An event, what was directly behind it, and the source events behind that."""

    key: saf.Key
    content: Any
    inputs: tuple[Recorded, ...] = ()

    @property
    def time(self) -> int:
        return self.key.timestamp

    def sources(self) -> set[saf.Key]:
        if not self.inputs:
            return {self.key}
        return set[saf.Key]().union(*(event.sources() for event in self.inputs))


Streams = dict[int, list[Recorded]]
Output = tuple[int | None, Any, Sequence[Recorded]]  # number, content, what is behind it


def simulate(
    operations: Sequence[saf.Operation], sources: Streams, delays: Iterator[int]
) -> Streams:
    """All streams of a flow, whose operations are given in the order of the data."""
    streams = dict(sources)
    for operation in operations:
        inputs = [streams[each] for each in operation.inputs]
        for stream in operation.outputs:
            streams[stream] = []
        for now in sorted({event.time for events in inputs for event in events}):
            buffers = [[event for event in events if event.time <= now] for events in inputs]
            outputs = list(at_once(operation, buffers, now))
            for stream in operation.outputs:
                emit(streams[stream], stream, outputs, now, delays)
    return streams


def emit(
    made: list[Recorded], stream: int, outputs: list[Output], now: int, delays: Iterator[int]
) -> None:
    """Stamp what came out; the clock moves on between two events of a stream."""
    for number, content, inputs in outputs:
        clock = max(now + next(delays), made[-1].time + 1 if made else 0)
        seqno = len(made) + 1 if number is None else number
        made.append(Recorded(saf.Key(clock, seqno, stream, clock - now), content, tuple(inputs)))


def at_once(operation: saf.Operation, buffers: list[list[Recorded]], now: int) -> Iterator[Output]:
    """What the operation puts out at an instant; the buffers have all that arrived until then."""
    event = buffers[0][-1] if buffers[0] else None
    match operation:
        case saf.TimeWindowJoin():
            left = [each for each in buffers[0] if each.time >= now - operation.left_time]
            right = [each for each in buffers[1] if each.time >= now - operation.right_time]
            yield from pairs(operation, left, right, now)
        case saf.LengthWindowJoin():
            left = buffers[0][-operation.left_length :]
            right = buffers[1][-operation.right_length :]
            yield from pairs(operation, left, right, now)
        case _ if event is None or event.time < now:
            return
        case saf.Map():
            yield event.key.seqno, operation.function(event.content), [event]
        case saf.Filter():
            if operation.predicate(event.content):
                yield None, event.content, [event]
        case saf.TimeWindow():
            window = [each for each in buffers[0] if each.time >= now - operation.time]
            yield event.key.seqno, [each.content for each in window], window
        case saf.LengthWindow():
            window = buffers[0][-operation.length :]
            yield event.key.seqno, [each.content for each in window], window
        case _:
            assert_never(operation)


def pairs(
    operation: saf.TimeWindowJoin | saf.LengthWindowJoin,
    left: list[Recorded],
    right: list[Recorded],
    now: int,
) -> Iterator[Output]:
    """The new pairs; as in Table II, all of both windows is behind each."""
    for one in left:
        for other in right:
            is_new = max(one.time, other.time) == now
            if is_new and operation.condition(one.content, other.content):
                yield None, operation.function(one.content, other.content), [*left, *right]
