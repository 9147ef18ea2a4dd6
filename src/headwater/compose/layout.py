"""Where the nodes of a flow are drawn: layers from left to right, a row for each chain.

Layers are longest paths. Within a layer, nodes are ordered by the mean place of their neighbours, a
few times over. Long edges hold a place in every layer that they pass, so that they pass beside the
boxes. Chains are blocks that move up and down as one; parts that are not connected are stacked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headwater.compose.layering import Layers, arranged
from headwater.compose.structures import Ports
from headwater.compose.values import Wrong

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.compose.composition import Composition
    from headwater.compose.plan import Plan
    from headwater.compose.structures import Port


def layout(plan: Plan) -> dict[str, Any]:
    """The places of a plan's nodes, in cells, and its edges.

    `width` and `height` are how many cells there are. An edge has `bends` where it passes other
    layers on its way, and `stream` where it crosses units, through a named stream.

    >>> from headwater.compose import Composition
    >>> flow = Composition("storms").source("radar", stream="radar")
    >>> flow = flow.filter("strong", "radar", where="cells > 3").sink("out", "strong", stream="out")
    >>> layout(flow.plan())["nodes"]
    {'radar': {'x': 0, 'y': 0}, 'strong': {'x': 1, 'y': 0}, 'out': {'x': 2, 'y': 0}}
    """
    unit = {name: each.number for each in plan.units for name in each.nodes}
    stored = {(b.node, b.output): b.stream for b in plan.boundaries if b.stored}
    static = {name for name, label in plan.labels.items() if label.is_static}
    inputs = {name: node.inputs for name, node in plan.composition.nodes.items()}

    def stream(name: str, port: Port) -> str | None:
        crosses = unit[port.node] != unit[name] and port.node not in static
        return stored.get((port.node, port.output)) if crosses else None

    return _drawn(
        inputs,
        [
            {**_edge(name, port), "static": port.node in static, "stream": stream(name, port)}
            for name, ports in inputs.items()
            for port in ports
        ],
    )


def layout_of(flow: Composition | Mapping[str, Any]) -> dict[str, Any]:
    """The same for a composition that breaks rules, or for the document of a flow file.

    Only what can be drawn is: nodes that are there, edges between them.

    >>> layout_of({"flow": "f", "nodes": {"a": {"filter": {"from": ["b", "c"]}}, "b": {}}})["edges"]
    [{'from': 'b', 'to': 'a', 'port': 'b', 'output': None, 'static': False, 'stream': None}]
    """
    inputs = dict(_inputs(flow))
    return _drawn(
        inputs,
        [
            {**_edge(name, port), "static": _kind(flow, port.node) == "static", "stream": None}
            for name, ports in inputs.items()
            for port in ports
            if port.node in inputs
        ],
    )


def _inputs(flow: Composition | Mapping[str, Any]) -> Iterable[tuple[str, tuple[Port, ...]]]:
    if not isinstance(flow, Mapping):
        for name, node in flow.nodes.items():
            yield name, node.inputs
        return
    nodes = flow.get("nodes")
    for name, node in nodes.items() if isinstance(nodes, Mapping) else ():
        keys = next(iter(node.values()), None) if isinstance(node, Mapping) else None
        given = keys.get("from") if isinstance(keys, Mapping) else None
        try:
            yield str(name), () if given is None else Ports().read(given)
        except Wrong:
            yield str(name), ()


def _kind(flow: Composition | Mapping[str, Any], name: str) -> str | None:
    if not isinstance(flow, Mapping):
        return flow[name].kind
    node = flow["nodes"].get(name)
    return next(iter(node), None) if isinstance(node, Mapping) else None


def _edge(name: str, port: Port) -> dict[str, Any]:
    return {"from": port.node, "to": name, "port": port.name, "output": port.output}


@dataclass(slots=True)
class _Drawing:
    """Parts of a flow, one below another."""

    places: dict[str, tuple[int, float]] = field(default_factory=dict)
    bends: dict[tuple[str, str], list[tuple[int, float]]] = field(default_factory=dict)
    width: int = 0
    height: float = 0

    def add(self, part: Layers) -> None:
        """One more part, below the others."""
        shift = self.height
        for name, (x, y) in part.places.items():
            self.places[name] = (x, y + shift)
        for edge, bends in part.bends.items():
            self.bends[edge] = [(x, y + shift) for x, y in bends]
        self.width = max(self.width, part.width)
        self.height = shift + part.height


def _drawn(inputs: Mapping[str, Any], edges: list[dict[str, Any]]) -> dict[str, Any]:
    pairs = list(dict.fromkeys((edge["from"], edge["to"]) for edge in edges))
    drawing = _Drawing()
    for names in _parts(inputs, pairs):
        here = set(names)
        drawing.add(arranged(names, [pair for pair in pairs if pair[0] in here]))
    for edge in edges:
        if bends := drawing.bends.get((edge["from"], edge["to"])):
            edge["bends"] = [{"x": x, "y": _short(y)} for x, y in bends]
    return {
        "width": drawing.width,
        "height": _short(drawing.height),
        "nodes": {
            name: {"x": drawing.places[name][0], "y": _short(drawing.places[name][1])}
            for name in inputs
        },
        "edges": edges,
    }


def _parts(names: Iterable[str], pairs: list[tuple[str, str]]) -> list[list[str]]:
    """Connected parts, each in the order of the file, by their first nodes."""
    beside: dict[str, list[str]] = {name: [] for name in names}
    for one, other in pairs:
        beside[one].append(other)
        beside[other].append(one)
    part: dict[str, int] = {}
    for name in beside:
        waiting = [] if name in part else [name]
        number = len(part) if waiting else 0
        while waiting:
            at = waiting.pop()
            if at not in part:
                part[at] = number
                waiting += beside[at]
    found: dict[int, list[str]] = {}
    for name in beside:
        found.setdefault(part[name], []).append(name)
    return list(found.values())


def _short(value: float) -> float:
    """A whole number as one."""
    return int(value) if value == int(value) else value
