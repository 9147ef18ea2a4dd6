"""Rates of streams as sums over the sources: exact, at most, or unknown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Flowing:
    """Events a second: so many for each event of a source, and so many whatever these do.

    >>> merged = Flowing.of("radar") + Flowing.of("gauge").times(0.5, exact=False)
    >>> merged.at({"radar": 4, "gauge": 6}), merged.exact
    (7.0, False)
    """

    shares: Mapping[str, float] = field(default_factory=dict)
    fixed: float = 0.0
    """What comes at the pace of a clock."""
    exact: bool = True
    """Otherwise it is at most that."""

    @classmethod
    def of(cls, source: str) -> Flowing:
        """All of a source's events."""
        return cls({source: 1.0})

    def times(self, ratio: float, *, exact: bool = True) -> Flowing:
        """Of each event so many."""
        shares = {source: share * ratio for source, share in self.shares.items()}
        return Flowing(shares, self.fixed * ratio, self.exact and exact)

    def __add__(self, other: Flowing) -> Flowing:
        sources = [*self.shares, *(source for source in other.shares if source not in self.shares)]
        shares = {s: self.shares.get(s, 0.0) + other.shares.get(s, 0.0) for s in sources}
        return Flowing(shares, self.fixed + other.fixed, self.exact and other.exact)

    def at(self, rates: Mapping[str, float]) -> float:
        """Events a second when the sources have these rates."""
        return self.fixed + sum(share * rates[source] for source, share in self.shares.items())

    def missing(self, rates: Mapping[str, float]) -> list[str]:
        """Sources that it needs and that have no rate."""
        return [source for source in self.shares if source not in rates]
