"""What of the reports is drawn: medians with their spread, and what the papers say beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater.bench.everything.papers import told_of
from headwater.bench.figures import tables_of
from headwater.bench.paired import QUARTILES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from headwater.bench.everything.papers import Told


@dataclass(frozen=True, slots=True)
class Point:
    """One value with its spread, if it has one; of a paper, with what it says and where."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    paper: str | None = None
    said: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Points of the same case."""

    case: str
    points: list[Point]


@dataclass(frozen=True, slots=True)
class View:
    """A quantity of some runs: its column, that of its spread, and what its rows are called by."""

    name: str
    benchmark: str
    runs: tuple[str, ...]
    title: str
    column: str
    case: tuple[str, ...]
    """Columns that say which case it is."""
    series: str = "mode"
    """The column that tells the points of a case apart."""
    spread: str = "95 %"
    powers: bool = False
    """Whether the axis is by powers of ten."""
    one: bool = True
    """Whether it is a ratio, in which 1 means no difference."""
    among: tuple[str, ...] = ()
    """Only these of the series."""
    digits: int = 2

    def groups(self, reports: Mapping[str, Mapping[str, Any]]) -> list[Group]:
        """The cases that were measured, each with what papers say of it."""
        return [group for run in self.runs for group in self._of(run, reports.get(run))]

    def _of(self, run: str, report: Mapping[str, Any] | None) -> Iterator[Group]:
        if report is None or "failed" in report["run"]:
            return
        cases: dict[str, list[Point]] = {}
        told = told_of(run, self.column)
        beside: dict[str, list[Told]] = {}
        for row in (row for table in tables_of(report) for row in table["rows"]):
            value = row.get(self.column)
            if not isinstance(value, int | float):
                continue
            if self.among and row.get(self.series) not in self.among:
                continue
            name = self._case(run, row)
            low, high = row.get(self.spread) or (None, None)
            point = Point(str(row.get(self.series, "measured")), float(value), low, high)
            cases.setdefault(name, []).append(point)
            matching = [each for each in told if each.case.items() <= row.items()]
            known = beside.setdefault(name, [])
            known += [each for each in matching if each not in known]
        for name, points in cases.items():
            yield Group(name, points + [_of_paper(each, self.series) for each in beside[name]])

    def _case(self, run: str, row: Mapping[str, Any]) -> str:
        suite = run.removeprefix("capture-").replace("-", " ") if len(self.runs) > 1 else ""
        labels = [f"{name} {_short(row[name])}" for name in self.case if row.get(name) is not None]
        return ", ".join([*([suite] if suite else []), *labels]) or "all"


def _of_paper(told: Told, series: str) -> Point:
    label = f"{told.paper}'s paper, {told.case.get(series, '')}".removesuffix(", ")
    low, high = (None, None) if told.high is None else (told.value, told.high)
    value = told.value if told.high is None else (told.value + told.high) / 2
    return Point(label, value, low, high, f"{told.paper}, {told.where}", told.said)


def _short(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value).replace("_", " ")


CAPTURE = (
    *("capture-linear-road", "capture-basic", "capture-nested", "capture-windows"),
    *("capture-slides", "capture-complex", "capture-chain"),
)
VIEWS = (
    View(
        "capture",
        "capture",
        CAPTURE,
        "Rate with capture as a share of that without",
        "ratio",
        (
            "flow",
            "format",
            "state",
            "window",
            "aggregations",
            "slide",
            "front window",
            "components",
        ),
        among=("ancestors", "intervals", "eager"),
    ),
    View(
        "storage",
        "storage",
        ("storage",),
        "Percent of the bytes saved, against every event kept whole",
        "saved %",
        ("payload", "components"),
        series="stored",
        one=False,
        among=(
            "keys, first input whole",
            "ancestors, results keys, inputs kept",
            "intervals, results keys, inputs kept",
            "eager, results keys, inputs kept",
            "eager, results keys",
        ),
        digits=1,
    ),
    View(
        "operators",
        "operators",
        ("operators",),
        "Rate with capture as a share of that without, by operator",
        "ratio",
        ("operator", "keys"),
    ),
    View(
        "live",
        "live",
        ("live-throughput",),
        "Rate with edges as a share of that without capture",
        "ratio",
        ("domain",),
        among=("eager",),
    ),
    View(
        "live-of-eager",
        "live",
        ("live-throughput",),
        "Rate with the live graph as a share of that with edges alone",
        "of eager",
        ("domain",),
        spread="of eager, 95 %",
    ),
    View(
        "live-graph",
        "live",
        ("live-graph",),
        "The graph alone: rate with the live graph as a share of that with edges alone",
        "ratio",
        ("size", "overlap %"),
    ),
    View(
        "live-alternatives",
        "live",
        ("live-alternatives",),
        "Databases that are asked again and again: rate as a multiple of the live graph's",
        "ratio",
        ("size",),
        series="graph",
        powers=True,
    ),
    View(
        "reduce",
        "reduce",
        ("reduce-partitions",),
        "How many times fewer edges are left",
        "edges ratio",
        ("partition",),
        series="",
        one=False,
    ),
    View(
        "reduce-bytes",
        "reduce",
        ("reduce-partitions",),
        "How many times fewer bytes are left",
        "MB ratio",
        ("partition",),
        series="",
        one=False,
        digits=1,
    ),
    View(
        "reduce-cores",
        "reduce",
        ("reduce-throughput",),
        "Rate of two cores as a multiple of one's",
        "speed-up",
        ("cores",),
        series="",
    ),
    View(
        "flow-publish",
        "flow",
        ("flow-publish",),
        "Events a second into one stream, by publishers",
        "events/s",
        ("publishers",),
        series="",
        spread=QUARTILES,
        powers=True,
        one=False,
        digits=0,
    ),
    View(
        "flow-deploy",
        "flow",
        ("flow-deploy",),
        "Time to deploy a chain as a multiple of a flow's start",
        "times a start",
        ("nodes", "units"),
        series="",
    ),
    View(
        "flow-static",
        "flow",
        ("flow-static",),
        "How many times sooner: a static step run once, against once for each event",
        "gain",
        ("events",),
        series="",
        powers=True,
    ),
    View(
        "flow-window",
        "flow",
        ("flow-window",),
        "How many times sooner: map outputs kept in the window, against mapping anew",
        "ratio",
        ("window", "reduce"),
        series="",
    ),
    View(
        "serve",
        "serve",
        ("serve-publish",),
        "Events a second by REST, by clients",
        "events/s",
        ("events a request", "clients"),
        series="",
        spread=QUARTILES,
        powers=True,
        one=False,
        digits=0,
    ),
    View(
        "scale-stores",
        "scale",
        ("scale-stores",),
        "Rate into the lake as a multiple of that into a file",
        "ratio",
        ("records",),
        series="store",
    ),
    View(
        "scale-machines",
        "scale",
        ("scale-cores", "scale-workers"),
        "Rate of two as a multiple of one's",
        "speed-up",
        ("store",),
        series="with",
    ),
    View(
        "replay",
        "replay",
        ("replay",),
        "Seconds for the provenance of one result by replay",
        "one, s",
        (),
        spread=QUARTILES,
        powers=True,
        one=False,
    ),
)
"""What is drawn, in the order of the page."""


def views_of(benchmark: str) -> Sequence[View]:
    """What is drawn of a benchmark."""
    return [view for view in VIEWS if view.benchmark == benchmark]
