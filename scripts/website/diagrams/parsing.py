"""What a diagram says: the part of Mermaid's language that the docs use.

Flowcharts with nodes, arrows, groups and classes, and diagrams of states. Anything else raises
`DiagramError`, so that a page never shows less than its text says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

SHAPES = {
    ("[(", ")]"): "cylinder",
    ("([", "])"): "stadium",
    ("[[", "]]"): "frame",
    ("((", "))"): "circle",
    ("{{", "}}"): "hexagon",
    ("[", "]"): "box",
    ("(", ")"): "round",
}
_NODE = re.compile(
    r"(\w+)(?:"
    + "|".join(
        f"{re.escape(opened)}(?P<{shape}>.*?){re.escape(closed)}"
        for (opened, closed), shape in SHAPES.items()
    )
    + r")?(?::::(?P<style>\w+))?"
)
_ARROW = re.compile(
    r"(?P<plain>-->)(?:\|(?P<beside>[^|]*)\|)?|-\. (?P<dotted>.+?) \.->|(?P<dots>-\.->)"
    r"|-- (?P<said>.+?) -->|(?P<unseen>~~~)"
)
_GROUP = re.compile(r"subgraph (\w+)(?: ?\[(.*)\])?$")
_CLASS = re.compile(r"classDef (\w+) (.+)$")
_STATE = re.compile(r"(\[\*\]|\w+) --> (\[\*\]|\w+)(?:: (.+))?$")
_START = "[*]"


class DiagramError(ValueError):
    """A line of a diagram that is not understood."""


@dataclass(slots=True)
class Node:
    """A box of a diagram."""

    name: str
    text: str
    shape: str = "box"
    style: str | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Arrow:
    """A line from one box to another; one that is not `seen` only keeps them in order."""

    start: str
    end: str
    text: str = ""
    dotted: bool = False
    seen: bool = True


@dataclass(slots=True)
class Diagram:
    """All of a diagram: boxes by name, arrows, titles of groups, styles of classes."""

    nodes: dict[str, Node] = field(default_factory=dict)
    arrows: list[Arrow] = field(default_factory=list)
    groups: dict[str, str] = field(default_factory=dict)
    styles: dict[str, str] = field(default_factory=dict)


def parsed(text: str) -> Diagram:
    """What a diagram's text says.

    >>> [(arrow.start, arrow.end) for arrow in parsed("flowchart LR\\n  a[one] & b --> c").arrows]
    [('a', 'c'), ('b', 'c')]
    """
    head, *lines = [line.strip() for line in text.strip().splitlines()]
    diagram, group = Diagram(), None
    if head not in ("flowchart LR", "stateDiagram-v2"):
        raise DiagramError(f"a diagram begins with flowchart LR or stateDiagram-v2, not {head!r}")
    for line in filter(None, lines):
        if head == "stateDiagram-v2":
            _transition(diagram, line)
        elif match := _GROUP.match(line):
            group = match[1]
            diagram.groups[group] = _plain(match[2] or match[1])
        elif line == "end":
            group = None
        elif match := _CLASS.match(line):
            diagram.styles[match[1]] = match[2].replace(",", ";")
        else:
            _statement(diagram, line, group)
    return diagram


def _transition(diagram: Diagram, line: str) -> None:
    match = _STATE.match(line)
    if match is None:
        raise DiagramError(f"not understood in a diagram of states: {line!r}")
    names = []
    for name in (match[1], match[2]):
        shape, text = ("circle", "") if name == _START else ("round", name)
        diagram.nodes.setdefault(name, Node(name, text, shape))
        names.append(name)
    diagram.arrows.append(Arrow(names[0], names[1], match[3] or ""))


def _statement(diagram: Diagram, line: str, group: str | None) -> None:
    """Nodes, with arrows between: `a & b --> c -- text --> d`."""
    place, before, arrow = 0, list[str](), None
    while True:
        names, place = _nodes(diagram, line, place, group)
        if arrow is not None:
            text = _plain(arrow["said"] or arrow["dotted"] or arrow["beside"] or "")
            dotted = bool(arrow["dotted"] or arrow["dots"])
            diagram.arrows += [
                Arrow(start, end, text, dotted, seen=not arrow["unseen"])
                for start in before
                for end in names
            ]
        if place == len(line):
            return
        arrow, before = _ARROW.match(line, place), names
        if arrow is None:
            raise DiagramError(f"not understood in a diagram: {line[place:]!r} of {line!r}")
        place = _past_spaces(line, arrow.end())


def _nodes(diagram: Diagram, line: str, place: int, group: str | None) -> tuple[list[str], int]:
    names: list[str] = []
    while True:
        match = _NODE.match(line, place)
        if match is None:
            raise DiagramError(f"a node should be at {line[place:]!r} of {line!r}")
        shape = next((shape for shape in SHAPES.values() if match[shape] is not None), None)
        node = diagram.nodes.setdefault(match[1], Node(match[1], match[1]))
        if shape is not None:
            node.shape, node.text = shape, _plain(match[shape])
        node.style = match["style"] or node.style
        # A node is of the group in which it is first spoken of.
        if group is not None and node.group is None:
            node.group = group
        names.append(match[1])
        place = _past_spaces(line, match.end())
        if not line.startswith("& ", place):
            return names, place
        place += 2


def _past_spaces(line: str, place: int) -> int:
    return place + len(line[place:]) - len(line[place:].lstrip())


def _plain(text: str) -> str:
    return text.strip().strip('"').strip()
