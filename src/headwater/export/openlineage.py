"""OpenLineage: what a streaming query read and wrote, as run events, one JSON object a line.

A query is one run: START, RUNNING for each batch, and COMPLETE once its flow is finished. Records
and results are not told of one by one; how many there were is in a facet of Headwater's own.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

import pyarrow as pa

from headwater import __version__
from headwater.store.catalog import Sink

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from headwater.export.graph import Graph, Output, Run, Step
    from headwater.store.catalog import Source

NAMESPACE = "headwater"
"""Of jobs, and of datasets as `<flow>/<source-or-sink>`."""
PRODUCER = f"urn:headwater:{__version__}"
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
    job: dict[str, Any] = {"namespace": NAMESPACE, "name": run.flow}
    if described:
        job["facets"] = {"jobType": _job_type()}
    told: dict[str, Any] = {"runId": run_id(run.query_id)}
    if step is not None:
        told["facets"] = {"headwater_progress": _progress(step)}
    return {
        "eventType": kind,
        "eventTime": _time(at),
        "producer": PRODUCER,
        "schemaURL": f"{SPEC}/RunEvent",
        "run": told,
        "job": job,
        "inputs": [_dataset(one, described) for one in mine if not isinstance(one, Sink)],
        "outputs": [_dataset(one, described) for one in mine if isinstance(one, Sink)],
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
        said["watermark"] = _time(step.watermark)
    return _facet(f"{SPEC}/RunFacet", **said)


def _job_type() -> dict[str, Any]:
    return _facet(
        f"{FACETS}/2-0-4/JobTypeJobFacet.json#/$defs/JobTypeJobFacet",
        processingType="STREAMING",
        integration="HEADWATER",
        jobType="FLOW",
    )


def _dataset(place: Source | Sink, described: bool) -> dict[str, Any]:
    told: dict[str, Any] = {"namespace": NAMESPACE, "name": f"{place.flow}/{place.name}"}
    if not described:
        return told
    schema = f"{FACETS}/1-2-0/SchemaDatasetFacet.json#/$defs/SchemaDatasetFacet"
    told["facets"] = {"schema": _facet(schema, fields=[_field(one) for one in place.schema])}
    if (location := _location(place.definition.get("path"))) is not None:
        symlinks = f"{FACETS}/1-0-1/SymlinksDatasetFacet.json#/$defs/SymlinksDatasetFacet"
        told["facets"]["symlinks"] = _facet(symlinks, identifiers=[location])
    return told


def _field(field: pa.Field) -> dict[str, Any]:
    if pa.types.is_struct(field.type):
        parts = [_field(part) for part in field.type]
        return {"name": field.name, "type": "struct", "fields": parts}
    return {"name": field.name, "type": str(field.type)}


def _location(path: str | None) -> dict[str, str] | None:
    """Where a source's files lie, by the names that others give such datasets.

    >>> _location("s3a://lake/reports/2025")
    {'namespace': 's3a://lake', 'name': 'reports/2025', 'type': 'LOCATION'}
    """
    if not path:
        return None
    parsed = urlparse(path)
    if parsed.netloc:
        namespace, name = f"{parsed.scheme}://{parsed.netloc}", parsed.path.lstrip("/")
    else:
        namespace, name = "file", parsed.path if parsed.scheme == "file" else path
    return {"namespace": namespace, "name": name, "type": "LOCATION"}


def _facet(schema: str, **said: Any) -> dict[str, Any]:
    return {"_producer": PRODUCER, "_schemaURL": schema, **said}


def _time(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def _line(event: dict[str, Any]) -> bytes:
    return json.dumps(event, ensure_ascii=False).encode() + b"\n"
