"""OpenLineage: what a streaming query read and wrote, as run events, one JSON object a line.

A query is one run: START, RUNNING for each batch, and COMPLETE once its flow is finished. Records
and results are not told of one by one; how many there were is in a facet of Headwater's own.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from headwater.lineage.naming import of_sink, of_source
from headwater.lineage.spec import PRODUCER, PROGRESS, fields, jobs, moment, own_schema
from headwater.store.catalog import Sink

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from headwater.export.graph import Graph, Output, Run, Step
    from headwater.store.catalog import Source

SPEC = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs"
FACETS = "https://openlineage.io/spec/facets"


def write(graph: Graph) -> Iterator[Output]:
    """The events of all runs in the order of their batches; ends come last."""
    begun: dict[str, Run] = {}
    for step in graph.steps():
        run = step.run
        if run.query_id not in begun:
            begun[run.query_id] = run
            yield _line(_event("START", run.first, run, graph))
        yield _line(_event("RUNNING", step.committed_at, run, graph, step))
    for run in begun.values():
        if run.finished:
            yield _line(_event("COMPLETE", run.last, run, graph))


def run_id(query_id: str) -> str:
    """The id of a query's run, the same in every export.

    >>> run_id("q")
    'ffe026da-9bd2-571c-97e0-7b5c01c50516'
    """
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"hw:run/{query_id}"))


def _event(
    kind: str, at: datetime, run: Run, graph: Graph, step: Step | None = None
) -> dict[str, Any]:
    # What does not change is told once, when the run starts.
    described = kind == "START"
    mine = [place for place in graph.datasets() if place.flow == run.flow]
    job: dict[str, Any] = {"namespace": jobs(), "name": run.flow}
    if described:
        job["facets"] = {"jobType": _job_type()}
    told: dict[str, Any] = {"runId": run_id(run.query_id)}
    if step is not None:
        told["facets"] = {PROGRESS: _progress(step)}
    return {
        "eventType": kind,
        "eventTime": moment(at),
        "producer": PRODUCER,
        "schemaURL": f"{SPEC}/RunEvent",
        "run": told,
        "job": job,
        "inputs": _datasets(graph, [s for s in mine if not isinstance(s, Sink)], described),
        "outputs": _datasets(graph, [s for s in mine if isinstance(s, Sink)], described),
    }


def _progress(step: Step) -> dict[str, Any]:
    """Headwater's facet: what of a batch is exported, and its watermark."""
    said: dict[str, Any] = {
        "batch": step.batch,
        "results": step.results,
        "edges": step.edges,
        "records": step.records,
    }
    if step.watermark is not None:
        said["watermark"] = moment(step.watermark)
    return _facet(own_schema("ProgressRunFacet"), **said)


def _job_type() -> dict[str, Any]:
    return _facet(
        f"{FACETS}/2-0-4/JobTypeJobFacet.json#/$defs/JobTypeJobFacet",
        processingType="STREAMING",
        integration="HEADWATER",
        jobType="FLOW",
    )


def _datasets(
    graph: Graph, places: Sequence[Source | Sink], described: bool
) -> list[dict[str, Any]]:
    """The datasets of sources or sinks."""
    schema, found = f"{FACETS}/1-2-0/SchemaDatasetFacet.json#/$defs/SchemaDatasetFacet", []
    for place in places:
        named = of_sink if isinstance(place, Sink) else of_source
        for dataset in named(graph.store, place.flow, place.name, place.definition):
            told: dict[str, Any] = asdict(dataset)
            if described:
                told["facets"] = {"schema": _facet(schema, fields=fields(place.schema))}
            found.append(told)
    return found


def _facet(schema: str, **said: Any) -> dict[str, Any]:
    return {"_producer": PRODUCER, "_schemaURL": schema, **said}


def _line(event: dict[str, Any]) -> bytes:
    return json.dumps(event, ensure_ascii=False).encode() + b"\n"
