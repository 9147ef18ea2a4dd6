"""Provenance of small random jobs, and what depends on what in it: the oracle of `reduce`.

All of it is plain Python on names. A vertex is a pair of its kind and its name, as an activity and
an entity may be called the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from headwater.reduce.blocks import NO_TIME, Block, distinct, vertex_ids

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from random import Random

    from headwater.reduce.contraction import Reduced

Kind: TypeAlias = Literal["entity", "activity"]
Vertex: TypeAlias = tuple[Kind, str]
T = TypeVar("T")

FIELDS: Mapping[str, tuple[tuple[Kind, str], tuple[Kind, str]]] = {
    "used": (("activity", "activity"), ("entity", "entity")),
    "wasGeneratedBy": (("entity", "entity"), ("activity", "activity")),
    "wasDerivedFrom": (("entity", "generatedEntity"), ("entity", "usedEntity")),
    "hadMember": (("entity", "collection"), ("entity", "entity")),
}
"""For each type of edge, its effect and its cause: what kind each is, and its field in JSON."""

_START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Element:
    """One edge of a job's provenance, as the job tells it."""

    type: str
    source: str
    destination: str
    function: str | None = None
    execution: str | None = None
    node: str | None = None
    seconds: int | None = None
    """When it was told, since the job's start."""
    output: bool = False

    @property
    def edge(self) -> tuple[Vertex, Vertex]:
        """The effect and the cause."""
        (effect, _), (cause, _) = FIELDS[self.type]
        return (effect, self.source), (cause, self.destination)

    @property
    def micros(self) -> int:
        """When it was told, in µs since 1970."""
        if self.seconds is None:
            return NO_TIME
        return round(_START.timestamp() + self.seconds) * 1_000_000

    def to_json(self) -> dict[str, Any]:
        """The element as it stands in a stream."""
        (_, source), (_, destination) = FIELDS[self.type]
        told: dict[str, Any] = {
            "type": self.type,
            source: self.source,
            destination: self.destination,
        }
        for name in ("function", "execution", "node"):
            if (value := getattr(self, name)) is not None:
                told[name] = value
        if self.seconds is not None:
            told["time"] = (_START + timedelta(seconds=self.seconds)).isoformat()
        if self.output:
            told["output"] = True
        return told


def closure(edges: Iterable[tuple[T, T]]) -> dict[T, set[T]]:
    """All that each vertex depends on, by any number of edges; itself only if it is on a cycle."""
    below = defaultdict(set)
    for effect, cause in edges:
        below[effect].add(cause)
    reached = {}
    for vertex in below:
        found: set[T] = set()
        waiting = [vertex]
        while waiting:
            fresh = below.get(waiting.pop(), set()) - found
            found |= fresh
            waiting.extend(fresh)
        reached[vertex] = found
    return reached


def dependencies(elements: Iterable[Element], kept: Collection[str] = ()) -> set[tuple[str, str]]:
    """Each output of a job with each input that it depends on.

    An input is an entity that is no edge's source. An output is one that is no edge's destination,
    or that is kept, or that an element marks.

    >>> sorted(
    ...     dependencies(
    ...         [
    ...             Element("used", "map-1", "tweet"),
    ...             Element("wasGeneratedBy", "pair", "map-1"),
    ...             Element("wasDerivedFrom", "count", "pair"),
    ...         ]
    ...     )
    ... )
    [('count', 'tweet')]
    """
    told = list(elements)
    edges = {element.edge for element in told}
    marked = {*kept, *(element.source for element in told if element.output)}
    sources = {effect for effect, _ in edges}
    destinations = {cause for _, cause in edges}
    below = closure(edges)
    return {
        (name, cause)
        for (kind, name) in sources
        if kind == "entity" and ((kind, name) not in destinations or name in marked)
        for causes in (below[kind, name],)
        for (other, cause) in causes
        if other == "entity" and (other, cause) not in sources
    }


def vertex_id(vertex: Vertex) -> int:
    """The number by which blocks know a vertex."""
    kind, name = vertex
    return int(vertex_ids(pa.array([name]), kind)[0])


def block(elements: Sequence[Element], functions: bool = True) -> Block:
    """Elements as a block, in told order."""
    if not elements:
        return Block.empty()
    edges = [element.edge for element in elements]
    known: dict[Vertex, int] = {}
    kinds: tuple[Kind, ...] = ("entity", "activity")
    for kind in kinds:
        found = sorted({name for edge in edges for is_of, name in edge if is_of == kind})
        ids = vertex_ids(pa.array(found, pa.string()), kind).tolist()
        known |= {(kind, name): number for name, number in zip(found, ids, strict=True)}
    names = sorted((number, name) for (_, name), number in known.items())
    told = tuple(dict.fromkeys(e.function for e in elements if e.function)) if functions else ()
    bits = {name: 1 << bit for bit, name in enumerate(told)}
    kept = [known[element.edge[0]] for element in elements if element.output]
    return Block(
        np.array([known[effect] for effect, _ in edges]),
        np.array([known[cause] for _, cause in edges]),
        np.array([element.micros for element in elements]),
        np.array([bits.get(element.function or "", 0) for element in elements]),
        np.zeros(len(edges), bool),
        told,
        distinct([np.array(kept, np.int64)]),
        np.array([number for number, _ in names]),
        pa.array([name for _, name in names]),
        len(edges),
    )


