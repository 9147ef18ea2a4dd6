"""The compiler: from a composition to its plan, in time linear in nodes and edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.compose.frozen import Table
from headwater.compose.graph import Graph
from headwater.compose.joins import required_joins
from headwater.compose.kinds import Sink, Source
from headwater.compose.labels import Label, Labels, label
from headwater.compose.partitions import partition
from headwater.compose.plan import Boundary, Plan, SubFlow, Unit
from headwater.compose.rules import violations
from headwater.compose.violations import CompositionError

if TYPE_CHECKING:
    from headwater.compose.composition import Composition
    from headwater.compose.node import Runtime


def plan(composition: Composition) -> Plan:
    """Compile; raises `CompositionError` for rules broken, not for joins that are missing."""
    graph = Graph(composition)
    labels = label(graph)
    found = violations(graph, labels)
    if found:
        raise CompositionError(found)
    return compiled(graph, labels)


def deployable(composition: Composition) -> Plan:
    """Compile what is to be deployed: joins that are missing are errors, too."""
    made = plan(composition)
    if made.joins:
        raise CompositionError(map(composition.origin.of, (j.violation() for j in made.joins)))
    return made


def compiled(graph: Graph, labels: Labels) -> Plan:
    """Sub-flows, units and streams of a labelled graph."""
    runtimes = _runtimes(graph, labels)
    edges = [(edge.source, edge.target) for name in graph.order for edge in graph.into[name]]
    of = labels.of

    def alike(one: str, other: str) -> bool:
        return of[one] == of[other] and runtimes[one] == runtimes[other]

    subflows = tuple(
        SubFlow(number, of[nodes[0]], runtimes[nodes[0]], tuple(nodes))
        for number, nodes in enumerate(partition(graph.order, edges, alike), 1)
    )
    units = _units(graph, subflows, edges)
    return Plan(
        composition=graph.composition,
        labels=Table({name: of[name] for name in graph.nodes}),
        cardinalities=Table(
            {
                name: node.known
                for name, node in graph.nodes.items()
                if not of[name].is_static and node.kind not in ("source", "sink")
            }
        ),
        runtimes=Table({name: runtimes[name] for name in graph.nodes}),
        promoted=tuple(
            name
            for name, node in graph.nodes.items()
            if node.kind == "static" and not of[name].is_static
        ),
        subflows=subflows,
        units=units,
        boundaries=tuple(_boundaries(graph, labels, subflows, units)),
        joins=required_joins(graph, labels),
    )


def _runtimes(graph: Graph, labels: Labels) -> dict[str, Runtime]:
    """Where each node runs: operators natively, functions in Python, jobs in their queue."""
    chosen: dict[str, Runtime] = {}
    for name in graph.order:
        node = graph.nodes[name]
        if labels.of[name].is_static:
            chosen[name] = "static"
        elif isinstance(node, Sink):
            # A stream is published by what makes it; an alert calls the world outside.
            makers = [chosen[edge.source] for edge in graph.into[name]]
            chosen[name] = "functions" if node.alert is not None else makers[0]
        else:
            chosen[name] = node.runtime or node.runtimes[0]
    return chosen


def _units(
    graph: Graph, subflows: tuple[SubFlow, ...], edges: list[tuple[str, str]]
) -> tuple[Unit, ...]:
    number = {name: each.number for each in subflows for name in each.nodes}
    between = list({(number[a], number[b]): None for a, b in edges if number[a] != number[b]})
    runtime = {each.number: each.runtime for each in subflows}

    def reducible(one: int, other: int) -> bool:
        return runtime[one] == runtime[other] == "operators"

    order = _in_order([each.number for each in subflows], between)
    nodes = {each.number: each.nodes for each in subflows}
    return tuple(
        _unit(graph, at, runtime[group[0]], group, [n for each in group for n in nodes[each]])
        for at, group in enumerate(partition(order, between, reducible), 1)
    )


def _unit(graph: Graph, number: int, runtime: Runtime, group: list[int], nodes: list[str]) -> Unit:
    given = (graph.nodes[name] for name in nodes)
    idle = all(isinstance(node, Source) and node.stream is not None for node in given)
    return Unit(number, runtime, tuple(group), tuple(nodes), idle)


def _in_order(numbers: list[int], between: list[tuple[int, int]]) -> list[int]:
    """Sub-flows after those that they read; there is no cycle among them."""
    waiting = dict.fromkeys(numbers, 0)
    below: dict[int, list[int]] = {}
    for one, other in between:
        waiting[other] += 1
        below.setdefault(one, []).append(other)
    order = [number for number in numbers if not waiting[number]]
    for number in order:
        for other in below.get(number, ()):
            waiting[other] -= 1
            if not waiting[other]:
                order.append(other)
    return order


def _boundaries(
    graph: Graph, labels: Labels, subflows: tuple[SubFlow, ...], units: tuple[Unit, ...]
) -> list[Boundary]:
    number = {name: each.number for each in subflows for name in each.nodes}
    unit = {name: each.number for each in units for name in each.nodes}
    found = []
    for name in graph.order:
        node = graph.nodes[name]
        outputs: dict[str | None, list[str]] = {None: []}
        label_of: dict[str | None, Label] = {None: labels.of[name]}
        for edge in graph.out[name]:
            outputs.setdefault(edge.port.output, []).append(edge.target)
            label_of[edge.port.output] = labels.at(edge)
        for output, targets in outputs.items():
            ends = [number[target] for target in targets if number[target] != number[name]]
            published = isinstance(node, Sink) and node.stream is not None
            read_by_none = not graph.out[name] and not isinstance(node, Sink)
            if not ends and not published and not (read_by_none and output is None):
                continue
            leaves = any(unit[target] != unit[name] for target in targets)
            found.append(
                Boundary(
                    stream=stream_of(graph, name, output),
                    node=name,
                    output=output,
                    label=label_of[output],
                    start=number[name],
                    ends=tuple(dict.fromkeys(ends)),
                    stored=leaves or published or read_by_none,
                )
            )
    return found


def stream_of(graph: Graph, name: str, output: str | None) -> str:
    """The name of the stream that a node's output is in, if it is in one."""
    node = graph.nodes[name]
    if isinstance(node, Source | Sink) and node.stream is not None:
        return node.stream
    base = f"{graph.composition.name}.{name}"
    return base if output is None else f"{base}.{output}"
