"""Where the boxes of a diagram are: ranks along its arrows, few crossings, straight lines.

The layered way of drawing graphs: boxes get ranks, arrows over several ranks get a way station in
each, ranks are ordered by the means of their neighbours, and boxes move towards these. Where arrows
have texts, there is a rank between any two, and a text is the size of its arrow's station there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from website.diagrams.parsing import Arrow, Diagram

LINE, LETTER, SMALL = 17, 7.3, 6.0
"""Height of a line of text, widths of a letter and of a small one, in pixels."""
_PAD, _GAP, _APART, _GROUP = 24, 44, 18, 26
_SWEEPS = 12


@dataclass(slots=True)
class Box:
    """A box, or a way station of an arrow; x and y are its middle."""

    name: str
    width: float
    height: float
    group: str | None = None
    rank: int = 0
    x: float = 0.0
    y: float = 0.0


@dataclass(slots=True)
class Layout:
    """Boxes by name, the stations of each arrow from its start to its end, and the whole's size."""

    boxes: dict[str, Box]
    ways: list[tuple[Arrow, list[Box]]] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0


def size(text: str, shape: str) -> tuple[float, float]:
    """Width and height of a box for a text."""
    if not text:
        return 16, 16
    parts = text.replace("<br>", "<br/>").split("<br/>")
    wide = max(len(plain(part)) * (SMALL if "<small>" in part else LETTER) for part in parts)
    extra = {"cylinder": 12, "hexagon": 24, "stadium": 12, "frame": 16}.get(shape, 0)
    return wide + _PAD + extra, len(parts) * LINE + 18 + (8 if shape == "cylinder" else 0)


def plain(part: str) -> str:
    """A line of a box's text without its marks."""
    return part.replace("<small>", "").replace("</small>", "")


