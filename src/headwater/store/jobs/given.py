"""What is told about a job, and what its writer answers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Strategy = Literal["grouping", "window", "watermark"]
Keep = Literal["reduced", "full"]


@dataclass(frozen=True, slots=True)
class JobSettings:
    """A job, where its elements come from and how they are reduced.

    A job goes on only with the same input and settings; `global_batch` alone may change.
    """

    job: str
    input: str
    strategy: Strategy = "grouping"
    partition: str = "vertical"
    global_batch: int = 100_000
    window: int = 1_000
    watermark: str = "10 minutes"
    lifetime: int = 600_000_000
    """How long after its latest edge another edge of a vertex may come, in microseconds."""
    functions: bool = False
    keep: Keep = "reduced"
    checkpoint: str = ""
    """Where the run keeps its state: said when another run is refused."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What happened to the elements of a micro-batch before its commit."""

    elements: int = 0
    bytes: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)
    """By reason."""
    filtered: Mapping[str, int] = field(default_factory=dict)
    """By type."""

    def __add__(self, other: Counts) -> Counts:
        """Both together.

        >>> Counts(2, 9, {"self-loop": 1}) + Counts(3, 5, {"self-loop": 2})
        Counts(elements=5, bytes=14, rejected={'self-loop': 3}, filtered={})
        """
        return Counts(
            self.elements + other.elements,
            self.bytes + other.bytes,
            _summed(self.rejected, other.rejected),
            _summed(self.filtered, other.filtered),
        )


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit wrote; `held` when the store had the batch already and nothing was written."""

    held: bool
    hot: int = 0
    """Edges that local reducers handed on in this batch."""
    residue: int = 0
    """Edges of eliminated vertices that they handed on."""
    contracted: bool = False
    """Whether the global reducer contracted what was pending."""
    dependencies: int = 0
    """Dependencies written with this batch: `watermark` writes them as they become past."""
    state: int = 0
    """Hot edges of the job after the commit."""
    cycles: tuple[tuple[str, ...], ...] = ()
    """As in `Finished`: of what became past with this batch."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A complete job: `held` when it was complete already."""

    held: bool
    dependencies: int
    inputs: int
    outputs: int
    cycles: tuple[tuple[str, ...], ...] = ()
    """The members of each cycle by name (an activity's, or an unnamed vertex's, is its id)."""
    counts: Mapping[str, Any] = field(default_factory=dict)


def _summed(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return dict(Counter(one) + Counter(other))
