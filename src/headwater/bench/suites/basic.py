"""Ariadne's *Basic* network: 25 % of the tuples, windows of 10 to 100 of them, sliding by one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headwater.bench.harness import Case
from headwater.bench.report import RATES, Table
from headwater.bench.suites.network import Network

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater.bench.lab import Lab

SIZES = (10, 50, 100)
RECORDS = 100_000


def tables(lab: Lab, sizes: Sequence[int] = SIZES) -> Iterator[Table]:
    """One table: each size of window, in each mode."""
    records = lab.records or RECORDS
    table = Table(
        f"Ariadne's Basic network, {records:,} tuples, slide 1, medians of {lab.pairs}",
        {"window": ",", **RATES},
    )
    networks = [Network(size, 1) for size in sizes]
    for outcome in lab.compare([case(lab, network, records) for network in networks]):
        table.add(outcome)
    yield table


def case(lab: Lab, network: Network, records: int) -> Case:
    """A network over a stream of its own density, by the size of its window."""
    data = network.data(lab, records)
    make = partial(network.flow, lab, data)
    return Case({"window": network.size, "slide": network.slide}, records, lab.captured(make))
