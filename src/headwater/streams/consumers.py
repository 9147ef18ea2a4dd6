"""Consumers: who reads a stream, how far they are, and who reads it at this moment."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.errors import UnknownName
from headwater.streams.declaration import require_name
from headwater.streams.errors import StreamError
from headwater.streams.files import Held, hold, is_held, locked, write_json
from headwater.streams.positions import Position

if TYPE_CHECKING:
    from pathlib import Path

_PATIENCE = 0.5
"""Seconds to try for a lock that somebody may only be looking at."""


@dataclass(frozen=True, slots=True)
class Consumer:
    """A reader by name: it has read all before its position."""

    name: str
    position: Position
    at: int
    """When it said so, in milliseconds since 1970."""
    reading: bool
    """Whether a subscription of its name is open now."""


class Consumers:
    """The consumers of one stream, a file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "_consumers"

    def all(self) -> list[Consumer]:
        """Every consumer, by name."""
        found = sorted(self._folder.glob("*.json")) if self._folder.is_dir() else []
        consumers = (self._read(path.stem) for path in found)
        return [consumer for consumer in consumers if consumer is not None]

    def get(self, name: str) -> Consumer | None:
        """A consumer, if there is one of the name."""
        require_name(name)
        return self._read(name)

    def advance(self, name: str, position: Position) -> None:
        """Write down that a consumer has read all before a position; a new one is registered."""
        require_name(name)
        self._folder.mkdir(exist_ok=True)
        told = {"position": str(position), "at": time.time_ns() // 1_000_000}
        # Not made safe against a power cut, which may set it back: reading again is harmless.
        write_json(self._folder / f"{name}.json", told, sync=False)

    def register(self, name: str, position: Position) -> Consumer:
        """Add a consumer, or find the one that is there already as it is."""
        require_name(name)
        self._folder.mkdir(exist_ok=True)
        with locked(self._folder / ".lock"):
            if self._read(name) is None:
                self.advance(name, position)
        found = self._read(name)
        assert found is not None
        return found

    def forget(self, name: str) -> None:
        """Remove a consumer: the stream waits for it no longer."""
        path = self._folder / f"{name}.json"
        if not path.exists():
            raise UnknownName(f"no consumer {name!r} of stream {self._folder.parent.name!r}")
        path.unlink(missing_ok=True)

    def hold(self, name: str | None) -> list[Held]:
        """What marks a subscription as open; a name can have one at a time."""
        self._folder.mkdir(exist_ok=True)
        held = [hold(self._folder / ".reading", _PATIENCE, shared=True)]
        if name is not None:
            held.append(hold(self._folder / f".{name}.reading", _PATIENCE))
        if None in held:
            for one in held:
                if one is not None:
                    one.close()
            raise StreamError(
                f"consumer {name!r} of stream {self._folder.parent.name!r} is reading elsewhere; "
                "give this one another name"
            )
        return [one for one in held if one is not None]

    def reading(self) -> bool:
        """Whether any subscription is open, of whatever name."""
        return is_held(self._folder / ".reading")

    def _read(self, name: str) -> Consumer | None:
        try:
            told = json.loads((self._folder / f"{name}.json").read_bytes())
        except FileNotFoundError:
            return None
        reading = is_held(self._folder / f".{name}.reading")
        return Consumer(name, Position.of(told["position"]), told["at"], reading)