def laid_out(diagram: Diagram, *, down: bool) -> Layout:
    """Places for all of a diagram, its arrows leading right, or `down`."""
    boxes = {
        name: Box(name, *size(node.text, node.shape), group=node.group)
        for name, node in diagram.nodes.items()
    }
    seen = [arrow for arrow in diagram.arrows if arrow.seen]
    forward = _without_cycles(list(boxes), seen)
    _rank(boxes, [(start, end) for start, end, _ in forward])
    spoken = any(arrow.text for arrow in seen)
    for box in boxes.values():
        box.rank *= 2 if spoken else 1
    layout = Layout(boxes)
    ranks: list[list[Box]] = [[] for _ in range(1 + max(box.rank for box in boxes.values()))]
    for box in boxes.values():
        ranks[box.rank].append(box)
    for (start, end, turned), arrow in zip(forward, seen, strict=True):
        way = [boxes[start]]
        between = range(boxes[start].rank + 1, boxes[end].rank)
        for rank in between:
            is_middle = rank == between[len(between) // 2]
            wide, tall = size(arrow.text, "said") if arrow.text and is_middle else (0.0, 0.0)
            station = Box(f"{start}→{end}@{rank}", wide, max(0.0, tall - 14), rank=rank)
            ranks[rank].append(station)
            way.append(station)
        way.append(boxes[end])
        layout.ways.append((arrow, way[::-1] if turned else way))
    neighbours = _neighbours(layout)
    _order(ranks, neighbours)
    _across(ranks, neighbours, down=down)
    gap = (_GAP / 2 if spoken else _GAP) + (_GROUP / 2 if diagram.groups else 0)
    _along(ranks, gap, down=down)
    _shift(layout)
    return layout


def _without_cycles(names: list[str], arrows: list[Arrow]) -> list[tuple[str, str, bool]]:
    """The arrows as pairs that make no cycle; True for those that are turned round."""
    after: dict[str, list[str]] = {name: [] for name in names}
    for arrow in arrows:
        after[arrow.start].append(arrow.end)
    finished: set[str] = set()
    open_now: set[str] = set()
    back: set[tuple[str, str]] = set()

    def visit(name: str) -> None:
        open_now.add(name)
        for other in after[name]:
            if other in open_now:
                back.add((name, other))
            elif other not in finished:
                visit(other)
        open_now.discard(name)
        finished.add(name)

    for name in names:
        if name not in finished:
            visit(name)
    return [
        (one.end, one.start, True) if (one.start, one.end) in back else (one.start, one.end, False)
        for one in arrows
    ]


def _rank(boxes: dict[str, Box], pairs: list[tuple[str, str]]) -> None:
    """The longest way to each box; a source stands right before what it leads to."""
    for _ in boxes:
        for start, end in pairs:
            boxes[end].rank = max(boxes[end].rank, boxes[start].rank + 1)
    ends = {end for _, end in pairs}
    for name, box in boxes.items():
        after = [boxes[end].rank for start, end in pairs if start == name]
        if name not in ends and after:
            box.rank = min(after) - 1


def _neighbours(layout: Layout) -> dict[str, list[Box]]:
    found: dict[str, list[Box]] = {name: [] for name in layout.boxes}
    for _, way in layout.ways:
        for one, other in pairwise(way):
            found.setdefault(one.name, []).append(other)
            found.setdefault(other.name, []).append(one)
    return found


def _order(ranks: list[list[Box]], neighbours: dict[str, list[Box]]) -> None:
    """Each rank by the mean place of its neighbours; the boxes of a group stay together."""
    place = {box.name: float(at) for rank in ranks for at, box in enumerate(rank)}
    for sweep in range(_SWEEPS):
        step = 1 if sweep % 2 == 0 else -1
        for rank in ranks[::step]:
            means = {
                box.name: fmean(
                    [place[o.name] for o in neighbours[box.name] if o.rank == box.rank - step]
                    or [place[box.name]]
                )
                for box in rank
            }
            by_group: dict[str, list[float]] = {}
            for box in rank:
                by_group.setdefault(box.group or box.name, []).append(means[box.name])
            rank.sort(key=lambda box: (fmean(by_group[box.group or box.name]), means[box.name]))
            place.update({box.name: float(at) for at, box in enumerate(rank)})


def _across(ranks: list[list[Box]], neighbours: dict[str, list[Box]], *, down: bool) -> None:
    """Places across the arrows: as near to the neighbours as those beside allow."""

    def extent(box: Box) -> float:
        return box.width if down else box.height

    at: dict[str, float] = {}
    apart: dict[tuple[str, str], float] = {}
    for rank in ranks:
        for one, other in pairwise(rank):
            room = _GROUP if one.group != other.group else 0
            apart[one.name, other.name] = (extent(one) + extent(other)) / 2 + _APART + room
        end = 0.0
        for number, box in enumerate(rank):
            end = end + apart[rank[number - 1].name, box.name] if number else 0.0
            at[box.name] = end
    for sweep in range(4 * _SWEEPS):
        for rank in ranks[:: 1 if sweep % 2 == 0 else -1]:
            wanted = [
                fmean([at[other.name] for other in neighbours[box.name]] or [at[box.name]])
                for box in rank
            ]
            low, high = list(wanted), list(wanted)
            for i in range(1, len(rank)):
                low[i] = max(low[i], low[i - 1] + apart[rank[i - 1].name, rank[i].name])
            for i in range(len(rank) - 2, -1, -1):
                high[i] = min(high[i], high[i + 1] - apart[rank[i].name, rank[i + 1].name])
            # The mean of two orders that keep the distances keeps them too.
            for box, least, most in zip(rank, low, high, strict=True):
                at[box.name] = (least + most) / 2
    for rank in ranks:
        for box in rank:
            if down:
                box.x = at[box.name]
            else:
                box.y = at[box.name]


def _along(ranks: list[list[Box]], gap: float, *, down: bool) -> None:
    """Places along the arrows: ranks one after the other."""
    end = 0.0
    for rank in ranks:
        thick = max((box.height if down else box.width) for box in rank)
        for box in rank:
            if down:
                box.y = end + thick / 2
            else:
                box.x = end + thick / 2
        end += thick + gap


def _shift(layout: Layout) -> None:
    """Moves all to begin at an edge's width from the corner."""
    everything = list({box.name: box for _, way in layout.ways for box in way}.values())
    everything += [box for box in layout.boxes.values() if box not in everything]
    edge = 30.0 if any(box.group for box in everything) else 8.0
    left = min(box.x - box.width / 2 for box in everything) - edge
    top = min(box.y - box.height / 2 for box in everything) - edge
    for box in everything:
        box.x, box.y = box.x - left, box.y - top
    layout.width = max(box.x + box.width / 2 for box in everything) + edge
    layout.height = max(box.y + box.height / 2 for box in everything) + edge
