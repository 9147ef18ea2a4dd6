"""Medians with their spread as SVG text: a line for each, those of papers as rhombs beside."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater.bench.everything.compared import Group, Point, View

_LEFT, _WIDE, _RIGHT = 330, 400, 120
_LINE, _HEAD, _TOP = 18, 22, 44
_STYLE = """\
  <style>
    .panel { fill: #ffffff; stroke: #d0d7de; }
    text { fill: #1f2328; font: 12px -apple-system, "Segoe UI", Helvetica, sans-serif; }
    .case { font-weight: 600; } .grid { stroke: #d0d7de; } .one { stroke: #59636e; }
    .one { stroke-dasharray: 4 3; } .ours { fill: #0969da; stroke: #0969da; stroke-width: 2; }
    .paper { fill: none; stroke: #8250df; stroke-width: 2; }
    @media (prefers-color-scheme: dark) {
      .panel { fill: #0d1117; stroke: #3d444d; } text { fill: #e6edf3; } .grid { stroke: #3d444d; }
    }
  </style>"""


class _Axis:
    """Where a value is, from zero or by powers of ten."""

    def __init__(self, values: Sequence[float], powers: bool) -> None:
        self.powers = powers
        positive = [value for value in values if value > 0]
        if powers:
            self.low = float(math.floor(math.log10(min(positive))))
            self.high = max(self.low + 1, float(math.ceil(math.log10(max(positive)))))
        else:
            self.low = min(0.0, *values)
            self.high = _above(max(values))

    def at(self, value: float) -> float:
        """The place of a value; what is beyond the axis is at its end."""
        told = math.log10(value) if self.powers and value > 0 else value
        share = (told - self.low) / ((self.high - self.low) or 1)
        return _LEFT + min(1.0, max(0.0, share)) * _WIDE

    def marks(self) -> Iterator[tuple[float, str]]:
        """Places along the axis, and what they mean."""
        if self.powers:
            for power in range(int(self.low), int(self.high) + 1):
                text = f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"
                yield self.at(10.0**power), text
            return
        for step in range(5):
            value = self.low + step * (self.high - self.low) / 4
            yield self.at(value), f"{value:,.3g}"


def _above(value: float) -> float:
    """A round number that is no less.

    >>> _above(0.93), _above(1.2), _above(87)
    (1.0, 2.0, 100.0)
    """
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 4, 5, 10) if step * power >= value)


def drawn(view: View, groups: Sequence[Group]) -> str:
    """The picture of some cases; nothing where there are none."""
    points = [point for group in groups for point in group.points]
    if not points:
        return ""
    # An interval of a few wild runs may go to the sky: it leaves the picture, the medians do not.
    values = [point.value for point in points]
    tops = [p.high for p in points if p.high is not None and p.high <= 2 * max(values)]
    bottoms = [p.low for p in points if p.low is not None and p.low > 0.1 * min(values)]
    axis = _Axis([*values, *tops, *bottoms, *([1.0] if view.one else [])], view.powers)
    height = _TOP + _HEAD * len(groups) + _LINE * len(points) + 34
    width = _LEFT + _WIDE + _RIGHT
    sized = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    label = escape(view.title)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {sized} role="img" aria-label="{label}">',
        _STYLE,
        f'  <rect class="panel" x="1" y="1" width="{width - 2}" height="{height - 2}" rx="10"/>',
        f'  <text class="case" x="14" y="24">{label}</text>',
        f'  <text x="{width - 14}" y="24" text-anchor="end">● Headwater  ◇ paper</text>',
    ]
    bottom = height - 28
    for x, text in axis.marks():
        out.append(f'  <path class="grid" d="M{x:.0f} {_TOP - 6} V{bottom}"/>')
        out.append(f'  <text x="{x - 8:.0f}" y="{bottom + 18}">{text}</text>')
    if view.one:
        out.append(f'  <path class="one" d="M{axis.at(1):.0f} {_TOP - 6} V{bottom}"/>')
    y = _TOP
    for group in groups:
        y += _HEAD
        out.append(f'  <text class="case" x="14" y="{y - 6}">{escape(group.case)}</text>')
        for point in group.points:
            out += _line(point, axis, y, view.digits)
            y += _LINE
    return "\n".join([*out, "</svg>", ""])


def _line(point: Point, axis: _Axis, y: int, digits: int) -> Iterator[str]:
    x, middle = axis.at(point.value), y + 5
    style = "ours" if point.paper is None else "paper"
    yield f'  <text x="30" y="{y + 9}">{escape(point.label)}</text>'
    if point.low is not None and point.high is not None:
        low, high = axis.at(point.low), axis.at(point.high)
        yield f'  <path class="{style}" d="M{low:.1f} {middle} H{high:.1f}"/>'
    if point.paper is None:
        yield f'  <circle class="ours" cx="{x:.1f}" cy="{middle}" r="4"/>'
    else:
        yield f'  <path class="paper" d="M{x - 5:.1f} {middle} l5 -5 l5 5 l-5 5 z"/>'
    yield f'  <text x="{_LEFT + _WIDE + 16}" y="{y + 9}">{point.value:,.{digits}f}</text>'
