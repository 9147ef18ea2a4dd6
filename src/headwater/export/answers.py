"""The graph of a workflow's answer: an entity, and those that it came from or that came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.export.graph import EVENT_TIME, JOB, TYPES, Derivations, Entities, Part
from headwater.export.names import Prefixes
from headwater.export.values import moments
from headwater.query.columns import TIME

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from headwater.export.choosing import Direction
    from headwater.export.graph import Generations, Run, Step
    from headwater.store.catalog import Sink, Source

_ROWS = 50_000
_ATTRIBUTES = (EVENT_TIME, JOB)


class AnswerGraph:
    """An entity and its answer, by the columns `id`, `kind`, `job` and `event_time`."""

    def __init__(self, entity: str, answer: pa.Table, direction: Direction) -> None:
        self._prefixes = Prefixes()
        self._asked = self._prefixes.qualified(entity)
        self._forward = direction == "forward"
        # Several jobs may lead to an entity: it is one all the same, and has the first's name.
        codes = answer["id"].combine_chunks().dictionary_encode().indices.to_numpy()
        rows = answer.take(pa.array(np.unique(codes, return_index=True)[1]))
        self._rows = rows.filter(pc.not_equal(rows["id"], entity)).combine_chunks()
        self._names = self._prefixes.all_qualified(self._rows["id"])

    @property
    def namespaces(self) -> Mapping[str, str]:
        """Headwater's own, and those of foreign names."""
        return self._prefixes.namespaces

    @property
    def default(self) -> str | None:
        """The namespace of names without a prefix, if there are any."""
        return self._prefixes.default

    @property
    def store(self) -> str:
        """None: what the answer names is of many places."""
        return ""

    def totals(self) -> tuple[int, int]:
        """How many entities there are, and how many derivations."""
        return self._rows.num_rows + 1, self._rows.num_rows

    def parts(self) -> list[Part]:
        """A part for each kind of entity, the one that was asked for among them."""
        return [Part(kind, _ATTRIBUTES) for kind in TYPES]

    def runs(self) -> list[Run]:
        """None: a dependency may span several jobs."""
        return []

    def datasets(self) -> list[Source | Sink]:
        """None."""
        return []

    def steps(self) -> Iterator[Step]:
        """None."""
        return iter(())

    def entities(self) -> Iterator[Entities]:
        """The entity that was asked for, then those of the answer, by kind."""
        nothing = pa.nulls(1, pa.string())
        yield Entities(Part("entity", _ATTRIBUTES), pa.array([self._asked]), (nothing, nothing))
        for part in self.parts():
            same = pc.equal(self._rows["kind"], part.kind).to_numpy()
            for chosen in _pieces(np.flatnonzero(same)):
                rows = self._rows.take(chosen)
                times = moments(rows["event_time"].combine_chunks().cast(TIME))
                jobs = rows["job"].combine_chunks().cast(pa.string())
                yield Entities(part, self._names.take(chosen), (times, jobs))

    def generations(self) -> Iterator[Generations]:
        """None: runs are not part of the answer."""
        return iter(())

    def derivations(self) -> Iterator[Derivations]:
        """The entity came from each of the answer's, or each of them from it."""
        for start in range(0, len(self._names), _ROWS):
            others = self._names.slice(start, _ROWS)
            asked = pa.repeat(pa.scalar(self._asked), len(others))
            both = (others, asked) if self._forward else (asked, others)
            yield Derivations(*both, None)


def _pieces(chosen: npt.NDArray[np.int64]) -> Iterator[pa.Array]:
    for start in range(0, len(chosen), _ROWS):
        yield pa.array(chosen[start : start + _ROWS])
