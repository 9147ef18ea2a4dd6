"""The page of all benchmarks: pictures and tables between its markers, and all numbers as JSON."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from headwater.bench.everything.compared import views_of
from headwater.bench.everything.papers import TOLD
from headwater.bench.everything.parts import BENCHMARKS, RUNS
from headwater.bench.everything.picture import drawn
from headwater.bench.everything.sanity import ANSWERS
from headwater.bench.everything.sizes import SIZES
from headwater.bench.figures import LEFT_OUT, markdown, tables_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from headwater.bench.everything.compared import Group, Point, View
    from headwater.bench.everything.sizes import Run

BEGIN = "<!-- begin: headwater bench all -->"
END = "<!-- end -->"
IMAGES = "images/bench"
FRAME = f"# Benchmarks\n\nWritten by `headwater bench all`.\n\n{BEGIN}\n{END}\n"
"""A page where there is none."""

HEADINGS = {
    "capture": ("Capture", "What captured provenance costs a flow; `none` is 1."),
    "storage": (
        "Storage",
        "Bytes on disk for a chain of components; weighed, so without a spread.",
    ),
    "operators": ("Operators over arrival order", "What capture costs each; `none` is 1."),
    "live": ("The live graph", "What it costs beside edges alone, and against databases."),
    "reduce": ("Reducing foreign provenance", "What reducers leave, and how fast they are."),
    "flow": ("Composing, deploying and coupling flows", "Streamflow's evaluation."),
    "serve": ("The service", "Events published by REST, and requests answered."),
    "scale": ("Scaling", "One against two, and the store in a file against the lake."),
    "replay": ("Answers by replay", "`backward` of one result, and of many at once."),
    "queries": ("Lookups", "One id in a store of edges, asked by four."),
}
"""By benchmark: its heading, and what is measured."""

TABLES = (
    *("capture-retrieval", "live-latency", "live-grid", "reduce-throughput", "reduce-ceiling"),
    *("reduce-disorder", "reduce-entities", "flow-labels", "flow-runtimes", "serve-ask"),
    *("scale-lake", "replay", "queries"),
)
"""Runs whose tables are on the page. Those of the others are in the JSON, and in what is drawn."""


def write(page: Path, reports: Mapping[str, Mapping[str, Any]]) -> list[Path]:
    """Writes the page's figures, its pictures, and the JSON beside it; which files that were."""
    text = page.read_text() if page.exists() else FRAME
    pictures = page.parent / IMAGES
    pictures.mkdir(parents=True, exist_ok=True)
    made = []
    for benchmark in BENCHMARKS:
        for view in views_of(benchmark):
            file = pictures / f"{view.name}.svg"
            if picture := drawn(view, view.groups(reports)):
                file.write_text(picture)
                made.append(file)
            else:
                file.unlink(missing_ok=True)
    page.write_text(updated(text, reports))
    numbers = page.with_suffix(".json")
    numbers.write_text(json.dumps(everything(reports), ensure_ascii=False) + "\n")
    return [page, numbers, *made]


def everything(reports: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """All numbers: every report as it was printed, and what the papers say."""
    return {"runs": dict(reports), "papers": [asdict(told) for told in TOLD]}


def updated(page: str, reports: Mapping[str, Mapping[str, Any]]) -> str:
    """The page's text with what is between its markers made anew."""
    above, begin, rest = page.partition(BEGIN)
    _, end, below = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"no figures to replace: the page needs {BEGIN} and {END}")
    made = "\n\n".join(_parts(reports))
    return f"{above}{begin}\n{made}\n{end}{below}"


