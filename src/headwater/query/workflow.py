"""Backward and forward by entity: across foreign jobs and Headwater's own flows.

Jobs chain by names: an output of one is an input of another. `hw:<flow>/<source-or-sink>/<id>` is
a record or a result of a flow, so the way goes on through the flow's edges, and back into jobs.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from headwater.query import backward as flow_backward
from headwater.query import job_edges
from headwater.query.columns import TIME
from headwater.query.entities import (
    PREFIX,
    Own,
    by_place,
    ids_of,
    name_of,
    names_of,
    own,
    require_known,
    times,
)
from headwater.query.predicate import Selection
from headwater.store.catalog import Catalog, Sink, Source
from headwater.store.select import QueryFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from headwater.query.edges import Edges
    from headwater.query.job_edges import Direction, Job

T = TypeVar("T")

ANSWER = pa.schema(
    [("id", pa.string()), ("kind", pa.string()), ("job", pa.string()), ("event_time", TIME)]
)


def reached(edges: Edges, entity: str, direction: Direction, *, steps: bool = False) -> pa.Table:
    """The workflow's inputs that an entity depends on, or its outputs that depend on it.

    A row for each and each job (or flow) by which it was last reached: `id`, `kind`, `job`,
    `event_time`; and `functions` where that job tells them. With `steps`, the entities between
    jobs as well.
    """

    def ask() -> pa.Table:
        walk = Walk(edges, direction)
        walk.run(entity)
        return walk.answer(entity, steps=steps)

    return _patiently(ask)


def depends(edges: Edges, effect: str, cause: str) -> bool:
    """Whether an entity depends on another, by any way."""

    def ask() -> bool:
        walk = Walk(edges, "backward", aim=cause)
        walk.run(effect)
        if cause in walk.visited:
            return True
        require_known(edges.reader, edges.catalog, walk.held, cause)
        return False

    return _patiently(ask)


def _patiently(ask: Callable[[], T]) -> T:
    """Ask again if a job was finished meanwhile: its own tables are gone then."""
    for _ in range(2):
        with contextlib.suppress(QueryFailed):
            return ask()
    return ask()


@dataclass(frozen=True, slots=True)
class _Way:
    """How an entity was reached: by a job with some functions, or by a flow."""

    job: str
    functions: list[str] | None = None


@dataclass(slots=True)
class Walk:
    """A walk from one entity, hop by hop: each hop is a job or a flow."""

    edges: Edges
    direction: Direction
    aim: str | None = None
    """An entity that is noticed wherever it is, also within a job."""
    jobs: dict[int, Job] = field(init=False)
    visited: dict[str, list[_Way]] = field(default_factory=dict)
    """The entities that were reached, and how."""
    leads_on: set[str] = field(default_factory=set)
    """Those of them from which others were reached."""

    def __post_init__(self) -> None:
        self.jobs = job_edges.jobs(self.edges.reader)
        # An event of a stream may be of a version that was deployed since the store was opened.
        self.edges.catalog = Catalog.read(self.edges.reader.query)

    @property
    def held(self) -> list[job_edges.Held]:
        """The jobs whose edges can be followed."""
        return [job.held for job in self.jobs.values() if job.is_held]

    def run(self, entity: str) -> None:
        """Walk to the ends; raises `UnknownId` if nobody knows the entity."""
        seen, fresh = {entity}, [entity]
        while fresh:
            found = self._hop(fresh, first=fresh == [entity] and len(seen) == 1)
            if self.aim is not None and self.aim in self.visited:
                return
            fresh = [name for name in found if name not in seen]
            seen.update(fresh)
        if not self.visited:
            require_known(self.edges.reader, self.edges.catalog, self.held, entity)

    def answer(self, entity: str, *, steps: bool) -> pa.Table:
        """The ends of the walk, in order of their names; with `steps`, all on the way."""
        chosen = [
            (name, way)
            for name in sorted(self.visited)
            if name != entity and (steps or name not in self.leads_on)
            for way in sorted(self.visited[name], key=lambda way: way.job)
        ]
        candidates = {name: self._own(name) for name, _ in chosen}
        known = times(self.edges.reader, [one for found in candidates.values() for one in found])
        mine = {name: _present(found, known) for name, found in candidates.items()}
        columns = [
            pa.array([name for name, _ in chosen], pa.string()),
            pa.array([one.kind if (one := mine[name]) else "entity" for name, _ in chosen]),
            pa.array([way.job for _, way in chosen], pa.string()),
            pa.array(
                [
                    known.get((one.kind, one.place.no, one.id)) if (one := mine[name]) else None
                    for name, _ in chosen
                ],
                TIME,
            ),
        ]
        table = pa.table([c.cast(f.type) for c, f in zip(columns, ANSWER, strict=True)], ANSWER)
        if any(job.has_functions for job in self.jobs.values()):
            functions = pa.array([way.functions for _, way in chosen], pa.list_(pa.string()))
            table = table.append_column("functions", functions)
        return table

    def _hop(self, names: Sequence[str], *, first: bool) -> list[str]:
        """Go on from some entities; those that were reached."""
        return [*self._through_jobs(names, first=first), *self._through_flows(names)]

    def _through_jobs(self, names: Sequence[str], *, first: bool) -> list[str]:
        if not self.jobs:
            return []
        reader, ids = self.edges.reader, ids_of(names)
        links = job_edges.settled(reader, ids, self.direction)
        named = names_of(reader, {link.end for link in links}) if links else {}
        also = ids_of([self.aim]).tolist() if self.aim is not None else []
        # A finished job has settled all between its inputs and outputs.
        asked = [one for one in self.held if first or also or not one.job.finished]
        starts = job_edges.starts(reader, asked, ids, self.direction, anywhere=first)
        for number, known in starts.items():
            held = self.jobs[number].held
            more = held.reached(reader, known, self.direction, also)
            links += more
            named |= held.names_of(reader, {link.end for link in more} - named.keys())
        if self.aim is not None:
            named |= dict.fromkeys(also, self.aim)
        asked_names = dict(zip(ids.tolist(), names, strict=True))
        found = []
        for (start, end, job_no), functions in _united(links).items():
            # A job that is not known was begun since; one with a window may have let go of an
            # entity's further edges, so that it looks like an end, and has no name.
            if (job := self.jobs.get(job_no)) is not None and end in named:
                self._note(asked_names[start], named[end], _Way(job.name, job.named(functions)))
                found.append(named[end])
        return found

    def _through_flows(self, names: Sequence[str]) -> list[str]:
        found = []
        for place, ids in by_place(one for name in names for one in self._own(name)):
            if isinstance(place, Source):
                pairs = self._results(place, ids) if self.direction == "forward" else []
            else:
                pairs = self._records(place, ids) if self.direction == "backward" else []
            for number, name in pairs:
                self._note(name_of(place, number), name, _Way(place.flow))
                found.append(name)
        return found

    def _records(self, sink: Sink, ids: list[int]) -> list[tuple[int, str]]:
        selection = Selection.of(tuple(ids), None, None, None)
        rows = flow_backward.backward(
            self.edges, self.edges.catalog, sink, selection, columns=False, many=True
        )
        catalog = self.edges.catalog
        sources = {source.name: source for source in catalog.sources_of(sink)}
        return [
            (row["result_id"], name_of(sources[row["source"]], row["id"]))
            for row in rows.select(["result_id", "source", "id"]).to_pylist()
        ]

    def _results(self, source: Source, ids: list[int]) -> list[tuple[int, str]]:
        sinks = {sink.no: sink for sink in self.edges.catalog.sinks_of(source)}
        rows = self.edges.of_records(source, tuple(sinks.values()), np.unique(np.array(ids)))
        return [
            (row["source_id"], name_of(sinks[row["sink_no"]], row["result_id"]))
            for row in rows.select(["source_id", "sink_no", "result_id"]).to_pylist()
            if row["sink_no"] in sinks
        ]

    def _note(self, start: str, end: str, way: _Way) -> None:
        ways = self.visited.setdefault(end, [])
        self.leads_on.add(start)
        for known in ways:
            if known.job == way.job:
                if known.functions is not None and way.functions is not None:
                    known.functions.extend(f for f in way.functions if f not in known.functions)
                return
        ways.append(way)

    def _own(self, name: str) -> list[Own]:
        if not name.startswith(PREFIX):
            return []
        return own(self.edges.catalog, name)


def _present(found: Sequence[Own], known: Mapping[tuple[str, int, int], object]) -> Own | None:
    """Of what an entity may be, the one that the store has."""
    there = (one for one in found if (one.kind, one.place.no, one.id) in known)
    return next(there, found[0] if found else None)


def _united(links: Sequence[job_edges.Link]) -> dict[tuple[int, int, int], int]:
    """Each link once, with all its functions."""
    found: dict[tuple[int, int, int], int] = {}
    for link in links:
        key = (link.start, link.end, link.job)
        found[key] = found.get(key, 0) | (link.functions or 0)
    return found
