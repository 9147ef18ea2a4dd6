"""Linear Road: stopped vehicles by format and state store, and accidents by state store."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from headwater.bench.harness import Case
from headwater.bench.lab import OPTIONS, STATES, Lab, State
from headwater.bench.report import RATES, Table
from headwater.examples import linear_road

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

Format: TypeAlias = Literal["parquet", "csv"]

FORMATS: tuple[Format, ...] = ("parquet", "csv")
RECORDS = 2_000_000
FLOWS = {"stopped": linear_road.flow, "accidents": linear_road.accident_flow}


def tables(
    lab: Lab, formats: Sequence[Format] = FORMATS, states: Sequence[State] = STATES
) -> Iterator[Table]:
    """One table: each flow with each state store, in each mode; accidents over one format."""
    records = lab.records or RECORDS
    cases = []
    for kind in formats:
        lab.writing(kind)
        data = lab.folder / f"reports-{kind}"
        linear_road.generate(data, reports=records, files=lab.files, format=kind)
        for query in FLOWS if kind == formats[0] else ["stopped"]:
            cases += [_case(lab, query, data, kind, state, records) for state in states]
    table = Table(
        f"Linear Road, {records:,} reports, medians of {lab.pairs}",
        {"flow": "", "format": "", "state": "", **RATES},
    )
    for outcome in lab.compare(cases):
        table.add(outcome)
    yield table


def _case(lab: Lab, query: str, data: Path, format: Format, state: State, records: int) -> Case:
    make = partial(FLOWS[query], data, format=format, options=OPTIONS)
    labels = {"flow": query, "format": format, "state": state}
    return Case(labels, records, lab.captured(make, state=state))
