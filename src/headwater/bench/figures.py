"""Measurements as they stand in the documentation: tables and a picture, made from JSON reports.

`python -m headwater.bench.figures docs/capture.md REPORT...` writes the tables between the page's
markers and the picture beside the page, from what `headwater bench capture --json`, `bench storage
--json` and `bench replay --json` printed. `docs/live-costs.md` takes those of `bench live --json`,
`docs/reduce.md` those of `bench reduce --json`, `docs/scaling.md` those of `bench scale --json`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from headwater.bench.scaling import picture as growing
from headwater.bench.scaling.needs import needs

BEGIN = "<!-- begin: python -m headwater.bench.figures -->"
END = "<!-- end -->"
MODES = ("ancestors", "intervals", "eager")
LEFT_OUT = (
    "rates",
    "batches",
    "goal",
    "seconds",
    "of pairs",
    "results",
    "edges",
    "results asked",
    "levels",
)
LEFT_OUT_BY = {"scaling": ("seconds", "results", "store bytes", "held")}
"""Other columns that are left out, by the page's name."""

Row = Mapping[str, Any]


def tables_of(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tables of a report of any of the commands."""
    if "suites" in report:
        return [table for tables in report["suites"].values() for table in tables]
    return [dict(report)]


def markdown(table: Mapping[str, Any], left_out: Sequence[str] = LEFT_OUT) -> str:
    """A table for a page, without the columns that only matter for checking.

    >>> print(markdown({"title": "T", "rows": [{"mode": "eager", "ratio": 0.5}]}))
    **T**
    <BLANKLINE>
    | mode | ratio |
    |---|---:|
    | eager | 0.500 |
    """
    rows: list[Row] = table["rows"]
    columns = [c for c in dict.fromkeys(k for row in rows for k in row) if c not in left_out]
    kinds = {c: next((row[c] for row in rows if row.get(c) is not None), "") for c in columns}
    aligned = "|".join("---" if isinstance(kinds[c], str) else "---:" for c in columns)
    lines = [f"**{table['title']}**", "", f"| {' | '.join(columns)} |", f"|{aligned}|"]
    lines += [f"| {' | '.join(_cell(row.get(c)) for c in columns)} |" for row in rows]
    notes = table.get("notes") or []
    said = notes if len(notes) == 1 else [f"- {note}" for note in notes]
    return "\n".join(lines + (["", *said] if notes else []))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return " – ".join(_cell(each) for each in value)
    if isinstance(value, float):
        if abs(value) >= 1000:
            return f"{value:,.0f}"
        return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def picture(tables: Iterable[Mapping[str, Any]]) -> str:
    """Bars of every mode's rate as a share of that without capture, case by case."""
    cases: dict[str, dict[str, float]] = {}
    for table in tables:
        for row in table["rows"]:
            if row.get("ratio") is None or row.get("mode") not in MODES:
                continue
            labels = [str(v) for k, v in row.items() if k not in ("mode", *_FIGURES)]
            name = ", ".join([table["title"].split(",")[0], *labels])
            cases.setdefault(name, {})[row["mode"]] = float(row["ratio"])
    return _drawn(cases)


def curve(tables: Iterable[Mapping[str, Any]]) -> str:
    """Memory over the records of a long stream, below it what the graph holds of them."""
    rows = next((t["rows"] for t in tables if "RSS MiB" in (t["rows"] or [{}])[0]), None)
    if rows is None:
        return ""
    panels = (("RSS MiB", "DuckDB MiB"), ("pending", "alive"))
    width, height = _LEFT + _WIDE, 2 * _PANEL + 44
    out = [_opening(width, height, PICTURES["live-costs"].label)]
    out += ["  <style>", *_STYLE]
    out += [
        "    .line { fill: none; stroke-width: 2; } .axis { stroke: #59636e; }",
        "    .first { stroke: #0969da; } .second { stroke: #bc4c00; }",
        "    @media (prefers-color-scheme: dark) {",
        "      .panel { fill: #0d1117; stroke: #3d444d; } text { fill: #e6edf3; }",
        "    }",
        "  </style>",
        f'  <rect class="panel" x="1" y="1" width="{width - 2}" height="{height - 2}" rx="10"/>',
    ]
    for n, names in enumerate(panels):
        out += _lines(rows, names, 14 + n * _PANEL)
    last = f"{rows[-1]['records']:,} records"
    out.append(f'  <text x="{width - 160}" y="{height - 14}">{last}</text>')
    return "\n".join([*out, "</svg>", ""])


def _lines(rows: list[Row], names: tuple[str, ...], top: int) -> list[str]:
    """The curves of some columns over the records, from zero."""
    most = max(max(row[name] for row in rows) for name in names) or 1
    wide, high, bottom = _LEFT + _WIDE - 200, _PANEL - 24, top + _PANEL - 12
    out = [f'  <path class="axis" fill="none" d="M90 {bottom - high} V{bottom} H{90 + wide}"/>']
    out.append(f'  <text x="14" y="{bottom - high + 10}">{_cell(most)}</text>')
    out.append(f'  <text x="14" y="{bottom}">0</text>')
    for name, style in zip(names, ("first", "second"), strict=True):
        points = " ".join(
            f"{90 + row['records'] / rows[-1]['records'] * wide:.0f},"
            f"{bottom - row[name] / most * high:.0f}"
            for row in rows
        )
        out.append(f'  <polyline class="line {style}" points="{points}"/>')
        at = bottom - rows[-1][name] / most * high + 4
        out.append(f'  <text x="{96 + wide}" y="{at:.0f}">{escape(name)}</text>')
    return out


_FIGURES = (
    *("records/s", "ratio", "of pairs", "95 %", "goal", "seconds", "CPU s", "peak MiB"),
    *("results", "edges", "batches", "rates"),
)
_BAR, _GAP, _LEFT, _WIDE, _PANEL = 12, 14, 330, 420, 150
_STYLE = (
    "    .panel { fill: #ffffff; stroke: #d0d7de; }",
    '    text { fill: #1f2328; font: 12px -apple-system, "Segoe UI", Helvetica, sans-serif; }',
)


def _opening(width: int, height: int, label: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{label}">'
    )


def _drawn(cases: Mapping[str, Mapping[str, float]]) -> str:
    step = len(MODES) * _BAR + _GAP
    height = 60 + step * len(cases)
    width = _LEFT + _WIDE + 90
    at_one = _LEFT + _WIDE / 1.2
    out = [
        _opening(width, height, PICTURES["capture"].label),
        "  <style>",
        *_STYLE,
        "    .ancestors { fill: #1a7f37; } .intervals { fill: #0969da; } .eager { fill: #bc4c00; }",
        "    .one { stroke: #59636e; stroke-dasharray: 4 3; }",
        "    @media (prefers-color-scheme: dark) {",
        "      .panel { fill: #0d1117; stroke: #3d444d; } text { fill: #e6edf3; }",
        "    }",
        "  </style>",
        f'  <rect class="panel" x="1" y="1" width="{width - 2}" height="{height - 2}" rx="10"/>',
    ]
    for n, mode in enumerate(MODES):
        x = _LEFT + n * 110
        out.append(f'  <rect class="{mode}" x="{x}" y="14" width="12" height="12"/>')
        out.append(f'  <text x="{x + 18}" y="25">{mode}</text>')
    out.append(f'  <text x="{at_one + 6:.0f}" y="42">none = 1</text>')
    out.append(f'  <path class="one" d="M{at_one:.0f} 34 V{height - 10}"/>')
    for n, (name, ratios) in enumerate(cases.items()):
        y = 48 + n * step
        out.append(f'  <text x="14" y="{y + step / 2 - 2:.0f}">{escape(name)}</text>')
        for m, mode in enumerate(MODES):
            if mode not in ratios:
                continue
            long = min(ratios[mode], 1.2) * _WIDE / 1.2
            top = y + m * _BAR
            out.append(
                f'  <rect class="{mode}" x="{_LEFT}" y="{top}" width="{long:.0f}" '
                f'height="{_BAR - 2}"/>'
            )
            out.append(
                f'  <text x="{_LEFT + long + 5:.0f}" y="{top + 9}">{ratios[mode]:.2f}</text>'
            )
    return "\n".join([*out, "</svg>", ""])


@dataclass(frozen=True, slots=True)
class Picture:
    """The picture of a page: its file beside the page, what it shows, and how it is drawn."""

    file: str
    label: str
    draw: Callable[[Iterable[Mapping[str, Any]]], str]


PICTURES = {
    "capture": Picture(
        "images/costs.svg", "Rates with capture as shares of those without", picture
    ),
    "live-costs": Picture("images/live-memory.svg", "Memory over the records of a stream", curve),
    "scaling": Picture("images/scaling.svg", growing.LABEL, growing.growth),
}
"""By the page's name."""


DERIVED = {"scaling": needs}
"""By the page's name: what makes one more table of all those that were measured."""


def updated(
    page: str,
    reports: Sequence[Mapping[str, Any]],
    shown: Picture | None = None,
    name: str = "",
) -> str:
    """The page's text with the tables between its markers made anew."""
    above, begin, rest = page.partition(BEGIN)
    _, end, below = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"no figures to replace: the page needs {BEGIN} and {END}")
    left_out = LEFT_OUT_BY.get(name, LEFT_OUT)
    parts = [] if shown is None else [f"![{shown.label}]({shown.file})"]
    for number, report in enumerate(reports, start=1):
        machine = report["machine"]
        said = ", ".join(f"{key} {value}" for key, value in machine.items())
        parts += [markdown(table, left_out) for table in tables_of(report)]
        if number == len(reports) or reports[number]["machine"] != machine:
            parts.append(f"Measured with {said}.")
    if name in DERIVED and reports:
        tables = [table for report in reports for table in tables_of(report)]
        parts.append(markdown(DERIVED[name](tables, reports[-1]["machine"]), left_out))
    made = "\n\n".join(parts)
    return f"{above}{begin}\n{made}\n{end}{below}"


def main(arguments: list[str]) -> None:
    """Write the figures of some reports into a page."""
    page, *files = map(Path, arguments)
    reports = [json.loads(file.read_text()) for file in files]
    shown = PICTURES.get(page.stem)
    drawn = shown and shown.draw([table for report in reports for table in tables_of(report)])
    if shown and drawn:
        (page.parent / shown.file).write_text(drawn)
    page.write_text(updated(page.read_text(), reports, shown if drawn else None, page.stem))


if __name__ == "__main__":
    main(sys.argv[1:])