def completed(parts: Sequence[Reduced]) -> set[tuple[str, str]]:
    """The dependencies of a job from its blocks' contractions alone: a plain global reducer.

    An eliminated vertex comes back where its dependencies would be cut: it was eliminated in two
    blocks, it is kept, or another block's edge goes to it (then its causes come back) or comes from
    it (then its effects do). What comes back draws further edges the same way only.
    """
    hot = {edge for part in parts for edge in _pairs(part.hot)}
    kept = {vertex for part in parts for vertex in part.hot.kept.tolist()}
    eliminated = Counter(v for part in parts for v in set(part.residue.vertex.tolist()))
    down, up = defaultdict(set), defaultdict(set)
    for part in parts:
        for edge in _pairs(part.residue.edges):
            down[edge[0]].add(edge)
            up[edge[1]].add(edge)
    cut = {vertex for vertex, times in eliminated.items() if times > 1 or vertex in kept}
    back = _drawn(cut | {cause for _, cause in hot}, eliminated, down, 1)
    back |= _drawn(cut | {effect for effect, _ in hot}, eliminated, up, 0)

    edges = hot | back
    below = closure(edges)
    causes = {cause for _, cause in edges}
    names = Block.joined([one for part in parts for one in (part.hot, part.residue.edges)])
    name = dict(zip(names.ids.tolist(), names.names.to_pylist(), strict=True))
    return {
        (name[output], name[cause])
        for output, reached in below.items()
        if not output & 1 and (output not in causes or output in kept)
        for cause in reached
        if not cause & 1 and cause not in below
    }


def _pairs(edges: Block) -> Iterable[tuple[int, int]]:
    return zip(edges.source.tolist(), edges.destination.tolist(), strict=True)


def _drawn(
    vertices: Iterable[int],
    eliminated: Collection[int],
    edges: Mapping[int, set[tuple[int, int]]],
    end: int,
) -> set[tuple[int, int]]:
    """Edges of eliminated vertices, and of those that they lead to in turn."""
    waiting, seen = [v for v in vertices if v in eliminated], set()
    drawn: set[tuple[int, int]] = set()
    while waiting:
        vertex = waiting.pop()
        if vertex not in seen:
            seen.add(vertex)
            drawn |= edges.get(vertex, set())
            waiting += [edge[end] for edge in edges.get(vertex, set()) if edge[end] in eliminated]
    return drawn


def disordered(
    elements: Sequence[T], percent: float, random: Random, within: int | None = None
) -> list[T]:
    """The elements with so many of them out of order: these change places among themselves.

    `within` bounds how many places an element moves, about; without it they go anywhere.
    """
    chosen = sorted(random.sample(range(len(elements)), round(len(elements) * percent / 100)))
    if within is None:
        moved = random.sample(chosen, len(chosen))
    else:
        moved = sorted(chosen, key=lambda place: place + random.uniform(0, within))
    told = list(elements)
    for place, other in zip(chosen, moved, strict=True):
        told[place] = elements[other]
    return told


def duplicated(elements: Sequence[T], percent: float, random: Random) -> list[T]:
    """The elements with so many of them told again, somewhere behind their first place."""
    again = random.sample(range(len(elements)), round(len(elements) * percent / 100))
    told = [(float(place), element) for place, element in enumerate(elements)]
    told += [(random.uniform(place, len(elements)), elements[place]) for place in again]
    return [element for _, element in sorted(told, key=lambda one: one[0])]


def groups(elements: Sequence[Element]) -> list[list[Element]]:
    """The elements as a collector groups them: what an execution used, then what it generated.

    A group stands where its last element stood: only then it can be sent.
    """
    last: dict[object, int] = {}
    members: dict[object, list[Element]] = defaultdict(list)
    for place, element in enumerate(elements):
        alone = element.execution is None
        key = place if alone else (element.execution, element.type == "used")
        members[key].append(element)
        last[key] = place
    return [members[key] for key in sorted(members, key=lambda key: last[key])]


def split(told: Iterable[Sequence[Element]], random: Random) -> list[list[Element]]:
    """Groups, of which those of two or more elements come as several messages."""
    parts = []
    for group in told:
        cut = random.randint(1, max(1, len(group) - 1))
        parts.extend([list(part) for part in (group[:cut], group[cut:]) if part])
    return parts


def messages(told: Iterable[Sequence[Element]]) -> list[dict[str, Any]]:
    """Groups as they stand in a stream: one line each, a single element as itself."""
    return [
        group[0].to_json()
        if len(group) == 1
        else {"group": [element.to_json() for element in group], "execution": group[0].execution}
        for group in told
    ]
