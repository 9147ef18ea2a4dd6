"""Runs variants of one piece of work in turn, and compares them.

Variants run one after the other in one process, after a warm-up of each, in an order that changes
from round to round: a cold JVM is several times slower, and a machine's speed drifts. A rate counts
only if every run delivered as many results, and was told of as many records behind them.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from headwater.bench.meter import Meter, Usage
from headwater.bench.paired import Interval, interval
from headwater.errors import HeadwaterError

Progress: TypeAlias = Callable[[str, int, int], None]
"""Is told what runs now, how many runs are done and how many there are."""

MODES = ("none", "ancestors", "intervals", "eager")
"""The captures that are compared, cheapest first."""

BASELINE = "none"

GENERATION = "generation"
"""The part of a run in which results and provenance are made; other parts ask for provenance."""

Label: TypeAlias = str | int


@dataclass(frozen=True, slots=True)
class Sample:
    """One run: what it delivered, and what each of its parts cost."""

    parts: Mapping[str, Usage]
    results: int
    edges: int = 0
    batches: int = 0
    answers: Mapping[str, int] = field(default_factory=dict)  # by part: rows of provenance

    @property
    def seconds(self) -> float:
        """Seconds of generation."""
        return self.parts[GENERATION].seconds


Variant: TypeAlias = Callable[[Meter], Sample]


@dataclass(frozen=True, slots=True)
class Case:
    """One piece of work in several variants; labels say which piece it is."""

    labels: Mapping[str, Label]
    records: int
    variants: Mapping[str, Variant]
    baseline: str = BASELINE
    """The variant that the others are compared to; it must run."""

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.labels.items())


@dataclass(frozen=True, slots=True)
class Outcome:
    """A case's samples by variant, in rounds, and the reasons of variants that could not run."""

    case: Case
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def usage(self, variant: str, part: str = GENERATION) -> Usage:
        """Medians of a part's seconds and CPU seconds; the highest of its peaks of memory."""
        usages = [sample.parts[part] for sample in self.samples[variant]]
        return Usage(
            statistics.median(usage.seconds for usage in usages),
            statistics.median(usage.cpu for usage in usages),
            max(usage.memory for usage in usages),
        )

    def rate(self, variant: str) -> float:
        """Records per second, by the median of the seconds."""
        return self.case.records / self.usage(variant).seconds

    def ratio(self, variant: str, to: str | None = None) -> float:
        """The median rate over the baseline's, or another's: 1 means that nothing is lost."""
        return self.rate(variant) / self.rate(to or self.case.baseline)

    def ratios(self, variant: str, to: str | None = None) -> list[float]:
        """Each round's ratio of rates to the baseline's run, or to another's."""
        pairs = zip(self.samples[to or self.case.baseline], self.samples[variant], strict=True)
        return [base.seconds / other.seconds for base, other in pairs]

    def paired(self, variant: str, to: str | None = None) -> float:
        """The median of the rounds' ratios."""
        return statistics.median(self.ratios(variant, to))

    def interval(self, variant: str, to: str | None = None) -> Interval | None:
        """The 95 % confidence interval of the rounds' ratios."""
        return interval(self.ratios(variant, to))


def compare(
    cases: Iterable[Case],
    pairs: int,
    meter: Meter,
    progress: Progress = lambda doing, done, total: None,
    warm_ups: int = 1,
) -> Iterator[Outcome]:
    """Measures case after case, `pairs` rounds each; yields an outcome as soon as it is there.

    A variant that Headwater or Spark refuses is left out from there on, with the reason. Only the
    baseline must run.
    """
    cases = list(cases)
    total = sum(len(case.variants) for case in cases) * (warm_ups + pairs)
    done = 0
    for case in cases:
        outcome = Outcome(case, {name: [] for name in case.variants})
        for turn in range(1 - warm_ups, pairs + 1):
            for name in order(tuple(case.variants), turn):
                doing = "warm-up" if turn < 1 else f"{turn} of {pairs}"
                progress(f"{case}, {name}: {doing}", done, total)
                done += 1
                if name in outcome.failures:
                    continue
                try:
                    sample = case.variants[name](meter)
                except HeadwaterError as error:
                    if name == case.baseline:
                        raise
                    outcome.failures[name] = " ".join(str(error).split())
                    del outcome.samples[name]
                    continue
                if turn > 0:
                    outcome.samples[name].append(sample)
        same_results(outcome)
        yield outcome
    progress("done", done, total)


def order(names: Sequence[str], turn: int) -> list[str]:
    """Who runs when in a round: each comes first equally often, and later the other way round.

    >>> [order(["a", "b", "c"], turn) for turn in range(4)]
    [['a', 'b', 'c'], ['b', 'c', 'a'], ['c', 'a', 'b'], ['c', 'b', 'a']]
    """
    start = turn % len(names)
    turned = [*names[start:], *names[:start]]
    return turned[::-1] if turn // len(names) % 2 else turned


def same_results(outcome: Outcome) -> None:
    """A rate counts only if every run did the same work."""
    counts: dict[str, set[int]] = {"results": set()}
    for sample in (each for samples in outcome.samples.values() for each in samples):
        counts["results"].add(sample.results)
        for part, rows in sample.answers.items():
            counts.setdefault(f"rows of provenance ({part})", set()).add(rows)
    for what, seen in counts.items():
        if len(seen) > 1:
            raise HeadwaterError(
                f"runs of {outcome.case} differ in their number of {what}: "
                f"{', '.join(map(str, sorted(seen)))}; the measurement is void"
            )
