"""Who is told of runs: that one begins, what its batches bring, and how it ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.capture.sink import BatchInfo


@dataclass(frozen=True, slots=True)
class Brought:
    """How much a batch brought, where it is known: by sink and by source."""

    results: Mapping[str, int] = field(default_factory=dict)
    records: Mapping[str, int] = field(default_factory=dict)
    """Of sources of which every record is seen."""
    files: Mapping[str, int] = field(default_factory=dict)


class Listener(Protocol):
    """Is told of the runs of a flow, one after the other; must neither wait nor raise."""

    def began(self) -> None:
        """A query starts; not told of a query that goes on with a later watermark."""

    def batch(self, info: BatchInfo, brought: Brought) -> None:
        """A batch is committed."""

    def ended(self, failure: BaseException | None) -> None:
        """The run is over, by its own end or by a stop if there is no failure."""


class Nobody:
    """Listens to nothing."""

    def began(self) -> None:
        """Nothing."""

    def batch(self, info: BatchInfo, brought: Brought) -> None:
        """Nothing."""

    def ended(self, failure: BaseException | None) -> None:
        """Nothing."""


NOBODY: Listener = Nobody()
