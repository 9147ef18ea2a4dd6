"""The queues of the cascade as a picture: the wave of events, and what is left of it behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.examples.weather.queues import Queues

_LEFT, _WIDE, _PANEL, _HIGH = 60, 560, 110, 78
_STEPS = (("A", "D"), ("B", "E"), ("C", "F"))
"""The workflows at the same place of both rows."""


def picture(seen: Queues) -> str:
    """Bars for the events that come, and a line for the length of each workflow's queue."""
    width, height = _LEFT + _WIDE + 20, 4 * _PANEL + 30
    seconds = max(len(row) for row in seen.lengths.values())
    most = max(max(row) for row in seen.lengths.values()) or 1
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    label = "Queue lengths of six workflows in two rows, under a wave of events"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{label}">',
        "  <style>",
        "    .panel { fill: #ffffff; stroke: #d0d7de; } .axis { stroke: #59636e; fill: none; }",
        '    text { fill: #1f2328; font: 12px -apple-system, "Segoe UI", Helvetica, sans-serif; }',
        "    .bar { fill: #0969da; opacity: 0.5; } .line { fill: none; stroke-width: 2; }",
        "    .first { stroke: #0969da; } .second { stroke: #bc4c00; stroke-dasharray: 5 3; }",
        "    @media (prefers-color-scheme: dark) {",
        "      .panel { fill: #0d1117; stroke: #3d444d; } text { fill: #e6edf3; }",
        "      .first { stroke: #4493f8; } .second { stroke: #db6d28; } .bar { fill: #4493f8; }",
        "    }",
        "  </style>",
        f'  <rect class="panel" x="1" y="1" width="{width - 2}" height="{height - 2}" rx="10"/>',
    ]
    step, bottom = _WIDE / seconds, _bottom(0)
    out += _frame(0, "events that come in a second", max(seen.events))
    for second, count in enumerate(seen.events):
        tall = count / max(seen.events) * _HIGH
        out.append(
            f'  <rect class="bar" x="{_LEFT + second * step:.1f}" y="{bottom - tall:.1f}" '
            f'width="{step:.1f}" height="{tall:.1f}"/>'
        )
    for row, nodes in enumerate(_STEPS, 1):
        out += _frame(row, f"in transit in {nodes[0]} and, dashed, in {nodes[1]}", most)
        for kind, node in zip(("first", "second"), nodes, strict=True):
            points = _points(seen.lengths[node], step, most, _bottom(row))
            out.append(f'  <polyline class="line {kind}" points="{points}"/>')
    out.append(f'  <text x="{_LEFT + _WIDE - 30}" y="{height - 8}">{seconds} s</text>')
    return "\n".join([*out, "</svg>", ""])


def _bottom(row: int) -> int:
    return 14 + (row + 1) * _PANEL - 10


def _frame(row: int, text: str, most: int) -> list[str]:
    bottom = _bottom(row)
    return [
        f'  <text x="{_LEFT}" y="{bottom - _HIGH - 6}">{text}</text>',
        f'  <path class="axis" d="M{_LEFT} {bottom - _HIGH} V{bottom} H{_LEFT + _WIDE}"/>',
        f'  <text x="24" y="{bottom - _HIGH + 10}">{most}</text>',
        f'  <text x="24" y="{bottom}">0</text>',
    ]


def _points(row: Sequence[int], step: float, most: int, bottom: int) -> str:
    return " ".join(
        f"{_LEFT + (second + 1) * step:.1f},{bottom - length / most * _HIGH:.1f}"
        for second, length in enumerate(row)
    )
