"""Ariadne's *Nested* network and its Figure 14: one to four aggregates in a row.

The figure has, for each number of aggregates, the seconds of generation and of retrieval (of the
provenance of all results), with the rewritten query beside them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from headwater.bench.harness import BASELINE, GENERATION, Case, Outcome
from headwater.bench.report import MIB, RATES, Row, Table, rates, reasons
from headwater.bench.suites import rewrite
from headwater.bench.suites.network import Network

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater.bench.lab import Lab

AGGREGATIONS = (1, 2, 3, 4)
SIZE, SLIDE = 10, 1
RECORDS = 100_000
RETRIEVAL = "retrieval"
REWRITE = "rewrite"


def tables(
    lab: Lab, aggregations: Sequence[int] = AGGREGATIONS, limit: int = rewrite.LIMIT
) -> Iterator[Table]:
    """The throughput by mode, then the figure."""
    records = lab.records or RECORDS
    cases = [_case(lab, number, records, limit) for number in aggregations]
    outcomes = list(lab.compare(cases))
    title = f"{records:,} tuples, window {SIZE}, slide {SLIDE}, medians of {lab.pairs}"
    yield Table(
        f"Ariadne's Nested network, {title}",
        {"aggregations": ",", **RATES},
        [row for outcome in outcomes for row in rates(outcome) if row["mode"] != REWRITE],
    )
    yield figure(f"Figure 14, {title}", outcomes)


def _case(lab: Lab, aggregations: int, records: int, limit: int) -> Case:
    network = Network(SIZE, SLIDE, aggregations)
    data = network.data(lab, records)
    variants = lab.captured(partial(network.flow, lab, data), shares={RETRIEVAL: 1.0})
    variants[REWRITE] = rewrite.variant(lab, network, data, limit)
    return Case({"aggregations": aggregations}, records, variants)


def figure(title: str, outcomes: list[Outcome]) -> Table:
    """Methods down, numbers of aggregates across."""
    across = {str(outcome.case.labels["aggregations"]): ",.2f" for outcome in outcomes}
    table = Table(title, {"method": "", "what": "", **across})
    for method in outcomes[0].case.variants:
        table.rows.extend(_lines(method, outcomes))
    for outcome in outcomes:
        table.notes.extend(reasons(outcome))
    return table


def _lines(method: str, outcomes: list[Outcome]) -> Iterator[Row]:
    parts = [GENERATION] if method in (BASELINE, REWRITE) else [GENERATION, RETRIEVAL]
    for part in parts:
        measured = {
            str(outcome.case.labels["aggregations"]): None
            if method in outcome.failures
            else (outcome.usage(method, part), outcome.samples[method][-1].answers.get(part))
            for outcome in outcomes
        }

        def line(what: str, value: Any, measured: Any = measured) -> Row:
            cells = {n: "–" if cell is None else value(*cell) for n, cell in measured.items()}
            return {"method": method, "what": what, **cells}

        yield line(f"{part} s", lambda usage, _: round(usage.seconds, 3))
        yield line(f"{part} CPU s", lambda usage, _: round(usage.cpu, 2))
        yield line(f"{part} peak MiB", lambda usage, _: round(usage.memory / MIB, 1))
        if part == RETRIEVAL or method == REWRITE:
            yield line("rows of provenance", lambda _, rows: rows)
