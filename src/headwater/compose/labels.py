"""Labels: which outputs carry the same events, found in one pass (Streamflow's Figure 19).

What all static inputs lead to is static. A source invents a label. A node that gives one event for
each keeps the label of its stream; any other invents one. Where a one-to-one node reads two labels,
a join is missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.compose.graph import Edge, Graph


@dataclass(frozen=True, slots=True)
class Label:
    """Static, or the events of the node that made the label."""

    origin: str | None = None

    @property
    def is_static(self) -> bool:
        """Whether there is one value, reused for every event."""
        return self.origin is None

    def __str__(self) -> str:
        return "static" if self.origin is None else self.origin


STATIC = Label()


@dataclass(slots=True)
class Labels:
    """The label of each node's output, and where labels come from."""

    of: dict[str, Label] = field(default_factory=dict)
    mixed: dict[str, dict[str, Label]] = field(default_factory=dict)
    """One-to-one nodes that read several labels: each port with its own."""
    parents: dict[Label, tuple[Label, ...]] = field(default_factory=dict)
    """The labels that a label was made of, in the node that invented it."""

    def at(self, edge: Edge) -> Label:
        """The label of what an edge carries."""
        if edge.port.output is None:
            return self.of[edge.source]
        whole = self.of[edge.source]
        return whole if whole.is_static else Label(edge.port.target)


def label(graph: Graph) -> Labels:
    """Label every node of a graph that can be put in order, each edge looked at once."""
    labels = Labels()
    for name in graph.order:
        node = graph.nodes[name]
        ports = {edge.port.name: labels.at(edge) for edge in graph.into[name]}
        streams = tuple(dict.fromkeys(x for x in ports.values() if not x.is_static))
        if node.kind == "source":
            given = Label(name)
        elif not streams:
            given = STATIC
        elif node.kind == "sink":
            given = streams[0]
        elif node.follows is not None and not ports.get(node.follows, STATIC).is_static:
            given = ports[node.follows]
        elif node.one_to_one and len(streams) == 1:
            given = streams[0]
        else:
            given = Label(name)
            if node.one_to_one and not node.joins:
                labels.mixed[name] = {p: x for p, x in ports.items() if not x.is_static}
        labels.of[name] = given
        if given.origin == name:
            labels.parents[given] = streams
    return labels


def slower(graph: Graph, labels: Labels, one: Label, other: Label) -> Label | None:
    """The one of two labels that carries fewer events, where the graph tells."""
    for first, second in ((one, other), (other, one)):
        at: Label | None = first
        while at is not None and at.origin is not None and at != second:
            base, _, output = at.origin.partition(".")
            above = (labels.of[base],) if output else labels.parents.get(at, ())
            most = graph.nodes[base].known.at_most
            fewer = bool(output) or (most is not None and most <= 1)
            at = above[0] if len(above) == 1 and fewer else None
        if at == second:
            return first
    return None
