"""The sources, sinks and flows that a store knows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from headwater.errors import UnknownName
from headwater.spelling import guess

Query = Callable[[str], pa.Table]

LAZY = ("ancestors", "intervals")
"""The capture modes whose sets are found by a replay."""


@dataclass(frozen=True, slots=True)
class Registered:
    """What a flow has registered: its number in the store, definition and own columns."""

    no: int
    flow: str
    name: str
    definition: Mapping[str, Any]
    schema: pa.Schema

    @property
    def qualified(self) -> str:
        """Its name with its flow's, which no other one has."""
        return f"{self.flow}/{self.name}"

    @property
    def streams(self) -> tuple[str, ...]:
        """The named streams that a source reads, or that a sink's results are published in."""
        return tuple(self.definition.get("streams", ()))

    @property
    def is_step(self) -> bool:
        """Whether its rows are those of a step: a sink captured in terms of it, or a live graph."""
        return bool(self.definition.get("kind") == "step")


@dataclass(frozen=True, slots=True)
class Source(Registered):
    """A registered source."""

    @property
    def kept(self) -> bool:
        """Whether the store has a table of this source's records."""
        return bool(self.definition.get("keep", "none") != "none")

    @property
    def complete(self) -> bool:
        """Whether that table has every record that the source delivered."""
        return bool(self.definition.get("keep", "none") == "all")

    @property
    def is_stream(self) -> bool:
        """Whether more records may come."""
        return bool(self.definition.get("kind", "stream") == "stream")

    @property
    def id(self) -> Mapping[str, Any]:
        """How an id is made: `kind`, `columns`, `types`."""
        given: Mapping[str, Any] = self.definition.get("id") or {"kind": "column", "columns": []}
        return given

    @property
    def id_columns(self) -> list[str]:
        """The columns that an id is made from: of a content id, all."""
        columns = list(self.id.get("columns") or ())
        return columns or list(self.schema.names if self.id["kind"] == "content" else ())

    @property
    def id_types(self) -> list[str]:
        """The Spark types of these columns."""
        if types := list(self.id.get("types") or ()):
            return types
        fields = (self.definition.get("schema_json") or {}).get("fields", ())
        known = {field["name"]: field["type"] for field in fields}
        return [str(known.get(name, "unknown")) for name in self.id_columns]


@dataclass(frozen=True, slots=True)
class Sink(Registered):
    """A registered sink."""

    @property
    def capture(self) -> str:
        """How the provenance of its results is captured."""
        return str(self.definition.get("capture", "eager"))

    @property
    def is_lazy(self) -> bool:
        """Whether its sets are found by a replay when they are asked for."""
        return self.capture in LAZY and not self.resolved

    @property
    def is_mapreduce(self) -> bool:
        """Whether its sets are found by mapping files again."""
        return bool(self.definition.get("mapreduce", False))

    @property
    def resolved(self) -> bool:
        """Whether its sets were found by a replay as its results came, and stored."""
        return bool(self.definition.get("resolved", False))

    def reads(self, source: Source) -> bool:
        """Whether a result of this sink may stem from `source`."""
        names = self.definition.get("sources")
        return source.flow == self.flow and (names is None or source.name in names)


Named = TypeVar("Named", Source, Sink)


@dataclass(frozen=True, slots=True)
class Catalog:
    """Everything registered in a store."""

    sources: tuple[Source, ...]
    sinks: tuple[Sink, ...]
    flows: Mapping[str, str]  # query id -> flow

    @classmethod
    def read(cls, query: Query) -> Catalog:
        """The catalog as it is now."""
        sources = query("SELECT source_no, flow, name, definition, arrow FROM sources ORDER BY 1")
        sinks = query("SELECT sink_no, flow, name, definition, arrow FROM sinks ORDER BY 1")
        flows = query("SELECT query_id, flow FROM flows")
        return cls(
            tuple(Source(*_entry(row)) for row in sources.to_pylist()),
            tuple(Sink(*_entry(row)) for row in sinks.to_pylist()),
            {row["query_id"]: row["flow"] for row in flows.to_pylist()},
        )

    def source(self, name: str) -> Source:
        """The source called `name`, or `flow/name` where several flows have one."""
        return _named("source", self.sources, name)

    def sink(self, name: str) -> Sink:
        """The sink called `name`, or `flow/name` where several flows have one."""
        return _named("sink", self.sinks, name)

    def sources_of(self, sink: Sink) -> tuple[Source, ...]:
        """The sources that a result of `sink` may stem from."""
        return tuple(source for source in self.sources if sink.reads(source))

    def sinks_of(self, source: Source) -> tuple[Sink, ...]:
        """The sinks that a record of `source` may reach."""
        return tuple(sink for sink in self.sinks if sink.reads(source) and not sink.is_step)


def _entry(row: Mapping[str, Any]) -> tuple[int, str, str, Mapping[str, Any], pa.Schema]:
    no, flow, name, definition, arrow = row.values()
    return no, flow, name, json.loads(definition), pa.ipc.read_schema(pa.py_buffer(arrow))


def _named(kind: str, entries: Iterable[Named], name: str) -> Named:
    entries = tuple(entries)
    found = [entry for entry in entries if name in (entry.name, entry.qualified)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(entry.qualified for entry in found)
        raise UnknownName(f"several flows have a {kind} {name!r}; say which: {names}")
    raise unknown_name(kind, name, [entry.name for entry in entries])


def unknown_name(kind: str, name: object, known: Iterable[str]) -> UnknownName:
    """An error that lists the known names and guesses which was meant."""
    known = sorted(set(known))
    if not known:
        return UnknownName(f"no {kind} {name!r}: the store has no {kind} yet")
    meant = guess(name, known, before="; ")
    return UnknownName(f"no {kind} {name!r}; the store has: {', '.join(known)}{meant}")
