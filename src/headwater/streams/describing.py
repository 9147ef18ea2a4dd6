"""What the registry tells of a stream, counted without reading its events."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.streams.consumers import Consumer
    from headwater.streams.declaration import Declaration, Producer
    from headwater.streams.log import Counted, Log
    from headwater.streams.positions import Position

State = Literal["live", "idle", "stopped", "unreachable"]

LIVE = 10.0
"""Seconds after its last event that a stream is called live, at least."""


@dataclass(frozen=True, slots=True)
class Lag:
    """A consumer, and how many events it has not read."""

    consumer: str
    position: str
    lag: int
    at: datetime
    """When it last said how far it is."""
    reading: bool
    at_most: bool = False
    """Whether there may be fewer, as the positions of the log have gaps."""


@dataclass(frozen=True, slots=True)
class Description:
    """A stream as the command line, REST and the page show it."""

    name: str
    schema: str
    event_time: str | None
    id: str | None
    producer: Producer
    log: str
    options: Mapping[str, str]
    created: datetime
    state: State
    start: str
    """The first position that is still there."""
    end: str
    events: int
    """How many are there now."""
    interval: float
    """Seconds that each of the rates is over."""
    rates: tuple[float, ...]
    """Events per second over the last intervals, the latest last."""
    last_at: datetime | None
    """When the last event was published."""
    last_time: datetime | None
    """The last event's own time, in a stream that has an event time."""
    last_event: Mapping[str, Any] | None
    consumers: tuple[Lag, ...]
    dead_letters: int
    at_most: bool = False
    """Whether there may be fewer events, as the positions of the log have gaps."""

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values; times are datetimes."""
        return asdict(self)


def describe(
    declaration: Declaration,
    log: Log,
    consumers: Sequence[Consumer],
    dead_letters: int,
    *,
    intervals: int,
    interval: float,
) -> Description:
    """Describe a stream as it is now."""
    start, end = log.bounds()
    now = time.time()
    counted = log.recent(int((now - intervals * interval) * 1_000))
    last = log.last()
    last_event = None if last is None else last.table.to_pylist()[0]
    count = log.count(start, end)
    own_time = (last_event or {}).get(declaration.event_time or "")
    return Description(
        **_declared(declaration),
        state=state(declaration, None if last is None else last.at, now, interval),
        start=str(start),
        end=str(end),
        events=count.events,
        interval=interval,
        rates=rates(counted, now, intervals, interval),
        last_at=None if last is None else _moment(last.at),
        last_time=own_time,
        last_event=last_event,
        consumers=tuple(_lag(log, consumer, end) for consumer in consumers),
        dead_letters=dead_letters,
        at_most=not count.exact,
    )


def unreachable(declaration: Declaration, dead_letters: int, interval: float) -> Description:
    """A stream of which nothing but what is declared can be told now."""
    return Description(
        **_declared(declaration),
        state="unreachable",
        start="",
        end="",
        events=0,
        interval=interval,
        rates=(),
        last_at=None,
        last_time=None,
        last_event=None,
        consumers=(),
        dead_letters=dead_letters,
    )


def _lag(log: Log, consumer: Consumer, end: Position) -> Lag:
    left = log.count(consumer.position, end)
    return Lag(
        consumer=consumer.name,
        position=str(consumer.position),
        lag=left.events,
        at=_moment(consumer.at),
        reading=consumer.reading,
        at_most=not left.exact,
    )


def state(declaration: Declaration, last_at: int | None, now: float, interval: float) -> State:
    """Whether events come (live), have come (idle), or may not come (stopped)."""
    if declaration.stopped:
        return "stopped"
    recently = now - max(LIVE, interval)
    return "live" if last_at is not None and last_at / 1_000 >= recently else "idle"


def rates(
    counted: Sequence[Counted], now: float, intervals: int, interval: float
) -> tuple[float, ...]:
    """Events per second over each of the last intervals, the latest last.

    >>> from headwater.streams.log import Counted
    >>> rates([Counted(7_500, 40), Counted(9_100, 10), Counted(9_900, 20)], 10.0, 3, 1.0)
    (40.0, 0.0, 30.0)
    """
    sums = [0] * intervals
    for one in counted:
        # The clock of one that is written right now may be a little ahead.
        age = max(0.0, now - one.at / 1_000)
        place = int(age / interval)
        if place < intervals:
            sums[intervals - 1 - place] += one.events
    return tuple(total / interval for total in sums)


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1_000, UTC)


def _declared(declaration: Declaration) -> dict[str, Any]:
    """What is known of a stream without looking at its log."""
    names = ("name", "schema", "event_time", "id", "producer", "log")
    told = {name: getattr(declaration, name) for name in names}
    return {
        **told,
        "options": dict(declaration.options),
        "created": _moment(declaration.created),
    }
