"""A diagram as SVG, in the colours of the page around it."""

from __future__ import annotations

from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from website.diagrams.layout import LINE, laid_out, plain
from website.diagrams.parsing import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from website.diagrams.layout import Box, Layout
    from website.diagrams.parsing import Arrow, Diagram, Node

_WIDE = 860
"""What fits beside a page's navigation; a wider diagram is drawn downwards if that is narrower."""
_LETTER = 5.5
"""How wide a letter of a group's title is, about: its frame is no narrower than that."""


def svg(text: str) -> str:
    """The picture of a diagram's text."""
    diagram = parsed(text)
    layout, down = laid_out(diagram, down=False), False
    if layout.width > _WIDE:
        other = laid_out(diagram, down=True)
        if other.width < layout.width:
            layout, down = other, True
    width, height = round(layout.width), round(layout.height)
    said = ", ".join(_words(node.text) for node in diagram.nodes.values() if node.text)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="diagram" role="img" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}" aria-label="{escape(said)}">'
    )
    parts = [head]
    parts += _groups(diagram, layout)
    parts += [_line(arrow, way, down=down) for arrow, way in layout.ways]
    parts += [_box(node, layout.boxes[name], diagram) for name, node in diagram.nodes.items()]
    parts += [_beside(arrow, way) for arrow, way in layout.ways if arrow.text]
    return "".join([*parts, "</svg>"])


def _words(text: str) -> str:
    return plain(text.replace("<br/>", " "))


def _groups(diagram: Diagram, layout: Layout) -> Iterator[str]:
    for group, title in diagram.groups.items():
        inside = [box for box in layout.boxes.values() if box.group == group]
        if not inside:
            continue
        left = min(box.x - box.width / 2 for box in inside) - 10
        right = max(box.x + box.width / 2 for box in inside) + 10
        right = max(right, min(left + 16 + _LETTER * len(title), layout.width - 1))
        top = min(box.y - box.height / 2 for box in inside) - 22
        bottom = max(box.y + box.height / 2 for box in inside) + 8
        yield (
            f'<rect class="diagram-group" x="{left:.0f}" y="{top:.0f}" '
            f'width="{right - left:.0f}" height="{bottom - top:.0f}" rx="6"/>'
            f'<text class="diagram-title" x="{left + 8:.0f}" y="{top + 14:.0f}">'
            f"{escape(title)}</text>"
        )


def _box(node: Node, box: Box, diagram: Diagram) -> str:
    style = diagram.styles.get(node.style or "")
    kind = f"diagram-box{' diagram-set' if style else ''}"
    look = f'class="{kind}"' + (f' style="{escape(style)}"' if style else "")
    return f"<g>{_shape(node, box, look)}{_text(node.text, box.x, box.y, kind)}</g>"


def _shape(node: Node, box: Box, look: str) -> str:
    x, y, w, h = box.x - box.width / 2, box.y - box.height / 2, box.width, box.height
    if node.shape == "circle" and not node.text:
        return f'<circle {look} cx="{box.x:.1f}" cy="{box.y:.1f}" r="{w / 2:.1f}"/>'
    if node.shape == "hexagon":
        points = [(x, box.y), (x + 14, y), (x + w - 14, y), (x + w, box.y)]
        points += [(x + w - 14, y + h), (x + 14, y + h)]
        return f'<polygon {look} points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in points)}"/>'
    if node.shape == "cylinder":
        side = f"a{w / 2:.1f},5 0 0 0 {w:.1f},0 a{w / 2:.1f},5 0 0 0 {-w:.1f},0"
        body = f"v{h - 10:.1f} a{w / 2:.1f},5 0 0 0 {w:.1f},0 v{10 - h:.1f}"
        return f'<path {look} d="M{x:.1f},{y + 5:.1f} {side} {body}"/>'
    round_by = {"stadium": h / 2, "round": 10, "circle": h / 2}.get(node.shape, 3)
    drawn = (
        f'<rect {look} x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" '
        f'rx="{round_by:.1f}"/>'
    )
    if node.shape == "frame":
        drawn += f'<path class="diagram-line" d="M{x + 6:.1f},{y:.1f}v{h:.1f}"/>'
        drawn += f'<path class="diagram-line" d="M{x + w - 6:.1f},{y:.1f}v{h:.1f}"/>'
    return drawn


def _text(text: str, x: float, y: float, kind: str) -> str:
    if not text:
        return ""
    lines = text.split("<br/>")
    drawn = []
    for number, line in enumerate(lines):
        at = y + 4.5 + (number - (len(lines) - 1) / 2) * LINE
        style = f"{kind}-text{' diagram-small' if '<small>' in line else ''}"
        drawn.append(f'<text class="{style}" x="{x:.1f}" y="{at:.1f}">{escape(plain(line))}</text>')
    return "".join(drawn)


def _line(arrow: Arrow, way: list[Box], *, down: bool) -> str:
    """A curve from one box to the next station and so on, with its head at the last."""
    points = [_leaving(way[0], way[1], down=down)]
    points += [(station.x, station.y) for station in way[1:-1]]
    points.append(_leaving(way[-1], way[-2], down=down))
    path = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x, y), (u, v) in pairwise(points):
        if down:
            path += f"C{x:.1f},{(y + v) / 2:.1f} {u:.1f},{(y + v) / 2:.1f} {u:.1f},{v:.1f}"
        else:
            path += f"C{(x + u) / 2:.1f},{y:.1f} {(x + u) / 2:.1f},{v:.1f} {u:.1f},{v:.1f}"
    dots = " diagram-dotted" if arrow.dotted else ""
    return f'<path class="diagram-line{dots}" d="{path}"/>{_head(points, down=down)}'


def _head(points: list[tuple[float, float]], *, down: bool) -> str:
    (x, y), (u, v) = points[-2], points[-1]
    step = (1 if (v > y if down else u > x) else -1) * 8
    ends = (
        [(u - 4, v - step), (u + 4, v - step)] if down else [(u - step, v - 4), (u - step, v + 4)]
    )
    corners = " ".join(f"{a:.1f},{b:.1f}" for a, b in [*ends, (u, v)])
    return f'<polygon class="diagram-head" points="{corners}"/>'


def _leaving(box: Box, towards: Box, *, down: bool) -> tuple[float, float]:
    """Where a line leaves a box."""
    if down:
        return box.x, box.y + (box.height / 2 if towards.y > box.y else -box.height / 2)
    return box.x + (box.width / 2 if towards.x > box.x else -box.width / 2), box.y


def _beside(arrow: Arrow, way: list[Box]) -> str:
    """The text of an arrow, at the station that has room for it."""
    station = max(way[1:-1], key=lambda box: box.width)
    return _text(arrow.text, station.x, station.y, "diagram-said")
