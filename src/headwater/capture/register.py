"""What the store is told about a flow: its definition, sources and sinks."""

from __future__ import annotations

import logging
import pickle
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from headwater.capture.decode import arrow_schema
from headwater.flow import render
from headwater.flow.nodes import Source, Static
from headwater.lowering.rows import nullable
from headwater.replay.programs import saved
from headwater.store.batch import FlowRegistration, SinkRegistration, SourceRegistration
from headwater.store.catalog import LAZY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from headwater.flow.flow import Flow
    from headwater.live.planning import Plan
    from headwater.lowering.outputs import Outputs


log = logging.getLogger("headwater")


def registration(
    flow: Flow,
    outputs: Outputs,
    store: Path,
    query_id: str,
    checkpoint: str,
    fingerprint: str,
    plan: Plan | None = None,
) -> FlowRegistration:
    """The flow as the store keeps it."""
    above: dict[str, list[str]] = {
        sink.name: [n.step for n in sink.upstream() if isinstance(n, Source)]
        for sink in flow.sinks.values()
    }
    used = {source for sources in above.values() for source in sources}
    shown = plan.steps if plan else ()
    results = [part for part in outputs.parts if part.kind == "results"]
    captured = {
        part.name: [origin for origin in part.origins if origin not in shown]
        for part in results
        if part.origins
    }
    above |= captured
    steps = [s for names in captured.values() for s in names if s not in flow.sources]
    steps += shown
    modes = {part.name: part.capture for part in results if part.name not in shown}
    return FlowRegistration(
        flow=flow.name,
        capture=in_short(modes) + (plan.in_short if plan else ""),
        query_id=query_id,
        checkpoint=checkpoint,
        fingerprint=fingerprint,
        program=_program(flow, modes, store),
        definition={
            "steps": [asdict(step) for step in render.model(flow.sinks.values())],
            "live": plan.described() if plan else None,
        },
        sources=tuple(
            SourceRegistration(
                name, {**_source(source), **flow.notes.get(name, {})}, arrow_schema(source.schema)
            )
            for name, source in flow.sources.items()
            if name in used
        )
        + tuple(_step(flow, step) for step in dict.fromkeys(steps)),
        sinks=tuple(
            SinkRegistration(
                part.name,
                {
                    "name": part.name,
                    "schema": part.schema.simpleString(),
                    "schema_json": part.schema.jsonValue(),
                    "sources": above[part.name],
                    "capture": part.capture,
                    "resolved": plan is not None and part.capture in LAZY,
                    "kind": "step" if part.name in shown else "sink",
                    **flow.notes.get(part.name, {}),
                },
                arrow_schema(part.schema),
            )
            for part in results
        ),
    )


def in_short(modes: Mapping[str, str]) -> str:
    """The capture modes of a flow's sinks in a word, or one by one where they differ.

    >>> in_short({"a": "eager", "b": "eager"}), in_short({"a": "eager", "b": "none"})
    ('eager', 'a: eager, b: none')
    """
    if len(set(modes.values())) == 1:
        return next(iter(modes.values()))
    return ", ".join(f"{sink}: {mode}" for sink, mode in modes.items())


def _program(flow: Flow, modes: Mapping[str, str], store: Path) -> bytes | None:
    """The flow for replays; one that can't be saved is still replayed where it is at hand.

    Static sides are copied only where provenance depends on replays.
    """
    lazy = any(mode in LAZY for mode in modes.values())
    steps = (node for sink in flow.sinks.values() for node in sink.upstream())
    if not lazy and any(isinstance(node, Static) for node in steps):
        return None
    try:
        return saved(flow.sinks, store)
    except (pickle.PickleError, TypeError, AttributeError) as error:
        log.warning("flow %r is not saved for replays elsewhere: %s", flow.name, error)
        return None


def _step(flow: Flow, step: str) -> SourceRegistration:
    """A step whose rows stand for source records: they are not kept, a replay finds them."""
    schema = flow._plain.lower(flow._steps[step]).schema
    definition = {
        "name": step,
        "kind": "step",
        "schema_json": schema.jsonValue(),
        "id": {"kind": "key", "columns": [], "types": []},
        "keep": "none",
    }
    return SourceRegistration(step, definition, arrow_schema(nullable(schema)))


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
