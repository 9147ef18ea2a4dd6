"""Paths: the ways from a job's outputs to its inputs, through a function, while all is held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.errors import HeadwaterError, UnknownId
from headwater.query.entities import ids_of
from headwater.store.catalog import unknown_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.query.job_edges import Held, Job
    from headwater.reduce.blocks import Bools, Ints
    from headwater.store.reader import Reader

LIMIT = 100
"""Paths that are listed unless more are asked for."""
_PATIENCE = 1_000_000
"""Vertices that are tried before the search is given up."""

PATHS = pa.schema(
    [
        ("path", pa.int64()),
        ("step", pa.int64()),
        ("name", pa.string()),
        ("kind", pa.string()),
        ("function", pa.string()),
    ]
)
NOTE = b"note"
"""The key of the answer's metadata that says that it was cut."""


def paths(
    reader: Reader,
    job: Job,
    through: str | None,
    output: str | None,
    input: str | None,
    limit: int,
) -> pa.Table:
    """The paths of a job, vertex by vertex: `path`, `step`, `name`, `kind`, `function`."""
    if job.in_lake:
        raise HeadwaterError(
            f"job {job.name!r} is in a lake, which has its dependencies only: paths need a store "
            "in a folder, and an open job or keep='full'"
        )
    if not job.is_held or job.strategy != "grouping":
        why = (
            "is finished, and only its dependencies are kept"
            if job.finished and job.strategy == "grouping"
            else f"is reduced with the strategy {job.strategy!r}, which forgets edges on the way"
        )
        raise HeadwaterError(
            f"job {job.name!r} {why}: paths need the strategy 'grouping', and an open job or "
            "keep='full'"
        )
    graph = _Graph.read(reader, job.held)
    if through is not None and through not in graph.functions:
        raise unknown_name("function", through, graph.functions)
    found, cut = graph.paths(through, graph.place(job, output), graph.place(job, input), limit)
    table = graph.table(reader, job.held, found)
    if cut:
        note = f"the first {len(found):,} paths; limit= (--limit) shows more"
        table = table.replace_schema_metadata({NOTE: note.encode()})
    return table


