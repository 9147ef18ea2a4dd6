"""Sources that fall silent: how far the watermark may go on without them.

Spark's watermark moves with the records that come, and with several sources the slowest holds it.
Where a run is told what silence means, a source that has been silent for so long holds it no more;
and when all are silent, event time goes on with the clock.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(slots=True)
class Silence:
    """When records of each source last came, and the latest event time among them (µs)."""

    after: float
    """Seconds without a record that make a source idle."""
    delays: Mapping[str, int]
    """By source: how long (µs) it waits for late records."""
    clock: Callable[[], float] = time.monotonic
    _latest: dict[str, int] = field(default_factory=dict)
    _heard: dict[str, float] = field(default_factory=dict)
    _advanced: float = 0.0

    def __post_init__(self) -> None:
        now = self.clock()
        self._heard = dict.fromkeys(self.delays, now)
        self._advanced = now

    def heard(self, source: str, latest: int) -> None:
        """Records of a source came, the latest of them at a time."""
        self._heard[source] = self.clock()
        self._latest[source] = max(latest, self._latest.get(source, latest))

    def watermark(self) -> int | None:
        """The watermark (µs) that silence allows now, if it says anything."""
        now = self.clock()
        reached = {s: self._latest[s] - self.delays[s] for s in self._latest if s in self.delays}
        if not reached or now - self._advanced < self.after:
            return None
        busy = [s for s, at in self._heard.items() if now - at < self.after]
        if not busy:
            # Nothing comes from anywhere: as if a record had come just now from one of them.
            since = now - max(self._heard.values())
            return max(reached.values()) + int(since * 1_000_000)
        if len(busy) == len(self._heard) or not all(source in reached for source in busy):
            return None
        return min(reached[source] for source in busy)

    def advanced(self) -> None:
        """The watermark was moved; the next time comes after as long a silence again."""
        self._advanced = self.clock()
