"""Tables of measurements: rows for JSON, and how each column is written for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from headwater.bench.harness import Outcome

Row: TypeAlias = Mapping[str, Any]

GOALS = {"intervals": 0.95, "ancestors": 0.97}
"""The least ratio to a run without capture that a mode is to reach."""

OR_LIKE_NONE = ("ancestors",)
"""Modes that also reach their goal when the interval of their paired ratios contains 1."""

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a suite. A column's form is a format of Python's, or none for text."""

    title: str
    columns: Mapping[str, str]
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Adds a case's rows of throughput, and notes on the modes that did not run."""
        self.rows.extend(rates(outcome))
        self.notes.extend(reasons(outcome))

    def cells(self) -> Iterator[list[str]]:
        """The rows as text; what is not there is empty."""
        for row in self.rows:
            yield [self._cell(name, row.get(name)) for name in self.columns]

    def _cell(self, name: str, value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, int):
            return f"{value:,}"
        if isinstance(value, float):
            return format(value, self.columns[name])
        if isinstance(value, list):
            return " – ".join(format(each, self.columns[name]) for each in value)
        return str(value)

    def as_dict(self) -> dict[str, Any]:
        """The table for a JSON report."""
        return {"title": self.title, "rows": self.rows, "notes": self.notes}


COST = {"CPU s": ",.1f", "peak MiB": ",.0f"}

RATES = {
    "mode": "",
    "records/s": ",.0f",
    "ratio": ".3f",
    "of pairs": ".3f",
    "95 %": ".3f",
    "goal": "",
    "seconds": ",.2f",
    **COST,
    "results": ",",
    "edges": ",",
}
"""The columns of a table of throughput, behind those that say which case it is."""


def rates(outcome: Outcome) -> Iterator[Row]:
    """A row for each variant of a case: its rate, its ratio to the baseline, and its cost."""
    for mode in outcome.case.variants:
        labels = {**outcome.case.labels, "mode": mode}
        if mode in outcome.failures:
            yield {**labels, "goal": "did not run"}
            continue
        usage = outcome.usage(mode)
        last = outcome.samples[mode][-1]
        row: dict[str, Any] = {
            **labels,
            "records/s": round(outcome.rate(mode)),
            "seconds": round(usage.seconds, 3),
            "CPU s": round(usage.cpu, 2),
            "peak MiB": round(usage.memory / MIB, 1),
            "results": last.results,
            "edges": last.edges,
            "batches": last.batches,
            "rates": [round(outcome.case.records / s.seconds) for s in outcome.samples[mode]],
        }
        if mode != outcome.case.baseline:
            known = outcome.interval(mode)
            row |= {
                "ratio": round(outcome.ratio(mode), 4),
                "of pairs": round(outcome.paired(mode), 4),
                "95 %": None if known is None else [round(known.low, 4), round(known.high, 4)],
                "goal": goal(outcome, mode),
            }
        yield row


def reasons(outcome: Outcome) -> Iterator[str]:
    """Why variants of a case did not run."""
    for mode, reason in outcome.failures.items():
        yield f"{outcome.case}: {mode} did not run: {reason}"


def goal(outcome: Outcome, mode: str) -> str | None:
    """Whether a mode's ratio reaches its goal, or can't be told from 1."""
    if mode not in GOALS:
        return None
    known = outcome.interval(mode)
    if outcome.ratio(mode) >= GOALS[mode]:
        return f"met: ≥ {GOALS[mode]}"
    if mode in OR_LIKE_NONE and known is not None and 1 in known:
        return "met: interval has 1"
    return f"missed: < {GOALS[mode]}"
