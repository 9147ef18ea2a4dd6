"""Reading the only partition of a topic: where it begins and ends, and what lies between.

Offsets are positions. Between events lie the marks of transactions and what was taken back, so the
end is found by looking: it is after the last event, not after the last offset.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.streams.errors import StreamError
from headwater.streams.files import write_json
from headwater.streams.kafka_client import administration, client, library

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from headwater.streams.kafka_client import Settings

AT_ONCE = 10_000
"""Messages that are taken together, at most."""
_AGAIN = 30.0
"""Seconds after which it is looked again whether a topic has got more partitions."""


@dataclass(slots=True)
class Known:
    """What this process knows of a topic."""

    tail: tuple[int, int] | None = None
    """The offset after the last event, and one up to which there is no other event."""
    checked: float = field(default=-_AGAIN)


class Bounds(NamedTuple):
    """Where a topic begins and ends."""

    first: int
    """All events before have expired; who has read to here has lost none."""
    end: int
    """After the last event."""
    low: int
    """The first offset that can be read, which may be after `first`."""


_known: dict[str, Known] = {}


class Partition:
    """The only partition of a topic."""

    def __init__(
        self, settings: Settings, topic: str, identity: str, noted: Path | None = None
    ) -> None:
        self._settings, self.topic = settings, topic
        self._noted = noted
        """Where the tail is written down, for when the broker has deleted it."""
        self._known = _known.setdefault(f"{identity}/{topic}", Known())

    def ends(self) -> tuple[int, int]:
        """The first offset, and that before which all is committed or taken back."""
        kafka, settings = library(), self._settings
        self._check()
        with settings.telling("be read"), client(settings).consumer() as consumer:
            found: tuple[int, int] | None = consumer.get_watermark_offsets(
                kafka.TopicPartition(self.topic, 0), timeout=settings.timeout, cached=False
            )
        if found is None:
            raise settings.told(kafka.KafkaError(kafka.KafkaError._TIMED_OUT), "be read")
        return found

    def bounds(self) -> Bounds:
        """From where to where events are, and from where they can be read."""
        low, stable = self.ends()
        tail = self._known.tail
        if tail is None or tail[1] != stable:
            floor = tail[0] if tail is not None and tail[1] < stable else 0
            end = self._after_last(max(low, floor), stable)
            if end == low:
                end = self._before(low)
            tail = end, stable
            self._note(tail, low)
        return Bounds(min(self._before(low), tail[0]), tail[0], low)

    def _after_last(self, floor: int, stable: int) -> int:
        """The offset after the last event, looked for from the end backwards."""
        reach = 2
        while floor < stable:
            start = max(floor, stable - reach)
            last = -1
            for messages in self.messages(start, stable):
                last = messages[-1].offset()
            if last >= 0:
                return last + 1
            if start == floor:
                break
            reach *= 16
        return floor

    def messages(self, start: int, end: int) -> Iterator[list[Any]]:
        """The committed messages from an offset to another, some at a time."""
        if start >= end:
            return
        kafka, settings = library(), self._settings
        with settings.telling("be read"), client(settings).consumer() as consumer:
            consumer.assign([kafka.TopicPartition(self.topic, 0, start)])
            at, since = start, time.monotonic()
            while at < end:
                first = consumer.poll(0.1)
                if first is None:
                    if time.monotonic() - since > settings.timeout:
                        raise kafka.KafkaException(kafka.KafkaError(kafka.KafkaError._TIMED_OUT))
                    continue
                found = []
                for message in [first, *consumer.consume(AT_ONCE, 0)]:
                    error = message.error()
                    if error is None and message.offset() < end:
                        found.append(message)
                    elif error is not None and error.name() == "_AUTO_OFFSET_RESET":
                        raise StreamError(
                            f"the events of stream {settings.stream!r} at position {at} have "
                            "expired; read from its start on"
                        )
                    elif error is not None and error.name() != "_PARTITION_EOF":
                        if not error.retriable():
                            raise kafka.KafkaException(error)
                        continue
                    at = max(at, message.offset() + (error is None))
                if found:
                    yield found
                since = time.monotonic()

    def wait_for(self, offset: int) -> None:
        """Wait until a committed message can be read, which is a moment after its commit.

        It is safe before; somebody else's open transaction may keep it from being seen for longer.
        """
        until, pause = time.monotonic() + self._settings.timeout, 0.001
        low, stable = self.ends()
        while stable <= offset and time.monotonic() < until:
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
            low, stable = self.ends()
        if stable == offset + 2:  # nothing but the mark of the transaction after it
            self._note((offset + 1, stable), low)

    def at(self, moment: int) -> int | None:
        """The offset of the first message of a time (milliseconds) or later, if there is one."""
        kafka, settings = library(), self._settings
        with settings.telling("be read"), client(settings).consumer() as consumer:
            (found,) = consumer.offsets_for_times(
                [kafka.TopicPartition(self.topic, 0, max(0, moment))], timeout=settings.timeout
            )
        if found.error is not None:
            raise settings.told(found.error, "be read")
        return None if found.offset < 0 else int(found.offset)

    def high(self) -> int:
        """The offset after all messages, also those of open transactions."""
        kafka, settings = library(), self._settings
        place = kafka.TopicPartition(self.topic, 0)
        with settings.telling("be read"):
            told = client(settings).admin.list_offsets(
                {place: administration().OffsetSpec.latest()},
                isolation_level=kafka.IsolationLevel.READ_UNCOMMITTED,
                request_timeout=settings.timeout,
            )
            return int(told[place].result().offset)

    def _note(self, tail: tuple[int, int], low: int) -> None:
        """Know where the last event is; for when the broker deletes all, it is written down.

        Who has read all is just after the last event, before the mark of its transaction. When both
        are deleted, it has lost nothing, and is told so by this.
        """
        self._known.tail = tail
        if self._noted is None:
            return
        before = self._read_noted()
        held = next((gap for gap in before if gap[0] < low <= gap[1]), None)
        with suppress(OSError):  # of one who may only read, or of a stream that was removed
            write_json(self._noted, [tail, held] if held else [tail], sync=False)

    def _before(self, low: int) -> int:
        """The place from which to a first offset no event was ever, if that is known."""
        return min((gap[0] for gap in self._read_noted() if gap[0] < low <= gap[1]), default=low)

    def _read_noted(self) -> list[list[int]]:
        try:
            found: list[list[int]] = json.loads(self._noted.read_bytes()) if self._noted else []
        except (OSError, ValueError):
            return []
        return found

    def _check(self) -> None:
        """Refuse a topic that has got more partitions: what is in them would be missed."""
        now = time.monotonic()
        if now - self._known.checked >= _AGAIN:
            number = partitions(self._settings, self.topic)
            if number is not None:
                require_one(self._settings, self.topic, number)
            self._known.checked = now


def partitions(settings: Settings, topic: str) -> int | None:
    """How many partitions a topic has; None without the topic."""
    kafka = library()
    with settings.telling("be reached"):
        told = client(settings).admin.describe_topics(
            kafka.TopicCollection([topic]), request_timeout=settings.timeout
        )
        try:
            return len(told[topic].result().partitions)
        except kafka.KafkaException as error:
            if error.args[0].name() == "UNKNOWN_TOPIC_OR_PART":
                return None
            raise


def require_one(settings: Settings, topic: str, number: int) -> None:
    """Refuse a topic of several partitions."""
    if number != 1:
        raise StreamError(
            f"topic {topic!r} of stream {settings.stream!r} has {number} partitions; a stream's "
            "events are in one order, so give it a topic of one partition"
        )
