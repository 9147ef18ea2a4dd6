"""The log as a Kafka topic of one partition: a message for each event, its value JSON.

A position is an offset. What one call publishes is a transaction, with the keys it came under; the
stream's lock orders the publishers of a registry, so that a key is looked up and written by one at
a time. Transactions leave gaps between offsets: counts are by reading, or told as upper bounds.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from headwater.streams.declaration import load
from headwater.streams.errors import LogUnreachable, StreamError, StreamRemoved
from headwater.streams.files import locked
from headwater.streams.json_events import decode, encode
from headwater.streams.kafka_client import Settings, client, library
from headwater.streams.kafka_keys import Keys
from headwater.streams.kafka_reading import AT_ONCE, Partition
from headwater.streams.kafka_writing import Part, Writer
from headwater.streams.letters import Letter, Letters, shown
from headwater.streams.log import Batch, Count, Counted, Key, Receipt, fresh
from headwater.streams.positions import Position

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from headwater.streams.declaration import Declaration, Producer
    from headwater.streams.kafka_reading import Bounds
    from headwater.streams.log import Entry

PRODUCER, VERSION = "headwater.producer", "headwater.version"
"""The headers that say who published an event."""
_SLICES = 40
"""Parts of the time that rates are over, where there are too many events to be read for them."""


class KafkaLog:
    """The events of one stream in a topic."""

    def __init__(self, folder: Path, declaration: Declaration) -> None:
        library()
        self._folder, self._declaration = folder, declaration
        self._settings = settings = Settings.of(declaration)
        self._partition = Partition(
            settings, settings.topic, declaration.identity, folder / "_tail"
        )
        self._keys = Keys(settings, declaration.identity)
        self._writer = Writer(settings, folder, declaration.identity)
        self._counted = (0, 0, 0)
        """A start, an end, and how many events are between, as counted last."""

    # --- writing

    def append(self, entries: Sequence[Entry]) -> list[Receipt]:
        """Add entries in this order as one transaction; those whose key is known add nothing."""
        # Before the lock is taken, as it takes longest.
        parts = {
            id(entry): Part(encode(entry.table), _headers(entry.producer)) for entry in entries
        }
        try:
            with locked(self._folder / "_lock"):
                if load(self._folder, self._declaration).stopped:
                    raise StreamError(
                        f"stream {self._declaration.name!r} is stopped; resume it to publish"
                    )
                self._writer.ready()
                return self._append(entries, parts)
        except FileNotFoundError:
            raise StreamRemoved(
                f"stream {self._declaration.name!r} in {self._folder.parent} was removed"
            ) from None

    def _append(self, entries: Sequence[Entry], parts: dict[int, Part]) -> list[Receipt]:
        if any(entry.key is not None for entry in entries):
            self._keys.refresh()
        added = fresh(entries, self._keys.knows)
        keys = [entry.key for entry in added if entry.key is not None]
        if not added:
            end = self.bounds()[1]
            return [Receipt(end, end, 0) for _ in entries]
        spans, last = self._writer.write(
            [parts[id(entry)] for entry in added], [Keys.message(key) for key in keys]
        )
        with suppress(LogUnreachable):  # they are safe, whatever happens to the broker now
            # Others look for keys once this has let the lock go.
            self._partition.wait_for(spans[-1][1])
            if keys:
                self._keys.written(keys, last)
        spanned = {id(entry): span for entry, span in zip(added, spans, strict=True)}
        receipts, at = [], spans[0][0]
        for entry in entries:
            first, last = spanned.get(id(entry), (at, at - 1))
            count = entry.table.num_rows if id(entry) in spanned else 0
            at = last + 1
            receipts.append(Receipt(Position.of(first), Position.of(at), count))
        return receipts

    def expire(self, before: Position) -> int:
        """Delete what lies before a position; tells how many events that were, or at most."""
        load(self._folder, self._declaration)
        start, end = self.bounds()
        until = min(before, end)
        if until <= start:
            return 0
        gone = self.count(start, until).events
        kafka, settings = library(), self._settings
        with settings.telling("expire events"):
            told = client(settings).admin.delete_records(
                [kafka.TopicPartition(settings.topic, 0, int(until))],
                request_timeout=settings.timeout,
            )
            for done in told.values():
                done.result()
        return gone

    # --- reading

    def number(self, writer: str) -> int | None:
        """The last number of a writer that counts."""
        self._keys.refresh()
        return self._keys.number(writer)

    def bounds(self) -> tuple[Position, Position]:
        """The first position still there, and the end."""
        found = self._bounds()
        return Position.of(found.first), Position.of(found.end)

    def _bounds(self) -> Bounds:
        load(self._folder, self._declaration)
        return self._partition.bounds()

    def at(self, moment: int) -> Position:
        """The position of the first event published at a time or later."""
        start, end = self.bounds()
        found = self._partition.at(moment)
        return end if found is None else max(start, min(end, Position.of(found)))

    def read(self, start: Position, end: Position | None = None) -> Iterator[Batch]:
        """The events from a position to another, a batch for each run without a gap.

        What others wrote and is no event of the stream becomes a dead letter; where nothing else is
        left, an empty batch says how far that goes.
        """
        first, last, low = self._bounds()
        if int(start) < first:
            raise StreamError(
                f"the events of stream {self._declaration.name!r} before position {first} have "
                f"expired; read from {first} on"
            )
        at, until = max(int(start), low), last if end is None else min(int(end), last)
        found = self._partition.messages(at, until)
        while messages := self._next(found):
            for batch in self._batches(messages, at):
                yield batch
                at = int(batch.end)

    def last(self) -> Batch | None:
        """The last event, alone."""
        start, end = (int(place) for place in self.bounds())
        found: Batch | None = None
        # If the last is no event of the stream, one before it may be.
        for reach in (1, 1_000):
            for batch in self.read(Position.of(max(start, end - reach)), Position.of(end)):
                found = batch if batch.table.num_rows else found
            if found is not None:
                at = int(found.start) + found.table.num_rows - 1
                table = found.table.slice(found.table.num_rows - 1)
                return Batch(Position.of(at), Position.of(at + 1), found.at, table)
        return None

    def recent(self, since: int) -> list[Counted]:
        """What was published since a time; of very many events, about."""
        start, (_, end, low) = self.at(since), self._bounds()
        if end - int(start) > AT_ONCE:
            return self._sliced(since, end)
        counts: dict[int, int] = {}
        for messages in self._partition.messages(max(low, int(start)), end):
            for message in messages:
                moment = message.timestamp()[1]
                counts[moment] = counts.get(moment, 0) + 1
        return [Counted(at, events) for at, events in sorted(counts.items()) if at >= since]

    def count(self, start: Position, end: Position) -> Count:
        """How many events lie between two positions; if they are very many, at most."""
        first, until = int(start), int(end)
        known_first, known_until, known = self._counted
        if known_first != first or known_until > until:
            known_until, known = first, 0
        if until - known_until > AT_ONCE:
            return Count(until - first, exact=False)
        lowest = max(known_until, self._bounds().low)
        known += sum(map(len, self._partition.messages(lowest, until)))
        self._counted = (first, until, known)
        return Count(known)

    def size(self) -> int:
        """The bytes of the events as JSON, by the last of them."""
        _, end, low = self._bounds()
        first = max(low, end - AT_ONCE)
        lengths = [
            len(message.value() or b"")
            for messages in self._partition.messages(first, end)
            for message in messages
        ]
        return sum(lengths) * max(0, end - low) // max(1, end - first)

    # --- inner

    def _next(self, messages: Iterator[list[Any]]) -> list[Any]:
        """The next messages; of a topic that went with its stream, that is told."""
        try:
            return next(messages, [])
        except StreamError:
            load(self._folder, self._declaration)
            raise

    def _batches(self, messages: list[Any], start: int) -> Iterator[Batch]:
        """Messages as events, in runs of consecutive offsets."""
        offsets: list[int] = [message.offset() for message in messages]
        texts = [message.value() for message in messages]
        table, reasons = decode(texts, self._declaration.arrow)
        for place, reason in reasons.items():
            offset = offsets[place]
            letter = Letter(reason, f"offset {offset}", shown(texts[place] or b""))
            # Read again, it is the same letter.
            Letters(self._folder).write([letter], Key(self._declaration.log, offset))
        good = [place for place in range(len(messages)) if place not in reasons]
        end = offsets[-1] + 1
        if not good:
            yield Batch(Position.of(start), Position.of(end), _time(messages[-1]), table)
            return
        breaks = [n for n in range(1, len(good)) if offsets[good[n]] != offsets[good[n - 1]] + 1]
        for first, after in zip([0, *breaks], [*breaks, len(good)], strict=True):
            stop = end if after == len(good) else offsets[good[after]]
            yield Batch(
                Position.of(offsets[good[first]]),
                Position.of(stop),
                _time(messages[good[after - 1]]),
                table.slice(first, after - first),
            )

    def _sliced(self, since: int, end: int) -> list[Counted]:
        """Counts by offsets at times, which gaps make a little too large."""
        now = time.time_ns() // 1_000_000
        times = [since + (now - since) * n // _SLICES for n in range(_SLICES)]
        found = [self._partition.at(moment) for moment in times]
        places = [end if place is None else min(end, place) for place in found]
        return [
            Counted(moment, after - before)
            for moment, before, after in zip(times, places, [*places[1:], end], strict=True)
            if after > before
        ]


def _time(message: Any) -> int:
    return max(0, int(message.timestamp()[1]))


def _headers(producer: Producer) -> list[tuple[str, bytes]]:
    found = [(PRODUCER, f"{producer.kind} {producer.name}".encode())]
    if producer.version is not None:
        found.append((VERSION, str(producer.version).encode()))
    return found
