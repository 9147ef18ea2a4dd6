"""The operations carried out (Table I of the paper), on events that are all there at once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

from headwater.saf.operations import (
    Filter,
    LengthWindow,
    LengthWindowJoin,
    Map,
    Operation,
    TimeWindow,
    TimeWindowJoin,
)

if TYPE_CHECKING:
    from headwater.saf.keys import Key


@dataclass(frozen=True, slots=True)
class Event:
    """An event with its content; `key` and `line` are None where it was never recorded."""

    time: int
    seqno: int | None
    content: Any
    shown: bool
    key: Key | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """What an operation puts out, before it has a key.

    `since` is the time of the event that set it off, and `seqno` that event's number where the
    operation passes numbers on.
    """

    since: int
    seqno: int | None
    content: Any
    shown: bool


Events: TypeAlias = Sequence[Event]
_Window: TypeAlias = Callable[[int], Events]


def execute(operation: Operation, inputs: Sequence[Events]) -> list[Made]:
    """What the operation makes of its inputs, each of which is in order of time."""
    match operation:
        case Map():
            return [_after(event, operation.function(event.content)) for event in inputs[0]]
        case Filter():
            # A filter numbers its events itself, from those that passed.
            return [
                Made(event.time, None, event.content, event.shown)
                for event in inputs[0]
                if operation.predicate(event.content)
            ]
        case TimeWindow():
            window = _lasting(inputs[0], operation.time)
            return [_after(event, _contents(window(event.time))) for event in inputs[0]]
        case LengthWindow():
            return list(_lengths(inputs[0], operation.length))
        case TimeWindowJoin():
            left = _lasting(inputs[0], operation.left_time)
            right = _lasting(inputs[1], operation.right_time)
            return list(_joined(operation, inputs, left, right))
        case LengthWindowJoin():
            left = _counting(inputs[0], operation.left_length)
            right = _counting(inputs[1], operation.right_length)
            return list(_joined(operation, inputs, left, right))
        case _:
            assert_never(operation)


def _after(event: Event, content: Any) -> Made:
    return Made(event.time, event.seqno, content, event.shown)


def _contents(events: Events) -> list[Any]:
    return [event.content for event in events]


def _lasting(events: Events, time: int) -> _Window:
    times = [event.time for event in events]
    return lambda now: events[bisect_left(times, now - time) : bisect_right(times, now)]


def _counting(events: Events, length: int) -> _Window:
    times = [event.time for event in events]

    def window(now: int) -> Events:
        end = bisect_right(times, now)
        return events[max(0, end - length) : end]

    return window


def _lengths(events: Events, length: int) -> Iterator[Made]:
    for place, event in enumerate(events):
        window = events[max(0, place + 1 - length) : place + 1]
        if event.seqno is not None:
            # A replay may lack events: what stands in their place is too old for the window.
            low = event.seqno - length
            window = [each for each in window if each.seqno is None or each.seqno > low]
        yield _after(event, _contents(window))


def _joined(
    operation: TimeWindowJoin | LengthWindowJoin,
    inputs: Sequence[Events],
    left: _Window,
    right: _Window,
) -> Iterator[Made]:
    for now in sorted({event.time for events in inputs for event in events}):
        for one in left(now):
            for other in right(now):
                newest = [event for event in (one, other) if event.time == now]
                # A pair of older events came out when the newer of them arrived.
                if newest and operation.condition(one.content, other.content):
                    content = operation.function(one.content, other.content)
                    yield Made(now, None, content, any(event.shown for event in newest))