def _parts(reports: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield from _told_of_all(reports)
    for benchmark in BENCHMARKS:
        runs = [run for run in RUNS if run.benchmark == benchmark]
        heading, about = HEADINGS[benchmark]
        yield f"## {heading}\n\n{about}"
        yield from _missing(runs, reports)
        for view in views_of(benchmark):
            if groups := view.groups(reports):
                yield f"![{view.title}]({IMAGES}/{view.name}.svg)"
                yield _table(view, groups)
        for run in runs:
            report = reports.get(run.name)
            if report is not None and "failed" not in report["run"]:
                yield from _details(run, report)
    yield "## What ran"
    yield _ran(reports)


def _told_of_all(reports: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    sizes = Counter(report["run"]["size"] for report in reports.values())
    if not sizes:
        yield "Nothing has been measured yet."
        return
    said = ", ".join(f"{sizes[size]} × `{size}`" for size in SIZES if sizes[size])
    yield f"Parts measured, by size: {said}; {len(RUNS)} there are."
    if sizes["quick"]:
        yield (
            "**`quick` only shows that everything runs: tiny sizes, each run once, nothing warm. "
            "The figures of its parts say nothing about speed.**"
        )
    machines = {
        ", ".join(f"{key} {value}" for key, value in report["machine"].items())
        for report in reports.values()
        if "machine" in report
    }
    yield f"Measured with {'; and with '.join(sorted(machines))}."


def _missing(runs: Sequence[Run], reports: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    if left := [f"`{run.name}`" for run in runs if run.name not in reports]:
        yield f"Not run: {', '.join(left)}."
    for run in runs:
        if failed := reports.get(run.name, {"run": {}})["run"].get("failed"):
            yield f"**`{run.name}` failed**: {failed}"


def _table(view: View, groups: Sequence[Group]) -> str:
    spread = "quartiles" if view.spread != "95 %" and "95" not in view.spread else "95 % interval"
    lines = [f"| case | of | median | {spread} | |", "|---|---|---:|---:|---|"]
    for group in groups:
        for number, point in enumerate(group.points):
            case = group.case if number == 0 else ""
            lines.append(f"| {case} | {' | '.join(_cells(point, view.digits))} |")
    return "\n".join(lines)


def _cells(point: Point, digits: int) -> list[str]:
    spread = ""
    if point.low is not None and point.high is not None:
        spread = f"{point.low:,.{digits}f} – {point.high:,.{digits}f}"
    value = f"{point.value:,.{digits}f}"
    if point.paper is None:
        return [point.label, value, spread, ""]
    return [f"*{point.label}*", f"*{value}*", spread, f"{point.paper}: {point.said}"]


def _details(run: Run, report: Mapping[str, Any]) -> Iterator[str]:
    """The tables of a run that no picture shows, what papers say of it, and its notes."""
    tables = _answers(report) if run.name == "queries" else tables_of(report)
    drawn_columns = {(name, view.column) for view in views_of(run.benchmark) for name in view.runs}
    if run.name in TABLES:
        for table in tables:
            yield markdown({**table, "notes": []}, LEFT_OUT)
    notes = [note for table in tables for note in table.get("notes") or []]
    notes += [
        f"{told.paper}, {told.where}: {told.said}"
        for told in TOLD
        if told.run == run.name and (told.run, told.column) not in drawn_columns
    ]
    if notes:
        yield "\n".join([f"Of `{run.name}`:", "", *(f"- {note}" for note in notes)])


def _answers(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The report of `bench queries` as a table."""
    rows = [{"asked by": who, **report[who]} for who in ANSWERS]
    title = f"One lookup in {report['edges']:,} edges"
    facts = [f"{k} {v:,}" for k, v in report.items() if isinstance(v, int | float)]
    return [{"title": title, "rows": rows, "notes": [" · ".join(facts)]}]


def _ran(reports: Mapping[str, Mapping[str, Any]]) -> str:
    lines = ["| part | size | seconds | command |", "|---|---|---:|---|"]
    for run in RUNS:
        if run.name in reports:
            told = reports[run.name]["run"]
            seconds = f"{told['seconds']:,.0f}" + (", failed" if "failed" in told else "")
            lines.append(f"| {run.name} | {told['size']} | {seconds} | `{told['command']}` |")
    return "\n".join(lines)
