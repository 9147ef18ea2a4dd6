"""What the store is told about a flow: its definition, sources and sinks."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from headwater.capture.decode import arrow_schema
from headwater.flow import render
from headwater.flow.nodes import Source
from headwater.store.batch import FlowRegistration, SinkRegistration, SourceRegistration

if TYPE_CHECKING:
    from headwater.flow.flow import Flow
    from headwater.lowering.outputs import Outputs


def registration(
    flow: Flow, outputs: Outputs, capture: str, query_id: str, checkpoint: str, fingerprint: str
) -> FlowRegistration:
    """The flow as the store keeps it."""
    above: dict[str, list[str]] = {
        sink.name: [n.step for n in sink.upstream() if isinstance(n, Source)]
        for sink in flow.sinks.values()
    }
    used = {source for sources in above.values() for source in sources}
    return FlowRegistration(
        flow=flow.name,
        capture=capture,
        query_id=query_id,
        checkpoint=checkpoint,
        fingerprint=fingerprint,
        definition={"steps": [asdict(step) for step in render.model(flow.sinks.values())]},
        sources=tuple(
            SourceRegistration(name, _source(source), arrow_schema(source.schema))
            for name, source in flow.sources.items()
            if name in used
        ),
        sinks=tuple(
            SinkRegistration(
                part.name,
                {
                    "name": part.name,
                    "schema": part.schema.simpleString(),
                    "schema_json": part.schema.jsonValue(),
                    "sources": above[part.name],
                },
                arrow_schema(part.schema),
            )
            for part in outputs.parts
            if part.kind == "results"
        ),
    )


def _source(source: Source) -> dict[str, Any]:
    return {
        "name": source.name,
        "kind": "stream" if source.streaming else "batch",
        "format": source.format,
        "path": source.path,
        "options": dict(source.options),
        "schema": ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in source.schema),
        "schema_json": source.schema.jsonValue(),
        "event_time": source.event_time,
        "watermark": source.watermark,
        "id": {
            "kind": source.identity.how,
            "columns": list(source.identity.columns),
            "types": [source.schema[c].dataType.simpleString() for c in source.identity.columns],
        },
        "keep": source.keep,
    }
