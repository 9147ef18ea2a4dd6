"""Joins that are missing: where labels differ, and what can be written there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.compose.frozen import Table
from headwater.compose.labels import Label, Labels, slower
from headwater.compose.plan import RequiredJoin
from headwater.compose.violations import a
from headwater.compose.writing import node_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.compose.graph import Graph


def required_joins(graph: Graph, labels: Labels) -> tuple[RequiredJoin, ...]:
    """A demand for each one-to-one node that reads several labels."""
    return tuple(_required(graph, labels, name, ports) for name, ports in labels.mixed.items())


def _required(graph: Graph, labels: Labels, name: str, ports: Mapping[str, Label]) -> RequiredJoin:
    node = graph.nodes[name]
    first, *others = ports
    second = next(port for port in others if ports[port] != ports[first])
    fast, slow, known = first, second, slower(graph, labels, ports[first], ports[second])
    if known == ports[first]:
        fast, slow = second, first
    one, other = node.port(fast).target, node.port(slow).target
    made = _free(f"{name}_input", graph)
    clocks = (node.port(fast).usual, node.port(slow).usual)
    choices = {
        "latest-of-slower": _join(made, one, other, policy="latest", clock=clocks[0]),
        "drop-to-slower": _join(made, other, one, policy="latest", clock=clocks[1]),
        "window": _join(made, one, other, policy="window", within="10 seconds"),
    }
    rates = f"{other!r} is the slower" if known else f"here {other!r} is taken for the slower"
    told = " or ".join(f"{policy} ({text})" for policy, text in choices.items())
    carried = " and ".join(f"{node.port(p).target!r} (label {ports[p]})" for p in (first, second))
    text = (
        f"{a(node.kind)} gives one event for each, and reads {carried}, whose rates differ "
        f"({rates}); join them first, by {told}, and read {made!r} instead"
    )
    return RequiredJoin(name, second, Table(ports), Table(choices), text)


def _join(made: str, one: str, other: str, **keys: Any) -> str:
    return node_yaml(made, {"join": {"from": [one, other], **keys}}).strip()


def _free(name: str, graph: Graph) -> str:
    number, free = 1, name
    while free in graph.nodes:
        number += 1
        free = f"{name}_{number}"
    return free
