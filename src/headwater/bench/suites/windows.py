"""Ariadne's Figure 15 and beyond: windows of up to 500,000 tuples.

The small ones slide by one tuple; Spark's planner bears no more than about a hundredfold overlap.
The large ones slide by a tenth of their size, and half of the tuples pass the selection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.bench.report import RATES, Table
from headwater.bench.suites.basic import case
from headwater.bench.suites.network import Network

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater.bench.lab import Lab

SMALL = (50, 100)
LARGE = (1_000, 5_000, 20_000, 100_000, 500_000)
RECORDS = 100_000
SPAN = 2
"""A stream lasts at least so many windows."""


def tables(lab: Lab, small: Sequence[int] = SMALL, large: Sequence[int] = LARGE) -> Iterator[Table]:
    """One table: each size of window, in each mode; with `lab.records`, those that fit in."""
    networks = [Network(size, 1) for size in small]
    networks += [Network(size, size // 10, selected=50) for size in large]
    needed = {network: SPAN * network.size * network.per_second for network in networks}
    cases, left_out = [], []
    for network in networks:
        if lab.records is not None and needed[network] > lab.records:
            left_out.append(network)
            continue
        cases.append(case(lab, network, lab.records or max(RECORDS, needed[network])))
    table = Table(
        f"Window sizes (Figure 15 and beyond), medians of {lab.pairs}",
        {"window": ",", "slide": ",", **RATES},
        notes=[
            f"left out: a window of {network.size:,} needs --records {needed[network]}"
            for network in left_out
        ],
    )
    for outcome in lab.compare(cases):
        table.add(outcome)
    yield table
