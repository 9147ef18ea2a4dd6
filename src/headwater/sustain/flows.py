"""A flow file as a network of queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.compose.graph import Graph
from headwater.compose.kinds import KINDS, Aggregate, Job, Join, Merge, Service, Source, Sql
from headwater.errors import UnknownName
from headwater.sustain.network import Outcome, Station, forecast
from headwater.sustain.units import seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from headwater.compose import Composition, Node, Plan
    from headwater.compose.graph import Edge

__all__ = ["forecast_of", "stations"]


def forecast_of(
    flow: Composition,
    *,
    rates: Mapping[str, float] | None = None,
    service: Mapping[str, float] | None = None,
    slots: Mapping[str, int] | None = None,
    cardinality: Mapping[str, float] | None = None,
) -> Outcome:
    """What each node of a flow comes to; what is given here goes before what the file says.

    `rates` are events a second: of sources, or of what any other node gives out. `service` is
    seconds for one task, `slots` tasks at the same time, `cardinality` events out for each in.
    """
    for what in (rates, service, slots, cardinality):
        for name in what or ():
            if name not in flow:
                raise UnknownName(f"flow {flow.name!r} has no node {name!r}; it has {_names(flow)}")
    made = list(stations(flow, service or {}, slots or {}, cardinality or {}))
    declared = {
        name: node.rate
        for name, node in flow.nodes.items()
        if isinstance(node, Source) and node.rate is not None
    }
    return forecast(made, {**declared, **(rates or {})})


def stations(
    flow: Composition,
    service: Mapping[str, float],
    slots: Mapping[str, int],
    cardinality: Mapping[str, float],
) -> Iterator[Station]:
    """The nodes that streams go through, each after those that it reads."""
    plan = flow.plan()
    graph = Graph(flow)
    sides: set[str] = set()
    for name in graph.order:
        node = flow[name]
        if plan.labels[name].is_static:
            continue
        if isinstance(node, Source):
            yield Station(name)
            continue
        ratio, exact = _cardinality(node, cardinality.get(name))
        takes = service.get(name, _takes(node))
        batch, tick = _tasks(node)
        inputs = []
        for edge in _driving(graph, plan, name):
            if edge.port.output is None:
                inputs.append(edge.source)
                continue
            # What fails is a part of what comes in there; how large a one is not known.
            side = f"{edge.source}.{edge.port.output}"
            if side not in sides:
                reads = tuple(each.source for each in _driving(graph, plan, edge.source))
                yield Station(side, reads, exact=False, shown=False)
            sides.add(side)
            inputs.append(side)
        yield Station(
            name,
            tuple(inputs),
            cardinality=ratio,
            exact=exact,
            pace=None if name in cardinality else _pace(node),
            service=takes,
            slots=slots.get(name, _slots(node)),
            batch=batch,
            tick=tick,
        )


def _cardinality(node: Node, given: float | None) -> tuple[float | None, bool]:
    if given is not None:
        return given, True
    known = node.known
    most = known.at_most
    return (None if most is None else float(most)), known.ratio is not None


def _driving(graph: Graph, plan: Plan, name: str) -> list[Edge]:
    """The inputs whose events make the node work."""
    node = graph.nodes[name]
    streams = [edge for edge in graph.into[name] if not plan.labels[edge.source].is_static]
    if isinstance(node, Join) and node.policy == "latest":
        # Beside the clock, events only wait to be looked up.
        return [edge for edge in streams if edge.port.name == node.clock_port]
    # Other nodes with several streams take an event of each together.
    return streams if isinstance(node, Merge | Join | Sql) else streams[:1]


def _takes(node: Node) -> float | None:
    given = getattr(node, "takes", None)
    return None if given is None else seconds(given)


def _slots(node: Node) -> int:
    match node:
        case Job():
            return node.slots
        case Service():
            return node.concurrency
        case _:
            return 1


def _tasks(node: Node) -> tuple[float, float | None]:
    """Events in a task, or tasks a second."""
    if not isinstance(node, Job) or isinstance(node.per, str):
        return 1.0, None
    if node.per.count is not None:
        return float(node.per.count), None
    return 1.0, 1 / seconds(node.per.time or "1 second")


def _pace(node: Node) -> float | None:
    """Events out a second at most, of windows of time that are not for each key."""
    if isinstance(node, Job):
        return _tasks(node)[1]
    if node.cardinality is not None or not isinstance(node, Aggregate) or node.by:
        return None
    window = node.window
    step = window.slide if isinstance(window.slide, str) else window.time
    return None if window.time is None or step is None else 1 / seconds(step)


def _names(flow: Composition) -> str:
    return ", ".join(name for name, node in flow.nodes.items() if node.kind in KINDS)
