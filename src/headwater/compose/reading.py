"""Flow files to compositions: everything that is wrong is told at once, with its line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.compose.composition import Composition, Origin
from headwater.compose.frozen import Table
from headwater.compose.graph import Graph
from headwater.compose.kinds import KINDS
from headwater.compose.structures import NAME
from headwater.compose.violations import CompositionError, Violation, nearest
from headwater.compose.yaml_text import Read, load

if TYPE_CHECKING:
    from headwater.compose.node import Node
from headwater.compose.labels import label
from headwater.compose.rules import violations


def read(path: str | Path) -> Composition:
    """A composition from a file of YAML, JSON or, by its ending, Python."""
    place = Path(path)
    if place.suffix == ".py":
        from headwater.compose.python_text import read_python

        return read_python(place)
    try:
        text = place.read_text(encoding="utf-8")
    except OSError as error:
        why = error.strerror or str(error)
        raise CompositionError([Violation("file", f"{path} can't be read: {why}")]) from error
    except UnicodeDecodeError as error:
        raise CompositionError([Violation("file", f"{path} is no text in UTF-8")]) from error
    return parse(text, str(path))


def parse(text: str, file: str | None = None) -> Composition:
    """A composition from the text of a flow file."""
    told = load(text, file)
    reader = _Reader(told, file)
    nodes = reader.nodes()
    if reader.found:
        found = reader.found + _others(reader, nodes)
        raise CompositionError(sorted(found, key=lambda v: v.line or 0))
    return Composition(told.value["flow"], nodes, Origin(file, Table(reader.lines)))


def _others(reader: _Reader, nodes: dict[str, Node]) -> list[Violation]:
    """Rules that the nodes break which could be made, so that all is told at once."""
    graph = Graph(Composition("flow", nodes, Origin(reader.file, Table(reader.lines))))
    broken = {edge.target for edge in graph.unknown if edge.source in reader.lines}
    return [
        violation
        for violation in violations(graph, label(graph))
        # What reads a node that could not be made is not to blame for it.
        if violation.rule != "unread-source"
        and not (violation.rule == "unknown-node" and violation.node in broken)
    ]


class _Reader:
    """One file being read: its nodes, and what was found wrong."""

    def __init__(self, told: Read, file: str | None) -> None:
        self._told = told
        self.file = file
        self.found: list[Violation] = []
        self.lines: dict[str, int] = {}

    def nodes(self) -> dict[str, Node]:
        """The nodes that can be made."""
        value = self._told.value
        if not isinstance(value, Mapping) or not ("flow" in value or "nodes" in value):
            self._wrong("shape", "a flow file has 'flow: NAME' and 'nodes:' with a node a line")
            return {}
        for spot in self._told.doubled:
            node = str(spot[1]) if len(spot) > 1 and spot[0] == "nodes" else None
            self._wrong("name", f"{spot[-1]!r} stands here twice; remove one", spot, node)
        for name in value:
            if name not in ("flow", "nodes"):
                text = f"a flow file has no key {name!r}{nearest(name, ('flow', 'nodes'))}"
                self._wrong("shape", text, (name,))
        flow = value.get("flow")
        if not isinstance(flow, str) or not re.fullmatch(NAME, flow):
            text = f"flow is the flow's name, a letter and more letters or digits, not {flow!r}"
            self._wrong("shape", text, ("flow",))
        nodes = value.get("nodes")
        if not isinstance(nodes, Mapping):
            self._wrong("shape", "nodes is {name: {kind: {…}}}", ("nodes",))
            return {}
        made = {name: self._node(name, given) for name, given in nodes.items()}
        return {name: node for name, node in made.items() if node is not None}

    def _node(self, name: Any, given: Any) -> Node | None:
        spot = ("nodes", name)
        if (line := self._told.lines.get(spot)) is not None:
            self.lines[name] = line
        if not isinstance(name, str) or not re.fullmatch(NAME, name):
            text = f"{name!r} can't be a node's name: a letter, then letters, digits, _ and -"
            self._wrong("name", text, spot, str(name))
            return None
        if not isinstance(given, Mapping) or len(given) != 1:
            count = f", and this has {len(given)}" if isinstance(given, Mapping) else ""
            self._wrong("kind", f"a node is {{kind: {{…}}}} with one kind{count}", spot, name)
            return None
        ((kind, keys),) = given.items()
        if kind not in KINDS:
            self._wrong("kind", f"there is no kind {kind!r}{nearest(kind, KINDS)}", spot, name)
            return None
        if not isinstance(keys, Mapping):
            text = f"{kind} has its keys in braces or below it, not {keys!r}"
            self._wrong("kind", text, spot, name)
            return None
        node, found = KINDS[kind].parse(keys)
        for violation in found:
            self._place(violation, spot, kind, keys, name)
        return node

    def _place(
        self, found: Violation, spot: tuple[Any, ...], kind: str, keys: Any, name: str
    ) -> None:
        """A violation at the line of the key that it speaks of, or else of the node."""
        words = re.findall(r"[\w-]+", found.text)
        told = next((word for word in words if word in keys), "")
        line = self._told.lines.get((*spot, kind, told)) or self._told.lines.get(spot)
        self.found.append(found.at(node=name, file=self.file, line=line))

    def _wrong(
        self, rule: str, text: str, spot: tuple[Any, ...] = (), node: str | None = None
    ) -> None:
        line = self._told.lines.get(spot) or self._told.lines.get(spot[:-1])
        self.found.append(Violation(rule, text, node=node, file=self.file, line=line))
