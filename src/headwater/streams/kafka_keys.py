"""The keys of a stream on Kafka: in a compacted topic, written with the events they came with.

A transaction holds the events and their keys, so both are there or neither. Offsets of consumer
groups could be in a transaction too, but brokers forget those of a group without members after a
week; a compacted topic keeps the last of each key for as long as it is there.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from headwater.streams.errors import StreamError
from headwater.streams.kafka_reading import Partition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.streams.kafka_client import Settings
    from headwater.streams.log import Key


class Keys:
    """What was published under keys, as far as this object has looked."""

    def __init__(self, settings: Settings, identity: str) -> None:
        self._settings = settings
        self._partition = Partition(settings, settings.keys, identity)
        self._read = 0
        self._texts: set[str] = set()
        self._numbers: dict[str, int] = {}

    def refresh(self) -> None:
        """Take in what has come since; waits for transactions that are about to end."""
        until, pause = time.monotonic() + self._settings.timeout, 0.001
        while (stable := self._partition.ends()[1]) < self._partition.high():
            if time.monotonic() > until:
                raise StreamError(
                    f"stream {self._settings.stream!r} can't be published to under keys now: "
                    f"another publisher's transaction is open on {self._settings.keys!r}; try "
                    "again in two minutes, when the broker has ended it"
                )
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        for messages in self._partition.messages(self._read, stable):
            for message in messages:
                kind, text = json.loads(message.key())
                if kind == "text":
                    self._texts.add(text)
                else:
                    number = int(json.loads(message.value()))
                    self._numbers[text] = max(number, self._numbers.get(text, -1))
        self._read = stable

    def knows(self, key: Key) -> bool:
        """Whether something was published under a key."""
        if key.number is None:
            return key.text in self._texts
        return self._numbers.get(key.text, -1) >= key.number

    def number(self, writer: str) -> int | None:
        """The last number of a writer."""
        return self._numbers.get(writer)

    def written(self, keys: Iterable[Key], last: int) -> None:
        """Know keys that were committed, the last of them at an offset."""
        for key in keys:
            if key.number is None:
                self._texts.add(key.text)
            else:
                self._numbers[key.text] = key.number
        if self._partition.ends()[1] == last + 2:
            self._read = last + 2  # these, and the mark of their transaction

    @staticmethod
    def message(key: Key) -> tuple[bytes, bytes]:
        """A key as it is written: the message's own key, and its value."""
        kind = "text" if key.number is None else "writer"
        named = json.dumps([kind, key.text], ensure_ascii=False, separators=(",", ":"))
        return named.encode(), json.dumps(key.number).encode()
