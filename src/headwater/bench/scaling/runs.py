"""Runs of the flow as variants that take turns: what each told, beside the harness's samples."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headwater.bench.harness import GENERATION, Case, Sample, compare
from headwater.bench.meter import Meter, Usage
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from headwater.bench.harness import Outcome, Progress, Variant
    from headwater.bench.scaling.flow import Ran

RATES = {
    "records/s": ",.0f",
    "edges/s": ",.0f",
    "seconds": ",.2f",
    "ms a batch": ",.0f",
}


@dataclass(frozen=True, slots=True)
class Turns:
    """Variants of one piece of work, run in turns."""

    labels: Mapping[str, Any]
    records: int
    variants: Mapping[str, Callable[[], Ran]]
    ran: dict[str, list[Ran]] = field(default_factory=dict)

    def take(self, pairs: int, warm_ups: int, progress: Progress) -> Outcome:
        """Run each so many times after its warm-ups; all must make the same edges."""
        variants = {name: self._variant(name, call) for name, call in self.variants.items()}
        case = Case(self.labels, self.records, variants, baseline=next(iter(variants)))
        [outcome] = compare([case], pairs, Meter(), progress, warm_ups)
        # The warm-ups are told as well.
        for told in self.ran.values():
            del told[:-pairs]
        if len({each.edges for told in self.ran.values() for each in told}) > 1:
            raise HeadwaterError(f"runs of {case} differ in their edges; the measurement is void")
        return outcome

    def batches(self, name: str) -> Iterator[tuple[int, int, int, float]]:
        """Each batch of a variant: records, edges, results, and the median of its seconds."""
        first, *_ = told = self.ran[name]
        for number, batch in enumerate(first.batches):
            took = [each.batches[number].seconds for each in told if number < len(each.batches)]
            yield batch.records, batch.edges, batch.results, statistics.median(took)

    def rates(self, name: str, outcome: Outcome) -> dict[str, Any]:
        """How fast a variant was."""
        seconds = outcome.usage(name).seconds
        return {
            "records/s": round(self.records / seconds),
            "edges/s": round(self.ran[name][-1].edges / seconds),
            "seconds": round(seconds, 3),
            "ms a batch": round(1e3 * statistics.fmean(b[-1] for b in self.batches(name)), 1),
        }

    def _variant(self, name: str, call: Callable[[], Ran]) -> Variant:
        def variant(_: Meter) -> Sample:
            ran = call()
            self.ran.setdefault(name, []).append(ran)
            usage = Usage(ran.seconds, 0.0, 0)
            return Sample({GENERATION: usage}, ran.results, ran.edges, len(ran.batches))

        return variant


def ratio(outcome: Outcome, name: str) -> dict[str, Any]:
    """The ratio of a variant's rate to the first one's, with its interval."""
    if name == outcome.case.baseline:
        return {}
    known = outcome.interval(name)
    return {
        "ratio": round(outcome.ratio(name), 3),
        "95 %": None if known is None else [round(known.low, 3), round(known.high, 3)],
    }
