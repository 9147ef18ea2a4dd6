"""What is known of a stream before anything of it is read: columns, ids, times, lateness."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from headwater.compose.durations import microseconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

EVENT_ID, EVENT_TIME = "event_id", "event_time"
"""The first columns of a stream that a flow makes: its results' ids and times."""
POSITION = "position"
"""The column that a stream without ids gets: the number of each event."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A stream as the nodes that read it see it."""

    schema: str
    """All columns, in Spark's DDL."""
    made: bool
    """Whether a flow makes it, so that each event has its `event_id` and `event_time`."""
    id: tuple[str, ...] = ()
    """The columns that identify an event; none where its position does."""
    time: str | None = None
    """The column of event times."""
    delay: str | None = None
    """How late an event may be."""

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        return asdict(self)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Carried:
        """From that file."""
        return cls(**{**told, "id": tuple(told["id"])})


def longest(delays: Iterable[str | None]) -> str | None:
    """The longest of some times to wait for late events."""
    known = [delay for delay in delays if delay is not None]
    return max(known, key=lambda delay: microseconds(delay) or 0, default=None)
