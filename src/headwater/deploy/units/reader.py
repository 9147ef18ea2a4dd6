"""What jobs and alerts have in common: they read one stream by themselves, from place to place."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.deploy.building.carried import Carried
    from headwater.deploy.records import UnitRecord
    from headwater.streams import Streams


class Reader:
    """A unit that reads one stream, and is known there as a consumer."""

    def __init__(
        self,
        record: UnitRecord,
        given: Carried,
        streams: Streams,
        save: Callable[[UnitRecord], None],
    ) -> None:
        self.record, self._given = record, given
        self._streams, self._save = streams, save
        (self._input,) = record.inputs
        self.position = self._input.start
        """All before is dealt with."""
        self.error: str | None = None
        """Why it can't go on, if it should."""

    @property
    def consumer(self) -> str:
        """Its name among the readers of its stream."""
        return self.record.flow_name

    def _resume(self) -> None:
        """Go on from where it had said it was, and say so from the beginning."""
        known = [c for c in self._streams.consumers(self._input.stream) if c.name == self.consumer]
        self.position = max([self.position, *(int(each.position) for each in known)])
        if not self.record.ended:
            self._reached(self.position)

    def _reached(self, position: int) -> None:
        self.position = position
        self._streams.advance(self._input.stream, self.consumer, position)

    def cut(self, places: dict[str, int]) -> None:
        """Take no event from a place on; it is written down."""
        if self._input.until is None:
            self._input.until = places.get(self._input.stream)
        self._save(self.record)

    def look(self) -> None:
        """It looks after itself."""
