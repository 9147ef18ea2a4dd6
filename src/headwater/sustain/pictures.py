"""The three waves of §5.5.2 as a picture: what comes in, the length, the verdict.

`python -m headwater.sustain.pictures docs/images/sustain.svg` draws it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.sax.saxutils import escape

from headwater.sustain.queue import Measured, Queue
from headwater.sustain.simulation import per_second, run
from headwater.sustain.waves import WAVES, Wave

SERVICE = 0.8
"""Seconds for an event: 1.25 a second are done, between the second wave's mean and the third's."""
SECONDS = 300
_LEFT, _WIDE, _PANEL = 60, 560, 130
_COLOURS = {"growing": "#cf222e", "bursting": "#bc4c00", "healthy": "#1a7f37", "unknown": "#59636e"}


def measured(wave: Wave, seconds: int = SECONDS) -> tuple[Queue, Measured]:
    """A wave through a queue with one slot."""
    counts = (wave(second) for second in range(seconds))
    queue = run(Queue("linpack"), per_second(counts), SERVICE, until=seconds)
    return queue, queue.measured()


def picture() -> str:
    """Figures 67 to 69 anew: bars of arrivals, the queue's length over them."""
    width, height = _LEFT + _WIDE + 20, 3 * _PANEL + 30
    told = {name: measured(wave) for name, wave in WAVES.items()}
    most = max(queue.series().high.max() for queue, _ in told.values())
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    label = "Queue lengths under three waves of events"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{label}">',
        "  <style>",
        "    .panel { fill: #ffffff; stroke: #d0d7de; } .axis { stroke: #59636e; fill: none; }",
        '    text { fill: #1f2328; font: 12px -apple-system, "Segoe UI", Helvetica, sans-serif; }',
        "    .bar { fill: #0969da; opacity: 0.35; } .line { fill: none; stroke-width: 2; }",
        *(f"    .{state} {{ stroke: {colour}; }}" for state, colour in _COLOURS.items()),
        "    @media (prefers-color-scheme: dark) {",
        "      .panel { fill: #0d1117; stroke: #3d444d; } text { fill: #e6edf3; }",
        "    }",
        "  </style>",
        f'  <rect class="panel" x="1" y="1" width="{width - 2}" height="{height - 2}" rx="10"/>',
    ]
    for row, (name, (queue, now)) in enumerate(told.items()):
        out += _panel(name, queue, now, 14 + row * _PANEL, float(most))
    out.append(f'  <text x="{_LEFT + _WIDE - 40}" y="{height - 10}">{SECONDS} s</text>')
    return "\n".join([*out, "</svg>", ""])


def _panel(name: str, queue: Queue, now: Measured, top: int, most: float) -> list[str]:
    series, bottom = queue.series(), top + _PANEL - 14
    high, step = _PANEL - 40, _WIDE / SECONDS
    verdict = now.verdict
    said = f"{name}: {now.rate:.3g}/s in, {1 / SERVICE:.3g}/s done at most: {verdict.state}"
    out = [f'  <text x="{_LEFT}" y="{top + 10}">{escape(f"{said}, {verdict.reason}")}</text>']
    for second, count in enumerate(series.counts[:SECONDS]):
        if count:
            x, tall = _LEFT + second * step, count / most * high
            out.append(
                f'  <rect class="bar" x="{x:.1f}" y="{bottom - tall:.1f}" width="{step:.1f}" '
                f'height="{tall:.1f}"/>'
            )
    points = " ".join(
        f"{_LEFT + at * step:.1f},{bottom - length / most * high:.1f}"
        for at, length in enumerate(series.last[:SECONDS])
    )
    out.append(f'  <polyline class="line {verdict.state}" points="{points}"/>')
    out.append(f'  <path class="axis" d="M{_LEFT} {bottom - high} V{bottom} H{_LEFT + _WIDE}"/>')
    out.append(f'  <text x="14" y="{bottom - high + 10}">{most:.0f}</text>')
    out.append(f'  <text x="14" y="{bottom}">0</text>')
    return out


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(picture(), encoding="utf-8")
