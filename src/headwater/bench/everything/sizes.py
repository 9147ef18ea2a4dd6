"""A run in sizes from tiny to full: a command as anybody can type it.

So a report can be made again alone.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping

Size: TypeAlias = Literal["quick", "small", "medium", "full"]
SIZES: tuple[Size, ...] = get_args(Size)
"""From the smallest: `quick` says nothing, but everything runs; `full` takes hours."""
MEASURED: tuple[Size, ...] = SIZES[1:]

PAIRS = 5
"""Rounds of each comparison, in every size but `quick`."""


@dataclass(frozen=True, slots=True)
class Sized:
    """A run in one size: what its command is given, and about how long it takes."""

    given: str
    seconds: float
    """On a quiet machine of two cores: only what is proportional counts."""


@dataclass(frozen=True, slots=True)
class Run:
    """One part of a benchmark."""

    name: str
    command: str
    sizes: Mapping[Size, Sized]

    @property
    def benchmark(self) -> str:
        """The benchmark that it is a part of."""
        return self.command.split()[0]

    def arguments(self, size: Size) -> list[str]:
        """What follows `headwater bench`."""
        return shlex.split(f"{self.command} {self.sizes[size].given}")

    def line(self, size: Size) -> str:
        """The command as one types it."""
        return f"headwater bench {shlex.join(self.arguments(size))} --json"


def made(name: str, command: str, **sizes: tuple[str, float]) -> Run:
    """A run by its sizes: what each is given, and its seconds. Comparisons have their pairs."""
    paired = "" if command.split()[0] in ("storage", "replay", "queries") else f" --pairs {PAIRS}"
    return Run(
        name,
        command,
        {
            size: Sized(given if size == "quick" else f"{given}{paired}".strip(), seconds)
            for size in SIZES
            if size in sizes
            for given, seconds in [sizes[size]]
        },
    )
