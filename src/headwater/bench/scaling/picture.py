"""Growth as a picture: a panel for each size that grows, both stores in it, as SVG text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LABEL = "Milliseconds of a batch as one size of a flow grows, into both stores"
_ACROSS, _WIDE, _HIGH, _ROOM = 3, 250, 170, 46
_STYLE = """\
  <style>
    .panel { fill: #ffffff; stroke: #d0d7de; }
    text { fill: #1f2328; font: 12px -apple-system, "Segoe UI", Helvetica, sans-serif; }
    .axis { stroke: #59636e; fill: none; } .line { fill: none; stroke-width: 2; }
    .embedded { stroke: #0969da; } .lake { stroke: #bc4c00; }
    .embedded-dot { fill: #0969da; } .lake-dot { fill: #bc4c00; }
    @media (prefers-color-scheme: dark) {
      .panel { fill: #0d1117; stroke: #3d444d; } text { fill: #e6edf3; }
    }
  </style>"""


def growth(tables: Iterable[Mapping[str, Any]]) -> str:
    """The milliseconds of a batch by each size, both axes by powers of ten."""
    rows = [row for table in tables for row in table["rows"] if "grows" in row]
    axes = list(dict.fromkeys(row["grows"] for row in rows if row["grows"] != "nothing"))
    if not axes:
        return ""
    width = _ACROSS * _WIDE + 20
    height = math.ceil(len(axes) / _ACROSS) * _HIGH + 40
    sized = f'width="{width}" height="{height}" role="img" aria-label="{LABEL}"'
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {sized}>',
        _STYLE,
        f'  <rect class="panel" x="1" y="1" width="{width - 2}" height="{height - 2}" rx="10"/>',
    ]
    for number, store in enumerate(("embedded", "lake")):
        x = 16 + number * 110
        out.append(f'  <path class="line {store}" d="M{x} 20 h20"/>')
        out.append(f'  <text x="{x + 26}" y="24">{store}</text>')
    out.append('  <text x="250" y="24">ms a batch, by powers of ten</text>')
    times = [row["ms a batch"] for row in rows]
    span = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    for number, axis in enumerate(axes):
        left = 10 + number % _ACROSS * _WIDE
        top = 34 + number // _ACROSS * _HIGH
        shown = [row for row in rows if row["grows"] in ("nothing", axis)]
        out += _panel(axis, shown, left, top, span)
    return "\n".join([*out, "</svg>", ""])


def _panel(
    axis: str, rows: list[Mapping[str, Any]], left: int, top: int, span: tuple[int, int]
) -> Iterable[str]:
    sizes = sorted({row[axis] for row in rows})
    x, y = left + _ROOM, top + _HIGH - 34
    wide, high = _WIDE - _ROOM - 24, _HIGH - 60
    low, most = span
    yield f'  <path class="axis" d="M{x} {y - high} V{y} H{x + wide}"/>'
    yield f'  <text x="{x}" y="{y - high - 6}">{axis}</text>'
    for power in range(low, most + 1):
        at = y - (power - low) / max(1, most - low) * high + 4
        yield f'  <text x="{left + 4}" y="{at:.0f}">{10**power:,}</text>'
    across = math.log10(sizes[-1] / sizes[0]) or 1.0
    for size in sizes:
        at = x + math.log10(size / sizes[0]) / across * wide
        yield f'  <text x="{at - 10:.0f}" y="{y + 16}">{_short(size)}</text>'
    for store in ("embedded", "lake"):
        points = [
            (
                x + math.log10(row[axis] / sizes[0]) / across * wide,
                y - (math.log10(row["ms a batch"]) - low) / max(1, most - low) * high,
            )
            for row in sorted(rows, key=lambda row: float(row[axis]))
            if row["store"] == store
        ]
        drawn = " ".join(f"{a:.0f},{b:.0f}" for a, b in points)
        yield f'  <polyline class="line {store}" points="{drawn}"/>'
        for a, b in points:
            yield f'  <circle class="{store}-dot" cx="{a:.0f}" cy="{b:.0f}" r="3"/>'


def _short(number: int) -> str:
    """A number in few letters.

    >>> _short(200), _short(20_000), _short(2_000_000)
    ('200', '20 k', '2 M')
    """
    for unit, word in ((10**6, " M"), (10**3, " k")):
        if number >= unit:
            return f"{number / unit:g}{word}"
    return str(number)
