"""Ariadne's Figure 16: windows of 100 tuples that slide by 1 to 100."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.bench.report import RATES, Table
from headwater.bench.suites.basic import case
from headwater.bench.suites.network import Network

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater.bench.lab import Lab

SIZE = 100
SLIDES = (1, 2, 5, 10, 20, 50, 100)
RECORDS = 100_000


def tables(lab: Lab, slides: Sequence[int] = SLIDES) -> Iterator[Table]:
    """One table: each slide, in each mode."""
    records = lab.records or RECORDS
    table = Table(
        f"Window slides (Figure 16), {records:,} tuples, window {SIZE}, medians of {lab.pairs}",
        {"slide": ",", **RATES},
    )
    cases = [case(lab, Network(SIZE, slide), records) for slide in slides]
    for outcome in lab.compare(cases):
        table.add(outcome)
    yield table
