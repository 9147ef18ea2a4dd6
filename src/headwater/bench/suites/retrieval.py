"""Ariadne's Figure 20: from which share of the results on is it cheaper to have captured eagerly?

Four aggregates in a row, window 10, slide 3. The cost of a mode is that of the run and of asking
for the provenance of a share of the results.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING

from headwater.bench.harness import BASELINE, GENERATION, Case, Outcome
from headwater.bench.report import COST, MIB, Row, Table, reasons
from headwater.bench.suites.network import Network

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater.bench.lab import Lab

NETWORK = Network(10, 3, aggregations=4)
SHARES = (0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0)
RECORDS = 100_000
EAGER = "eager"

_COLUMNS = {
    "asked": "",
    "mode": "",
    "generation s": ",.2f",
    "retrieval s": ",.2f",
    "total s": ",.2f",
    "total/none": ".2f",
    **COST,
    "rows of provenance": ",",
}


def tables(lab: Lab, shares: Sequence[float] = SHARES) -> Iterator[Table]:
    """One table: each share of the results, in each mode; the crossovers are its notes."""
    records = lab.records or RECORDS
    names = {f"{100 * share:g} %": share for share in shares}
    data = NETWORK.data(lab, records)
    variants = lab.captured(partial(NETWORK.flow, lab, data), shares=names)
    (outcome,) = lab.compare([Case({"aggregations": 4}, records, variants)])
    yield Table(
        f"Retrieval (Figure 20), {records:,} tuples, four aggregations, medians of {lab.pairs}",
        _COLUMNS,
        list(_rows(outcome, names)),
        [*crossovers(outcome, names), *reasons(outcome)],
    )


def _rows(outcome: Outcome, names: dict[str, float]) -> Iterator[Row]:
    none = outcome.usage(BASELINE)
    yield _row(outcome, "–", BASELINE, none.seconds)
    for name in names:
        for mode in outcome.samples:
            if mode != BASELINE:
                yield _row(outcome, name, mode, none.seconds)


def _row(outcome: Outcome, asked: str, mode: str, none: float) -> Row:
    generation = outcome.usage(mode)
    retrieval = outcome.usage(mode, asked) if mode != BASELINE else None
    total = generation if retrieval is None else generation + retrieval
    return {
        "asked": asked,
        "mode": mode,
        "generation s": round(generation.seconds, 3),
        "retrieval s": None if retrieval is None else round(retrieval.seconds, 3),
        "total s": round(total.seconds, 3),
        "total/none": round(total.seconds / none, 3),
        "CPU s": round(total.cpu, 2),
        "peak MiB": round(total.memory / MIB, 1),
        "rows of provenance": outcome.samples[mode][-1].answers.get(asked),
    }


def crossovers(outcome: Outcome, names: dict[str, float]) -> Iterator[str]:
    """For each lazy mode, the share from which on eager capture costs less."""
    if EAGER not in outcome.samples:
        return
    for mode in outcome.samples:
        if mode in (BASELINE, EAGER):
            continue
        behind = {
            share: _total(outcome, mode, name) - _total(outcome, EAGER, name)
            for name, share in names.items()
        }
        share = crossover(behind)
        if share is None:
            always = "cheaper" if next(iter(behind.values())) <= 0 else "dearer"
            yield f"{mode} is {always} than eager at every share measured"
        else:
            yield f"{mode} is cheaper than eager up to {share:.2%} of the results"


def _total(outcome: Outcome, mode: str, asked: str) -> float:
    return outcome.usage(mode, GENERATION).seconds + outcome.usage(mode, asked).seconds


def crossover(behind: dict[float, float]) -> float | None:
    """The share at which a difference of costs turns positive, between two that were measured.

    >>> crossover({0.1: -1.0, 0.5: 1.0, 1.0: 3.0})
    0.3
    >>> crossover({0.1: -2.0, 1.0: -1.0}) is None
    True
    """
    points = sorted(behind.items())
    for (share, before), (next_share, after) in itertools.pairwise(points):
        if before <= 0 < after:
            return round(share + (next_share - share) * -before / (after - before), 6)
    return None
