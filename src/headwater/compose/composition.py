"""`Composition`: named nodes in order, unchangeable; every change makes another."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater.compose.building import Building
from headwater.compose.frozen import Table
from headwater.compose.structures import NAME
from headwater.compose.violations import CompositionError, Violation, nearest
from headwater.errors import UnknownName

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from headwater.compose.node import Node
    from headwater.compose.plan import Plan


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a composition was read: for errors."""

    file: str | None = None
    lines: Mapping[str, int] = Table()
    """The line of each node."""

    def of(self, violation: Violation) -> Violation:
        """The violation with its file and line."""
        line = self.lines.get(violation.node) if violation.node is not None else None
        return violation.at(file=self.file, line=line)


class Composition(Building):
    """Named nodes, each of one kind, that make a flow.

    >>> flow = Composition("storms").source("radar", stream="radar")
    >>> flow = flow.filter("strong", "radar", where="cells > 3").sink("out", "strong", stream="out")
    >>> list(flow), flow["strong"].where
    (['radar', 'strong', 'out'], 'cells > 3')
    """

    __slots__ = ("_nodes", "name", "origin")

    def __init__(
        self, name: str, nodes: Mapping[str, Node] | None = None, origin: Origin | None = None
    ) -> None:
        self.name = name
        self._nodes: Table[Node] = Table(nodes or {})
        self.origin = origin or Origin()
        wrong = [*_names("flow", [name]), *_names("node", self._nodes)]
        if wrong:
            raise CompositionError(map(self.origin.of, wrong))

    # --- what it is made of -------------------------------------------------------------------

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes by name, in order."""
        return self._nodes

    def __getitem__(self, name: str) -> Node:
        try:
            return self._nodes[name]
        except KeyError:
            raise UnknownName(
                f"flow {self.name!r} has no node {name!r}{nearest(name, self)}"
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, name: object) -> bool:
        return name in self._nodes

    def __eq__(self, other: object) -> bool:
        """The same name and the same nodes, in whatever order."""
        if not isinstance(other, Composition):
            return NotImplemented
        return self.name == other.name and dict(self._nodes) == dict(other._nodes)

    def __hash__(self) -> int:
        return hash((self.name, frozenset(self._nodes)))

    def __repr__(self) -> str:
        return f"Composition({self.name!r}, {len(self)} nodes)"

    # --- changes, each a new composition ------------------------------------------------------

    def add(self, name: str, node: Node) -> Composition:
        """With one node more."""
        if name in self._nodes:
            there = self._nodes[name].kind
            text = f"there is a {there} of this name already; use replace, or another name"
            raise CompositionError([self.origin.of(Violation("name", text, node=name))])
        return self._with({**self._nodes, name: node})

    def replace(self, name: str, node: Node) -> Composition:
        """With another node in place of one."""
        self[name]
        return self._with({**self._nodes, name: node})

    def remove(self, *names: str) -> Composition:
        """Without some nodes; what reads them is for the rules to find."""
        for name in names:
            self[name]
        return self._with({n: node for n, node in self._nodes.items() if n not in names})

    def _with(self, nodes: Mapping[str, Node]) -> Composition:
        return Composition(self.name, nodes, self.origin)

    # --- what can be said of it ---------------------------------------------------------------

    def check(self) -> tuple[Violation, ...]:
        """Every rule that it breaks; none if it can be deployed."""
        from headwater.compose.checking import check

        return check(self)

    def plan(self) -> Plan:
        """Labels, sub-flows, runtimes; raises `CompositionError` with all that is wrong.

        Joins that are demanded are in the plan, so that it can be looked at before they are there.
        """
        from headwater.compose.planning import plan

        return plan(self)

    # --- files --------------------------------------------------------------------------------

    @classmethod
    def read(cls, path: str | Path) -> Composition:
        """From a file of YAML, JSON or Python; raises `CompositionError` with all that is wrong."""
        from headwater.compose.reading import read

        return read(path)

    @classmethod
    def parse(cls, text: str, file: str | None = None) -> Composition:
        """From the text of a flow file, YAML or JSON."""
        from headwater.compose.reading import parse

        return parse(text, file)

    def to_dict(self) -> dict[str, Any]:
        """As a flow file has it."""
        nodes = {name: {node.kind: node.written()} for name, node in self._nodes.items()}
        return {"flow": self.name, "nodes": nodes}

    def to_yaml(self) -> str:
        """The flow file in YAML, a node a line where it fits."""
        from headwater.compose.writing import to_yaml

        return to_yaml(self)

    def to_json(self) -> str:
        """The flow file in JSON."""
        from headwater.compose.writing import to_json

        return to_json(self)

    def to_python(self) -> str:
        """Python that makes the same composition."""
        from headwater.compose.python_text import to_python

        return to_python(self)


def _names(what: str, names: Any) -> Iterator[Violation]:
    for name in names:
        if not isinstance(name, str) or not re.fullmatch(NAME, name):
            text = f"{name!r} can't be a {what}'s name: a letter, then letters, digits, _ and -"
            yield Violation("name", text, node=name if what == "node" else None)
