"""Pieces: a plan's units as they are deployed, each with the streams it reads and writes.

A piece of operators or functions is one streaming query, a piece of jobs one queue. A source that
is not a named stream is a piece by itself, which copies what Spark reads into one: all else reads
named streams alone, so that it can be stopped, changed and begun again at any place of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.compose.graph import Graph
from headwater.compose.kinds import Function, Job, Sink, Source
from headwater.compose.planning import stream_of
from headwater.errors import FlowError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.compose.graph import Edge
    from headwater.compose.node import Node
    from headwater.compose.plan import Plan, Unit


ALERT = "-alert"
"""Behind a sink's name: what tells of the events that it publishes."""


@dataclass(frozen=True, slots=True)
class End:
    """What a node gives out (`radar`, or `lookup.failures`), and the stream it goes by."""

    node: str
    output: str | None
    stream: str

    @property
    def name(self) -> str:
        """As files write it."""
        return self.node if self.output is None else f"{self.node}.{self.output}"


@dataclass(frozen=True, slots=True)
class Piece:
    """A unit as it is deployed."""

    name: str
    """Of its first node that is not a source."""
    runtime: str
    """That of its unit, or `alerts`."""
    nodes: tuple[str, ...]
    """In an order in which inputs come first."""
    inputs: tuple[End, ...]
    outputs: tuple[End, ...]


def pieces(plan: Plan) -> tuple[Piece, ...]:
    """The pieces of a plan, those that make streams before those that read them."""
    graph = Graph(plan.composition)
    _require_pairs(graph, plan)
    found: list[Piece] = []
    for name, node in graph.nodes.items():
        if isinstance(node, Source) and node.stream is None:
            found.append(Piece(name, "operators", (name,), (), (_end(graph, name, None),)))
    for unit in plan.units:
        if unit.runtime == "jobs":
            found += _jobs(graph, plan, unit)
        elif unit.runtime != "static" and not unit.idle:
            found += _query(graph, plan, unit)
    for name, node in graph.nodes.items():
        if isinstance(node, Sink) and node.alert is not None:
            found.append(_alert(graph, plan, name, node))
    return tuple(found)


def _query(graph: Graph, plan: Plan, unit: Unit) -> Iterator[Piece]:
    place = {name: at for at, name in enumerate(graph.order)}
    nodes = sorted((n for n in unit.nodes if not _copied(graph, n)), key=place.__getitem__)
    own = [name for name in nodes if graph.nodes[name].kind != "source"]
    if all(_only_tells(graph.nodes[name]) for name in own):
        return
    inside = set(own)
    inputs = {
        _end(graph, edge.source, edge.port.output): None
        for name in own
        for edge in graph.into[name]
        if edge.source not in inside and not plan.labels[edge.source].is_static
    }
    outputs = [
        _end(graph, each.node, each.output)
        for each in plan.boundaries
        if each.stored and each.node in inside
    ]
    outputs += [_end(graph, name, None) for name in own if _only_tells(graph.nodes[name])]
    yield Piece(own[0], unit.runtime, tuple(own), tuple(inputs), tuple(outputs))


def _only_tells(node: Node) -> bool:
    return isinstance(node, Sink) and node.stream is None


def _alert(graph: Graph, plan: Plan, name: str, sink: Sink) -> Piece:
    """What tells of a sink's events: of those it reads, if they are in a stream anyway."""
    (unit,) = [each for each in plan.units if name in each.nodes]
    alone = all(_only_tells(graph.nodes[each]) for each in unit.nodes)
    if alone and sink.stream is None:
        (edge,) = graph.into[name]
        given = _end(graph, edge.source, edge.port.output)
        return Piece(name, "alerts", (name,), (given,), ())
    return Piece(f"{name}{ALERT}", "alerts", (f"{name}{ALERT}",), (_end(graph, name, None),), ())


def _copied(graph: Graph, name: str) -> bool:
    node = graph.nodes[name]
    return isinstance(node, Source) and node.stream is None


def _jobs(graph: Graph, plan: Plan, unit: Unit) -> Iterator[Piece]:
    """A piece for each job; the sinks that read it are streams that it publishes itself."""
    for name in (n for n in graph.order if n in unit.nodes and graph.nodes[n].kind != "sink"):
        if not isinstance(graph.nodes[name], Job | Function):
            raise FlowError(
                f"node {name!r} of flow {plan.composition.name!r}: a {graph.nodes[name].kind} "
                "can't be deployed with runtime: jobs; leave runtime out, or make it a job"
            )
        (edge,) = _streams_in(graph, name)
        outputs: dict[End, None] = {}
        sinks = []
        for each in graph.out[name]:
            target = graph.nodes[each.target]
            stream = stream_of(graph, name, each.port.output)
            published = target.stream if isinstance(target, Sink) else None
            if published is not None and plan.runtimes[each.target] == "jobs":
                stream = published
                sinks.append(each.target)
            outputs[End(name, each.port.output, stream)] = None
        if not outputs:
            outputs[_end(graph, name, None)] = None
        given = (_end(graph, edge.source, edge.port.output),)
        yield Piece(name, "jobs", (name, *sinks), given, tuple(outputs))


def _streams_in(graph: Graph, name: str) -> list[Edge]:
    return [edge for edge in graph.into[name] if not _is_static(graph, edge.source)]


def _is_static(graph: Graph, name: str) -> bool:
    node = graph.nodes[name]
    if isinstance(node, Source):
        return False
    return all(_is_static(graph, edge.source) for edge in graph.into[name])


def _end(graph: Graph, name: str, output: str | None) -> End:
    return End(name, output, stream_of(graph, name, output))


def _require_pairs(graph: Graph, plan: Plan) -> None:
    """Refuse a step of one stream that is given several: nothing says which events belong."""
    for name, node in graph.nodes.items():
        if plan.labels[name].is_static or node.kind not in ("function", "service", "job", "static"):
            continue
        streams = [e.port.target for e in graph.into[name] if not plan.labels[e.source].is_static]
        if len(streams) > 1:
            raise FlowError(
                f"node {name!r} of flow {plan.composition.name!r} reads {len(streams)} streams, "
                f"{' and '.join(map(repr, streams))}: join them first (policy latest, or window "
                f"on what they share), and read the join instead"
            )
