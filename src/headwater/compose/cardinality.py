"""Cardinality: how many events a node gives out for each that it takes in, in the long run."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any


@dataclass(frozen=True, slots=True)
class Cardinality:
    """An exact ratio, an upper bound, or unknown.

    >>> print(Cardinality.of("1/3"), Cardinality.of(1), Cardinality.of("<1"), UNKNOWN)
    1/3 1 <1 unknown
    """

    ratio: Fraction | None = None
    below: Fraction | None = None
    """The bound, where only that is known; an event more than that is never given out."""

    @classmethod
    def of(cls, given: Any) -> Cardinality | None:
        """A cardinality as written: `1`, `0.25`, `1/3`, `<1` or `unknown`; None if it is none."""
        if isinstance(given, Cardinality):
            return given
        if isinstance(given, bool) or not isinstance(given, int | float | str | Fraction):
            return None
        text = str(given).strip()
        if text == "unknown":
            return UNKNOWN
        bounded = text.startswith("<")
        try:
            ratio = Fraction(text.removeprefix("<").strip())
        except (ValueError, ZeroDivisionError):
            return None
        if ratio <= 0:
            return None
        return cls(below=ratio) if bounded else cls(ratio=ratio)

    @property
    def is_one(self) -> bool:
        """Whether each event gives exactly one."""
        return self.ratio == 1

    @property
    def at_most(self) -> Fraction | None:
        """What it can't exceed, where that is known."""
        return self.ratio if self.ratio is not None else self.below

    def __str__(self) -> str:
        if self.ratio is not None:
            return str(self.ratio)
        return "unknown" if self.below is None else f"<{self.below}"


UNKNOWN = Cardinality()
ONE = Cardinality(ratio=Fraction(1))
FEWER = Cardinality(below=Fraction(1))
"""Of a filter: one event or none for each."""
