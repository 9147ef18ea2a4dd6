"""Rules about which edges there may be, by what they carry (Streamflow's Figure 39).

workflow → workflow (static), workflow → source or streaming node (the transition: a value, then
repeated for each event), source → streaming node, streaming node → streaming node or sink. Nodes
behind a cycle or an unknown input are passed over: what they carry is not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.compose.kinds import Join
from headwater.compose.violations import Violation, a

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.compose.graph import Edge, Graph
    from headwater.compose.labels import Labels


def streams_reach_sinks(graph: Graph, labels: Labels) -> Iterator[Violation]:
    """A source goes into a streaming node before a sink."""
    for name, node in graph.nodes.items():
        if node.kind != "sink":
            continue
        for edge in graph.into[name]:
            if graph.nodes[edge.source].kind == "source":
                text = (
                    f"{edge.source!r} is a source and goes straight into a sink; "
                    "put a filter, a map or a function between"
                )
                yield Violation("source-to-sink", text, name, edge.port.name)


def sources_take_statics(graph: Graph, labels: Labels) -> Iterator[Violation]:
    """No stream goes into a source."""
    for name, edge in _carried(graph, labels, static=False):
        if graph.nodes[name].kind == "source":
            text = (
                f"{edge.source!r} is a stream, and a source takes only static inputs; "
                f"read {edge.source!r} directly, or publish it by a sink and read that stream"
            )
            yield Violation("stream-into-source", text, name, edge.port.name)


def operators_read_streams(graph: Graph, labels: Labels) -> Iterator[Violation]:
    """A stream operator and a sink read at least one stream."""
    tainted = _tainted(graph)
    for name, node in graph.nodes.items():
        if node.promotable or node.kind == "source" or name in tainted or not graph.into[name]:
            continue
        if all(labels.at(edge).is_static for edge in graph.into[name]):
            edge = graph.into[name][0]
            text = (
                f"{edge.source!r} is computed once, and {a(node.kind)} needs a stream; "
                "read a source, or what follows one"
            )
            yield Violation("needs-stream", text, name, edge.port.name)


def statics_go_where_they_can(graph: Graph, labels: Labels) -> Iterator[Violation]:
    """A static input beside a stream is repeated for each event, where the node takes it."""
    for name, edge in _carried(graph, labels, static=True):
        node = graph.nodes[name]
        streams = any(not labels.at(e).is_static for e in graph.into[name] if e.source in labels.of)
        if not streams:
            continue
        if not node.statics:
            text = (
                f"{edge.source!r} is computed once, and {a(node.kind)} takes streams only; "
                "give it to a function, a service, a job, an sql or a join"
            )
            yield Violation("static-input", text, name, edge.port.name)
        elif isinstance(node, Join) and edge is graph.into[name][0]:
            text = f"{edge.source!r} is static: the stream comes first, then the table"
            yield Violation("static-input", text, name, edge.port.name)


def joins_have_policies(graph: Graph, labels: Labels) -> Iterator[Violation]:
    """Two streams are joined by a policy, a static table by columns."""
    tainted = _tainted(graph)
    for name, node in graph.nodes.items():
        if not isinstance(node, Join) or name in tainted or len(graph.into[name]) != 2:
            continue
        static = any(labels.at(edge).is_static for edge in graph.into[name])
        if static and node.policy is not None:
            text = f"policy {node.policy} is for two streams; a static table needs on or where only"
            yield Violation("policy", text, name)
        elif not static and node.policy is None:
            text = (
                "both inputs are streams: say which events are paired, "
                "policy: latest, last, window or value"
            )
            yield Violation("policy", text, name)


def static_stays_static(graph: Graph, labels: Labels) -> Iterator[Violation]:
    """What is declared to run once reads no stream."""
    for name, edge in _carried(graph, labels, static=False):
        if graph.nodes[name].runtime == "static":
            text = (
                f"{edge.source!r} is a stream, and this is declared static; "
                "remove runtime, so that it runs for each event"
            )
            yield Violation("static-reads-stream", text, name, edge.port.name)


def _carried(graph: Graph, labels: Labels, *, static: bool) -> Iterator[tuple[str, Edge]]:
    """Edges that carry a static value, or those that carry a stream."""
    tainted = _tainted(graph)
    for name, edges in graph.into.items():
        for edge in edges:
            known = edge.source in labels.of and edge.source not in tainted
            if known and labels.at(edge).is_static == static:
                yield name, edge


def _tainted(graph: Graph) -> set[str]:
    """Nodes of which it can't be said what they read."""
    found = set(graph.nodes) - set(graph.order)
    found |= {edge.target for edge in graph.unknown}
    for name in graph.order:
        if any(edge.source in found for edge in graph.into[name]):
            found.add(name)
    return found
