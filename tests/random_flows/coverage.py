"""What random flows had in them, so that a test can ask whether it tested anything."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from headwater.testing import Counters
from tests.random_flows.lazily import Excess
from tests.random_flows.running import Actual


@dataclass
class Coverage:
    """What the random flows of this session had in them."""

    flows: int = 0
    results: int = 0
    edges: int = 0
    empty_batches: int = 0
    happened: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    modes: Counter[str] = field(default_factory=Counter)
    excess: Excess = field(default_factory=Excess)

    def add(self, results: list[Actual], counters: Counters) -> None:
        """Count a flow."""
        self.flows += 1
        self.results += len(results)
        self.edges += sum(len(result.provenance) for result in results)
        self.happened += Counter(
            {
                "rows late": counters.late_rows,
                "windows late": counters.late_windows,
                "duplicates dropped": counters.duplicates,
                "survivors chosen": counters.choices,
                "rows unmatched": counters.unmatched,
                "sessions merged": counters.sessions_merged,
                "records in no set for being late": len(counters.never_counted()),
            }
        )

    def __str__(self) -> str:
        happened = ", ".join(f"{n} {what}" for what, n in sorted(self.happened.items()))
        features = ", ".join(f"{what} {n}" for what, n in sorted(self.features.items()))
        lazily = f"; lazily: {dict(self.modes)}; {self.excess}" if self.modes else ""
        return (
            f"{self.flows} flows, {self.results} results, {self.edges} edges, "
            f"{self.empty_batches} batches without data; {happened}; steps: {features}{lazily}"
        )
