"""Which columns and properties are valid, before anything runs: each with its rule and reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headwater.compose.kinds import Join, Merge, Source
from headwater.compose.types.examples import columns_of
from headwater.compose.types.facts import Fact, Known, Verdict
from headwater.compose.types.outputs import UNKNOWN, failures, output, struct
from headwater.compose.types.properties import judge
from headwater.compose.types.uses import uses
from headwater.compose.violations import Violation

if TYPE_CHECKING:
    from headwater.compose.graph import Edge, Graph
    from headwater.compose.labels import Labels
    from headwater.compose.node import Node

Evidence = Callable[[str], str | bytes | None]
"""Gives the last event of a named stream, if there is one."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A column or property at one place: where it is used or bound, and whether it is valid."""

    node: str
    key: str
    port: str | None
    name: str
    verdict: Verdict
    rule: str
    reason: str

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        names = ("node", "key", "port", "name", "verdict", "rule", "reason")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class Inferred:
    """Everything that was judged, and clashes of types between streams."""

    judged: tuple[Judged, ...]
    clashes: tuple[Violation, ...]
    known: dict[str, Known]

    def violations(self) -> Iterator[Violation]:
        """What is invalid; a use of an invalid property is told where that is bound."""
        yield from self.clashes
        bound = {each.reason for each in self.judged if each.key == "bind"}
        told: set[tuple[str, str]] = set()
        for each in self.judged:
            if each.verdict != "invalid" or (each.node, each.name) in told:
                continue
            told.add((each.node, each.name))
            if each.key == "bind":
                text = f"property {each.name!r}: {each.reason}; correct its path or its type"
                yield Violation("property", text, each.node)
            elif each.reason not in bound:
                text = f"{each.key} names {each.name!r}: {each.reason}"
                yield Violation("columns", text, each.node, each.port)


def infer(graph: Graph, labels: Labels, evidence: Evidence | None = None) -> Inferred:
    """Go through a graph, inputs first, and judge every name that is used or bound."""
    from headwater.compose.planning import stream_of

    known: dict[str, Known] = {}
    judged: list[Judged] = []
    clashes: list[Violation] = []
    for name in graph.order:
        node = graph.nodes[name]
        inputs = {
            edge.port.name: _failed(known, graph, edge.source)
            if edge.port.output == "failures"
            else known[edge.source]
            for edge in _streams_first(graph, labels, name)
        }
        told = output(name, node, inputs)
        asked = evidence is not None and (getattr(node, "bind", None) or not told.complete)
        event = evidence(stream_of(graph, name, None)) if evidence and asked else None
        told = _with_example(told, node, event)
        known[name] = told = _bound(told, node, event, judged)
        judged += _used(name, node, inputs, told)
        clashes += _clashes(name, node, inputs)
    return Inferred(tuple(judged), tuple(clashes), known)


def _streams_first(graph: Graph, labels: Labels, name: str) -> list[Edge]:
    """The edges into a node; only a join and a merge tell their sides by their order."""
    edges = graph.into[name]
    if isinstance(graph.nodes[name], Join | Merge):
        return edges
    return sorted(edges, key=lambda edge: labels.at(edge).is_static)


def _failed(known: dict[str, Known], graph: Graph, source: str) -> Known:
    above = next((known[edge.source] for edge in graph.into[source]), UNKNOWN)
    return failures(above, f"{source}.failures")


def _with_example(told: Known, node: Node, event: str | bytes | None) -> Known:
    """Columns that the last event has, where nothing else is known."""
    if told.complete or not isinstance(node, Source):
        return told
    seen = {c: Fact("valid", "last event", "the last event has it") for c in columns_of(event)}
    return replace(told, facts={**seen, **told.facts})


def _bound(told: Known, node: Node, event: str | bytes | None, judged: list[Judged]) -> Known:
    """The stream with the properties that are bound on it."""
    bind = getattr(node, "bind", None)
    if not bind:
        return told
    facts, paths = dict(told.facts), list(told.paths)
    for name, bound in bind.items():
        fact = judge(bound, replace(told, paths=tuple(paths)), struct(node), event)
        judged.append(Judged(told.name, "bind", None, name, fact.verdict, fact.rule, fact.reason))
        facts[name] = fact
        if fact.verdict == "valid" and fact.path is not None:
            paths.append(fact.path)
    return replace(told, facts=facts, paths=tuple(paths))


def _used(name: str, node: Node, inputs: dict[str, Known], own: Known) -> Iterator[Judged]:
    if isinstance(node, Source):
        # Its time and its id are columns of its own.
        for key, columns in (("event_time", [node.event_time]), ("id", node.id)):
            for column in columns:
                if column is not None:
                    yield _judged(name, key, None, column, own.look(column))
        return
    for use in uses(node, next(iter(inputs), None)):
        if use.wrong is not None:
            fact = Fact("unknown", "none", f"this can't be read here: {use.wrong}")
        elif use.port is not None:
            fact = inputs.get(use.port, UNKNOWN).look(use.column)
        else:
            fact = _any(use.column, inputs)
        yield _judged(name, use.key, use.port, use.column, fact)


def _any(column: str, inputs: dict[str, Known]) -> Fact:
    found = [known.look(column) for known in inputs.values()] or [UNKNOWN.look(column)]
    order = ("valid", "unknown", "invalid")
    return min(found, key=lambda fact: order.index(fact.verdict))


def _judged(node: str, key: str, port: str | None, name: str, fact: Fact) -> Judged:
    return Judged(node, key, port, name, fact.verdict, fact.rule, fact.reason)


def _clashes(name: str, node: Node, inputs: dict[str, Known]) -> Iterator[Violation]:
    """Columns of two inputs that don't go together."""
    if not isinstance(node, Merge | Join) or len(inputs) < 2:
        return
    (first, one), *others = inputs.items()
    for port, other in others:
        shared = [column for column in one.facts if other.get(column) is not None]
        if isinstance(node, Merge) and one.complete and other.complete:
            differ = {c.casefold() for c in one.facts} ^ {c.casefold() for c in other.facts}
            if differ:
                text = (
                    f"{one.name!r} and {other.name!r} differ in {', '.join(sorted(differ))}; "
                    "map them to the same columns first"
                )
                yield Violation("columns", text, name, port)
        for column in shared:
            types = [known.look(column).type for known in (one, other)]
            matters = isinstance(node, Merge) or column in node.on
            if matters and None not in types and types[0] != types[1]:
                text = f"{column!r} is {types[0]} in {first!r} and {types[1]} in {port!r}; cast one"
                yield Violation("columns", text, name, port)
