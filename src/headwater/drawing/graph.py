"""The graph of an answer as SVG: records left, results right, a line for each edge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.drawing.text import brief, escaped, moment, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headwater.drawing.shown import Item, Shown

_BOX, _GAP, _ROW = 316, 128, 26
"""Widths of a box and between two, and the height of a row, in pixels."""
_TALL, _TOP, _EDGE = 22, 34, 12
_WIDE, _NARROW = 7.4, 6.2
"""Widths of a character of an id, and of what stands beside it."""

STYLE = (
    ".hw-box{fill:currentColor;fill-opacity:.05;stroke-width:1.2}"
    ".hw-record{stroke:#2f81f7}.hw-result{stroke:#bf7300;fill:#bf7300;fill-opacity:.13}"
    ".hw-more{stroke:currentColor;stroke-opacity:.5;stroke-dasharray:4 3;fill:none}"
    ".hw-line{fill:none;stroke:currentColor;stroke-opacity:.38;stroke-width:1.2}"
    ".hw-dash{stroke-dasharray:4 3}"
    ".hw-graph text{fill:currentColor;font:12px system-ui,-apple-system,sans-serif}"
    ".hw-graph .hw-id{font-family:ui-monospace,monospace;font-weight:600}"
    ".hw-graph .hw-dim{fill-opacity:.72;font-size:11px}"
)
"""Colours come from the text around, so that they fit a light and a dark notebook."""
_ALONE = (
    ".hw-graph{color:#1f2328}.hw-panel{fill:#fff;stroke:#d0d7de}"
    "@media (prefers-color-scheme:dark){.hw-graph{color:#e6edf3}"
    ".hw-panel{fill:#0d1117;stroke:#3d444d}}"
)


def svg(shown: Shown, *, alone: bool = False) -> str:
    """The picture; one that stands `alone` has colours and a background of its own."""
    rows = [len(shown.records), len(shown.results)]
    more = "records" if shown.direction == "backward" else "results"
    if shown.left_out:
        rows[more == "results"] += 1
    height = _TOP + max(rows[0], rows[1], 1) * _ROW + _EDGE
    width = 2 * _BOX + _GAP + 2 * _EDGE
    left = [_TOP + place * _ROW for place in _places(rows[0], max(rows))]
    right = [_TOP + place * _ROW for place in _places(rows[1], max(rows))]
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    label = f'aria-label="{escaped(shown.caption)}"'
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="hw-graph" {size} role="img" {label}>',
        f"<title>{escaped(shown.caption)}</title>",
        f"<style>{STYLE}{_ALONE if alone else ''}</style>",
    ]
    if alone:
        out.append(
            f'<rect class="hw-panel" x="1" y="1" width="{width - 2}" height="{height - 2}" rx="8"/>'
        )
    out += _heads(shown)
    out += [_line(left[one], right[other]) for one, other in shown.edges]
    if shown.left_out:
        out += _more(shown, left, right)
    boxes = [*((0, left, one) for one in enumerate(shown.records))]
    boxes += [*((1, right, one) for one in enumerate(shown.results))]
    out += [_box(item, _x(side), ys[place]) for side, ys, (place, item) in boxes]
    return "\n".join([*out, "</svg>"])


def _x(side: int) -> int:
    return _EDGE + side * (_BOX + _GAP)


def _places(count: int, most: int) -> list[float]:
    """Rows of boxes: the shorter side stands in the middle of the longer."""
    first = (most - count) / 2
    return [first + place for place in range(count)]


def _heads(shown: Shown) -> Iterator[str]:
    texts = [("records", shown.records), ("results", shown.results)]
    for side, (what, items) in enumerate(texts):
        names = ", ".join(dict.fromkeys(item.name for item in items))
        said = what if items else f"no {what}"
        if side == (shown.direction == "forward") and shown.left_out:
            said = f"{number(len(items))} of {number(shown.total)} {what}"
        text = escaped(brief(f"{said}{f': {names}' if names else ''}", 50))
        yield f'<text class="hw-dim" x="{_x(side) + 2}" y="{_TOP - 12}">{text}</text>'


def _box(item: Item, x: int, y: float) -> str:
    name = escaped(_beside(item))
    return (
        f'<g class="hw-item"><title>{escaped(item.title)}</title>'
        f'<rect class="hw-box hw-{item.kind}" x="{x}" y="{y:g}" width="{_BOX}" height="{_TALL}" '
        f'rx="{4 if item.kind == "record" else 11}"/>'
        f'<text class="hw-id" x="{x + 10}" y="{y + 15.5:g}">{escaped(item.id)}</text>'
        f'<text class="hw-dim" x="{x + _BOX - 10}" y="{y + 15.5:g}" text-anchor="end">'
        f"{name}</text></g>"
    )


def _beside(item: Item) -> str:
    """The name and the time of day, as far as there is room beside the id."""
    room = int((_BOX - 32 - _WIDE * len(str(item.id))) / _NARROW)
    time = "" if item.time is None else moment(item.time).partition(" ")[2]
    if len(item.name) + len(time) + 3 > room:
        time = time.partition(".")[0].rstrip("Z")
    if not time:
        return brief(item.name, room)
    return f"{brief(item.name, max(2, room - len(time) - 3))} · {time}"


def _line(y1: float, y2: float, dashed: bool = False) -> str:
    x1, x2 = _x(0) + _BOX, _x(1)
    middle, a, b = (x1 + x2) / 2, y1 + _TALL / 2, y2 + _TALL / 2
    path = f"M{x1} {a:g}C{middle:g} {a:g} {middle:g} {b:g} {x2} {b:g}"
    return f'<path class="hw-line{" hw-dash" if dashed else ""}" d="{path}"/>'


def _more(shown: Shown, left: Sequence[float], right: Sequence[float]) -> Iterator[str]:
    """A box that stands for what there is no room for."""
    side = 0 if shown.direction == "backward" else 1
    y, others = (left[-1], right) if side == 0 else (right[-1], left)
    for other in others[:1] if len(others) == 1 else ():
        yield _line(y, other, dashed=True) if side == 0 else _line(other, y, dashed=True)
    yield (
        f'<rect class="hw-more" x="{_x(side)}" y="{y:g}" width="{_BOX}" height="{_TALL}" rx="4"/>'
        f'<text class="hw-dim" x="{_x(side) + 10}" y="{y + 15.5:g}">'
        f"… and {number(shown.left_out)} more</text>"
    )
