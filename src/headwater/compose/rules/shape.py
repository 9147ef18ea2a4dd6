"""Rules about the graph alone: nodes, ports, cycles, ends, names of streams and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.compose.kinds import Sink, Source, Sql
from headwater.compose.queries import query_of
from headwater.compose.violations import Violation, a, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.compose.graph import Graph
    from headwater.compose.labels import Labels
    from headwater.compose.node import Node


def known_inputs(graph: Graph, labels: Labels) -> Iterator[Violation]:
    """`from` names nodes that there are, and outputs that they have."""
    for edge in graph.unknown:
        near = nearest(edge.source, [name for name in graph.nodes if name != edge.target])
        text = f"there is no node {edge.source!r}{near}"
        yield Violation("unknown-node", text, edge.target, edge.port.name)
    for name, edges in graph.into.items():
        for edge in edges:
            output, source = edge.port.output, graph.nodes[edge.source]
            if output is not None and output not in source.outputs:
                text = f"{edge.source!r} is {a(source.kind)} and has no output {output!r}"
                hint = f"; read {edge.source!r}" + "".join(
                    f" or {edge.source}.{o}" for o in source.outputs
                )
                yield Violation("unknown-node", text + hint, name, edge.port.name)


def right_ports(graph: Graph, labels: Labels) -> Iterator[Violation]:
    """As many ports as the kind takes, none twice."""
    for name, node in graph.nodes.items():
        least, most = node.ports
        count = len(node.inputs)
        if count < least or (most is not None and count > most):
            takes = _range(least, most)
            text = f"{a(node.kind)} reads {takes}, and this reads {count}; {_remedy(node, most)}"
            yield Violation("ports", text, name, None if count < 2 else node.inputs[-1].name)
        seen: set[str] = set()
        for port in node.inputs:
            if port.name in seen:
                text = (
                    f"two ports are called {port.name!r}; name them, "
                    f"from: {{one: {port.target}, other: {port.target}}}"
                )
                yield Violation("ports", text, name, port.name)
            seen.add(port.name)


def _range(least: int, most: int | None) -> str:
    if most is None:
        return f"{least} nodes or more" if least != 1 else "one node or more"
    return "one node" if (least, most) == (1, 1) else f"{most} nodes"


def _remedy(node: Node, most: int | None) -> str:
    if most is not None and len(node.inputs) > most:
        return "merge or join the others first"
    return "name what it reads under from"


def acyclic(graph: Graph, labels: Labels) -> Iterator[Violation]:
    """No node depends on itself."""
    places = {name: at for at, name in enumerate(graph.nodes)}
    for found in graph.cycles():
        first = found.index(min(found, key=lambda name: places[name]))
        cycle = found[first:] + found[:first]
        path = " → ".join([*cycle, cycle[0]])
        text = f"{path} is a cycle, whose events would never end; take one of these edges away"
        port = next(e.port.name for e in graph.into[cycle[0]] if e.source == cycle[-1])
        yield Violation("cycle", text, cycle[0], port)


def sinks_end(graph: Graph, labels: Labels) -> Iterator[Violation]:
    """Nothing reads a sink."""
    for name, edges in graph.out.items():
        if graph.nodes[name].kind == "sink":
            for edge in edges:
                above = ", ".join(port.target for port in graph.nodes[name].inputs)
                text = f"{name!r} is a sink, which ends its path; read {above} instead"
                yield Violation("sink-feeds", text, edge.target, edge.port.name)


def sources_are_read(graph: Graph, labels: Labels) -> Iterator[Violation]:
    """A stream that nothing reads does nothing."""
    for name, edges in graph.out.items():
        if graph.nodes[name].kind == "source" and not edges:
            yield Violation("unread-source", "nothing reads this source; remove it", name)


def streams_are_distinct(graph: Graph, labels: Labels) -> Iterator[Violation]:
    """One sink publishes a stream, and the flow reads it by the node, not by its name."""
    read = {n.stream: name for name, n in graph.nodes.items() if isinstance(n, Source) and n.stream}
    seen: dict[str, str] = {}
    for name, node in graph.nodes.items():
        if not isinstance(node, Sink) or node.stream is None:
            continue
        if node.stream in seen:
            text = (
                f"{seen[node.stream]!r} publishes stream {node.stream!r} already; "
                "merge both before one sink, or give another name"
            )
            yield Violation("stream-name", text, name)
        seen.setdefault(node.stream, name)
        if node.stream in read:
            text = (
                f"source {read[node.stream]!r} reads stream {node.stream!r}, so what is published "
                "would come in again; give another name"
            )
            yield Violation("stream-name", text, name)


def tables_are_ports(graph: Graph, labels: Labels) -> Iterator[Violation]:
    """What a query reads is what the graph shows."""
    for name, node in graph.nodes.items():
        if not isinstance(node, Sql):
            continue
        ports = {port.name.casefold(): port.name for port in node.inputs}
        tables = {table.casefold(): table for table in query_of(node.query).tables}
        for folded, table in tables.items():
            if folded not in ports:
                near = nearest(table, ports.values())
                text = f"the query reads {table!r}, which is no port{near}"
                yield Violation("tables", text, name)
        for folded, port in ports.items():
            if folded not in tables and set(tables) <= set(ports):
                text = "the query does not read this port; take it out of from"
                yield Violation("tables", text, name, port)