@dataclass(frozen=True, slots=True)
class _Graph:
    """The edges that were told, between vertices numbered from 0, in order of their sources."""

    ids: Ints
    source: Ints
    destination: Ints
    bits: Ints
    """The functions that were told with an edge."""
    label: Ints
    """One function of an edge, by its place in `functions`; -1 if it has none."""
    first: Ints
    """Where the edges of each vertex begin."""
    kept: Bools
    functions: tuple[str, ...]
    told: tuple[str, ...]
    """The functions by bit."""

    @classmethod
    def read(cls, reader: Reader, held: Held) -> _Graph:
        """All edges of a job that were told."""
        tables = held.tables
        edges = reader.query(
            "SELECT source, destination, bit_or(functions) AS functions "
            f"FROM {tables.edges} WHERE NOT derived GROUP BY source, destination"
        )
        ran = reader.query(
            f"SELECT execution, any_value(function) AS function FROM {tables.execution} "
            "WHERE function IS NOT NULL GROUP BY execution"
        )
        ends = [edges["source"].to_numpy(), edges["destination"].to_numpy()]
        ids, codes = np.unique(np.concatenate(ends), return_inverse=True)
        source, destination = codes[: len(ends[0])], codes[len(ends[0]) :]
        order = np.lexsort((destination, source))
        source, destination = source[order], destination[order]
        names = sorted({*held.job.functions, *ran["function"].to_pylist()})
        bits = edges["functions"].to_numpy()[order]
        label = np.full(len(bits), -1)
        for bit, name in reversed(list(enumerate(held.job.functions))):
            label[bits >> bit & 1 == 1] = names.index(name)
        of_activity = np.full(len(ids), -1)
        at = np.searchsorted(ids, ran["execution"].to_numpy())
        for place, execution, function in zip(
            at.tolist(), ran["execution"].to_pylist(), ran["function"].to_pylist(), strict=True
        ):
            if place < len(ids) and ids[place] == execution:
                of_activity[place] = names.index(function)
        for end in (source, destination):
            known = (label < 0) & (of_activity[end] >= 0)
            label[known] = of_activity[end[known]]
        kept = reader.query(f"SELECT id FROM {tables.kept}")["id"].to_numpy()
        return cls(
            ids,
            source,
            destination,
            bits,
            label,
            np.searchsorted(source, np.arange(len(ids) + 1)),
            np.isin(ids, kept),
            tuple(names),
            held.job.functions,
        )

    def place(self, job: Job, name: str | None) -> int | None:
        """The number of an entity."""
        if name is None:
            return None
        at = np.flatnonzero(self.ids == ids_of([name])[0])
        if not len(at):
            raise UnknownId(f"job {job.name!r} has no entity {name!r}")
        return int(at[0])

    def paths(
        self, through: str | None, output: int | None, input: int | None, limit: int
    ) -> tuple[list[list[int]], bool]:
        """Up to `limit` paths as lists of vertices, and whether there may be more."""
        count = len(self.ids)
        entity = (self.ids & 1) == 0
        has_in = np.bincount(self.destination, minlength=count) > 0
        has_out = np.bincount(self.source, minlength=count) > 0
        starts = entity & (~has_in | self.kept) & has_out
        ends = entity & ~has_out
        if output is not None:
            starts = np.arange(count) == output
        if input is not None:
            ends = np.arange(count) == input
        wanted = np.ones(len(self.source), bool)
        if through is not None:
            wanted = self.label == self.functions.index(through)
            if through in self.told:
                wanted |= self.bits >> self.told.index(through) & 1 == 1
        # Only where an end, and before that the function, can still be reached.
        down = self._leading_to(ends)
        right = wanted & (down[self.destination] | ends[self.destination])
        up = self._leading_to(np.isin(np.arange(count), self.source[right]))
        up[self.source[right]] = True
        found: list[list[int]] = []
        for path in self._searched(np.flatnonzero(starts & up), up, down | ends, ends, right):
            if path is None or len(found) == limit:
                return found, True
            found.append(path)
        return found, False

    def _leading_to(self, ends: Bools) -> Bools:
        """The vertices from which some of the given can be reached by one edge or more."""
        order = np.argsort(self.destination, kind="stable")
        first = np.searchsorted(self.destination[order], np.arange(len(self.ids) + 1))
        reached = np.zeros(len(self.ids), bool)
        fresh = np.flatnonzero(ends)
        while len(fresh):
            sizes = first[fresh + 1] - first[fresh]
            starts = np.repeat(first[fresh] - np.cumsum(sizes) + sizes, sizes)
            above = np.unique(self.source[order[starts + np.arange(len(starts))]])
            fresh = above[~reached[above]]
            reached[fresh] = True
        return reached

    def _searched(
        self, starts: Ints, up: Bools, down: Bools, ends: Bools, wanted: Bools
    ) -> Iterator[list[int] | None]:
        """Paths, depth first; no vertex comes twice on one. None if it takes too long."""
        tried = 0
        for start in starts.tolist():
            path, on_path = [start], {start}
            # For each vertex of the path: its next edge, and whether the function was met before.
            waiting = [(int(self.first[start]), False)]
            while path:
                at, met = waiting.pop()
                vertex = path[-1]
                if at == self.first[vertex + 1]:
                    on_path.discard(path.pop())
                    continue
                waiting.append((at + 1, met))
                below = int(self.destination[at])
                has = met or bool(wanted[at])
                if below in on_path or not (down[below] if has else up[below]):
                    continue
                tried += 1
                if tried > _PATIENCE:
                    yield None
                    return
                if has and ends[below]:
                    yield [*path, below]
                path.append(below)
                on_path.add(below)
                waiting.append((int(self.first[below]), has))

    def table(self, reader: Reader, held: Held, found: list[list[int]]) -> pa.Table:
        """Paths as a table; a vertex whose name was not kept is told by its id."""
        vertices = sorted({vertex for path in found for vertex in path})
        names = held.names_of(reader, self.ids[vertices].tolist())
        rows = []
        for place, path in enumerate(found, 1):
            for step, vertex in enumerate(path, 1):
                number = int(self.ids[vertex])
                label = self._label(vertex, path[step] if step < len(path) else None)
                rows.append(
                    {
                        "path": place,
                        "step": step,
                        "name": names.get(number, f"#{number}"),
                        "kind": "activity" if number & 1 else "entity",
                        "function": self.functions[label] if label >= 0 else None,
                    }
                )
        return pa.Table.from_pylist(rows, PATHS)

    def _label(self, vertex: int, below: int | None) -> int:
        """The function that ran at a vertex: an activity's, or that of a derivation onwards."""
        if below is None or (self.ids[vertex] & 1 == 0 and self.ids[below] & 1):
            return -1
        start, stop = self.first[vertex], self.first[vertex + 1]
        return int(self.label[start + np.searchsorted(self.destination[start:stop], below)])
