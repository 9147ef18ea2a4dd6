"""What is exported, as a stream: entities with their attributes, runs, and relations between them.

Writers of formats see only this. A graph can be gone through several times, as formats with
sections must, and never holds more than one piece of it in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from headwater.export.names import COLUMN, HW, local

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    import pyarrow as pa

    from headwater.store.catalog import Sink, Source

Output = bytes | memoryview
"""A piece of what a writer writes."""
TYPES: Mapping[str, str] = {"result": "Result", "record": "Record", "entity": "Entity"}
"""By kind of entity, the name of its type."""
AGENT = f"{HW}:headwater"
"""The name of the software that the runs are of."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """What is said of every entity of a part, where it is not null."""

    prefix: str
    name: str
    type: str

    @property
    def key(self) -> str:
        """The attribute's qualified name: an own column can't be taken for one of Headwater's."""
        return f"{self.prefix}:{local(self.name)}"


def own(name: str, type_: str) -> Attribute:
    """A column of the user's rows."""
    return Attribute(COLUMN, name, type_)


EVENT_TIME = Attribute(HW, "event_time", "xsd:dateTime")
JOB = Attribute(HW, "job", "xsd:string")


@dataclass(frozen=True, slots=True)
class Part:
    """Entities that have the same attributes: the results of a sink, the records of a source."""

    kind: str
    attributes: tuple[Attribute, ...]
    flow: str | None = None
    name: str | None = None

    @property
    def constants(self) -> dict[str, str]:
        """What is the same for all: the flow, and the sink or source."""
        if self.flow is None or self.name is None:
            return {}
        return {"flow": self.flow, "sink" if self.kind == "result" else "source": self.name}


@dataclass(frozen=True, slots=True)
class Entities:
    """Some entities of a part: their names, and the text of each attribute."""

    part: Part
    names: pa.Array
    texts: tuple[pa.Array, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """A streaming query of a flow: what made results."""

    query_id: str
    flow: str
    capture: str
    finished: bool
    first: datetime
    last: datetime
    """When its first and its latest batch were committed."""

    @property
    def name(self) -> str:
        """The run's name; it has a slash less than that of an entity."""
        return f"{HW}:run/{local(self.query_id)}"

    @property
    def plan(self) -> str:
        """The name of its flow."""
        return f"{HW}:flow/{local(self.flow)}"


@dataclass(frozen=True, slots=True)
class Generations:
    """Which run made a result, and when."""

    entities: pa.Array
    runs: pa.Array
    times: pa.Array


@dataclass(frozen=True, slots=True)
class Derivations:
    """What an entity came from; `runs` says in which run, where that is known."""

    effects: pa.Array
    causes: pa.Array
    runs: pa.Array | None


@dataclass(frozen=True, slots=True)
class Step:
    """What a batch of a run has in the graph."""

    run: Run
    batch: int
    committed_at: datetime
    watermark: datetime | None
    results: int
    edges: int
    records: int


class Graph(Protocol):
    """A graph to export."""

    @property
    def namespaces(self) -> Mapping[str, str]:
        """The namespaces of all names, by prefix."""

    @property
    def default(self) -> str | None:
        """The namespace of names without a prefix, if there are any."""

    @property
    def store(self) -> str:
        """The path of the store, where datasets are of one."""

    def totals(self) -> tuple[int, int]:
        """How many entities there are, and how many derivations."""

    def parts(self) -> Sequence[Part]:
        """The kinds of entities, in their order."""

    def runs(self) -> Sequence[Run]:
        """The runs that made results."""

    def datasets(self) -> Sequence[Source | Sink]:
        """The sources and sinks that the entities belong to."""

    def steps(self) -> Iterator[Step]:
        """What each batch has in the graph, in order."""

    def entities(self) -> Iterator[Entities]:
        """All entities, each once, part after part."""

    def generations(self) -> Iterator[Generations]:
        """Who made which result."""

    def derivations(self) -> Iterator[Derivations]:
        """What came from what."""
