"""What a stream needs of the log that keeps its events: the seam between streams and storage.

A log is a sequence of commits, each of one or more events, that is only ever added to at its end
and taken from at its start. `parquet.py` keeps it in files; a Kafka topic would be another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from headwater.streams.errors import StreamError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from headwater.streams.declaration import Producer
    from headwater.streams.positions import Position


@dataclass(frozen=True, slots=True)
class Key:
    """Names what is published, so that publishing it again adds nothing.

    With a number, it is of a writer that counts upwards: whatever has a number that is not above
    the writer's last is there already, and only that last one is remembered. Without, it is
    remembered for as long as the stream is there.

    >>> Key.of("job-17"), Key.of(("query 4f", 12))
    (Key(text='job-17', number=None), Key(text='query 4f', number=12))
    """

    text: str
    number: int | None = None

    def __post_init__(self) -> None:
        if not self.text or (self.number is not None and self.number < 0):
            raise StreamError(f"key {self.text!r}, {self.number}: give a text, a number from 0 on")

    @classmethod
    def of(cls, given: Key | str | tuple[str, int]) -> Key:
        """A key from what says one."""
        match given:
            case Key():
                return given
            case str():
                return cls(given)
            case (str(text), int(number)):
                return cls(text, number)
        raise StreamError(f"key={given!r} is not a text, nor a writer's name and a number")


@dataclass(frozen=True, slots=True)
class Entry:
    """What one call publishes: all of it, or nothing."""

    table: pa.Table
    producer: Producer
    key: Key | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """Where the events of one call are, now that they are safe; none if they were there before."""

    start: Position
    end: Position

    @property
    def events(self) -> int:
        """How many events the call added."""
        return self.start.until(self.end)


@dataclass(frozen=True, slots=True)
class Batch:
    """Some events in their order, and where they are."""

    start: Position
    end: Position
    at: int
    """When they were published, in milliseconds since 1970."""
    table: pa.Table


@dataclass(frozen=True, slots=True)
class Counted:
    """How many events were published at once, and when."""

    at: int
    events: int


class Log(Protocol):
    """Keeps the events of one stream. Processes and threads may share it without a word."""

    def append(self, entries: Sequence[Entry]) -> list[Receipt]:
        """Add entries in order, safe when this returns; those whose key is known add nothing."""

    def number(self, writer: str) -> int | None:
        """The last number of a writer that counts."""

    def bounds(self) -> tuple[Position, Position]:
        """The first position still there, and the end."""

    def at(self, moment: int) -> Position:
        """The position of the first event published at a time or later (milliseconds)."""

    def read(self, start: Position, end: Position | None = None) -> Iterator[Batch]:
        """The events from a position to another, or to what was the end when asked."""

    def last(self) -> Batch | None:
        """The last event, alone."""

    def recent(self, since: int) -> list[Counted]:
        """What was published since a time (milliseconds), counted without reading an event."""

    def expire(self, before: Position) -> int:
        """Delete what lies wholly before a position; tells how many events that were."""

    def size(self) -> int:
        """The bytes that its events take."""
