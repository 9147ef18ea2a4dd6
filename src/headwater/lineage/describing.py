"""What a flow reads and writes: datasets, their columns, and where those come from."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headwater.capture.decode import arrow_schema
from headwater.lineage import naming
from headwater.lineage.columns import ColumnLineage, column_lineage
from headwater.lineage.spec import fields

if TYPE_CHECKING:
    from headwater.flow.flow import Flow
    from headwater.flow.nodes import Sink, Source
    from headwater.lineage.naming import Dataset


@dataclass(frozen=True, slots=True)
class Parent:
    """What a run is a part of: the run of a deployed flow."""

    job: str
    run: str


@dataclass(frozen=True, slots=True)
class End:
    """A source or a sink, with the datasets that it reads or that have its results."""

    name: str
    datasets: tuple[Dataset, ...]
    fields: list[dict[str, Any]]
    ask: str
    """The command that asks from it: for the records of a result, or the results of a record."""
    lineage: ColumnLineage | None = None


@dataclass(frozen=True, slots=True)
class Description:
    """A flow as a run of it is told of."""

    flow: str
    job: str
    store: str
    streaming: bool
    spark: str
    sources: tuple[End, ...] = ()
    sinks: tuple[End, ...] = ()
    parent: Parent | None = None
    where: dict[str, tuple[Dataset, ...]] = field(default_factory=dict)
    """The datasets of each source."""


def describe(
    flow: Flow, store: str, *, job: str | None = None, parent: Parent | None = None
) -> Description:
    """Describe a flow whose results go to a store."""
    above = [n.step for sink in flow.sinks.values() for n in sink.upstream()]
    used = [source for name, source in flow.sources.items() if name in above]
    sources = tuple(_source(flow, source, store) for source in used)
    return Description(
        flow=flow.name,
        job=job or flow.name,
        store=store,
        streaming=any(source.streaming for source in used),
        spark=flow.spark.version,
        sources=sources,
        sinks=tuple(_sink(flow, sink, store) for sink in flow.sinks.values()),
        parent=parent,
        where={source.name: source.datasets for source in sources},
    )


def _source(flow: Flow, source: Source, store: str) -> End:
    known = {
        "format": source.format,
        "path": source.path,
        "options": dict(source.options),
        **flow.notes.get(source.name, {}),
    }
    return End(
        source.name,
        naming.of_source(store, flow.name, source.name, known),
        fields(arrow_schema(source.schema)),
        asking("forward", store, flow.name, source.name, "ID"),
    )


def _sink(flow: Flow, sink: Sink, store: str) -> End:
    known = {
        **(sink.write if isinstance(sink.write, dict) else {}),
        **flow.notes.get(sink.name, {}),
    }
    return End(
        sink.name,
        naming.of_sink(store, flow.name, sink.name, known),
        fields(arrow_schema(flow._plain.lower(sink).schema)),
        asking("backward", store, flow.name, sink.name, "RESULT_ID"),
        column_lineage(flow, sink),
    )


def asking(command: str, store: str, flow: str, name: str, id: str) -> str:
    """The command that asks for provenance.

    >>> asking("backward", "/my prov", "traffic", "stopped", "RESULT_ID")
    "headwater backward '/my prov' traffic/stopped RESULT_ID"
    """
    return f"headwater {command} {shlex.quote(store)} {shlex.quote(f'{flow}/{name}')} {id}"
