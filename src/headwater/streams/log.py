"""What a stream needs of the log that keeps its events: the seam between streams and storage.

A log is a sequence of commits, each of one or more events, that is only ever added to at its end
and taken from at its start. `parquet.py` keeps it in files, `kafka.py` in a topic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from headwater.streams.errors import StreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
    counted: int | None = None
    """How many there are, in a log whose positions have gaps."""

    @property
    def events(self) -> int:
        """How many events the call added."""
        return self.start.until(self.end) if self.counted is None else self.counted


@dataclass(frozen=True, slots=True)
class Batch:
    """Some events in their order, each a position after the one before."""

    start: Position
    end: Position
    """Where to read on; in a log whose positions have gaps, not always just after the last."""
    at: int
    """When they were published, in milliseconds since 1970."""
    table: pa.Table


@dataclass(frozen=True, slots=True)
class Counted:
    """How many events were published at once, and when."""

    at: int
    events: int


@dataclass(frozen=True, slots=True)
class Count:
    """How many events lie between two positions, or how many at most."""

    events: int
    exact: bool = True


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

    def count(self, start: Position, end: Position) -> Count:
        """How many events lie between two positions."""

    def expire(self, before: Position) -> int:
        """Delete what lies wholly before a position; tells how many events that were."""

    def size(self) -> int:
        """The bytes that its events take."""


def fresh(entries: Sequence[Entry], knows: Callable[[Key], bool]) -> list[Entry]:
    """Those of entries that are not known by their keys; of those with one key, the first."""
    texts: set[str] = set()
    numbers: dict[str, int] = {}
    found = []
    for entry in entries:
        key = entry.key
        if not entry.table.num_rows or (key is not None and knows(key)):
            continue
        if key is not None and key.number is None:
            if key.text in texts:
                continue
            texts.add(key.text)
        elif key is not None and key.number is not None:
            if key.number <= numbers.get(key.text, -1):
                continue
            numbers[key.text] = key.number
        found.append(entry)
    return found
