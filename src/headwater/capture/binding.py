"""Flow, store and checkpoint belong together, and only as they were when their state was made."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from headwater.capture.register import in_short, registration
from headwater.errors import RunError
from headwater.flow.nodes import Source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.capture.checkpoint import Binding, Checkpoint
    from headwater.flow.flow import Flow
    from headwater.lowering.outputs import Outputs
    from headwater.store.embedded import EmbeddedWriter


def bind(
    flow: Flow,
    modes: Mapping[str, str],
    outputs: Outputs,
    writer: EmbeddedWriter,
    place: Checkpoint,
) -> Binding:
    """Make sure that flow, store and checkpoint belong together, then write it down in both."""
    known = next((row for row in writer.flows() if row["flow"] == flow.name), None)
    bound = known["query_id"] if known else None
    last = writer.last_batch(bound) if bound else None
    binding = place.bind(flow.name, writer.store_id, bound, last)
    prints = fingerprint(flow)
    if known and last is not None:
        _require_same(flow.name, known, in_short(modes), prints)
    writer.register(
        registration(
            flow, outputs, writer.path, binding.query_id, str(place.path), json.dumps(prints)
        )
    )
    place.write(binding)
    return binding


def bind_once(
    flow: Flow, modes: Mapping[str, str], outputs: Outputs, writer: EmbeddedWriter
) -> str:
    """Write down a flow whose sources do not stream: it runs once in a store."""
    query_id = f"once-{flow.name}"
    if writer.holds(query_id, 0):
        raise RunError(
            f"the store holds the results of flow {flow.name!r} already and its sources do not "
            "stream; start with a new store to run it again"
        )
    prints = json.dumps(fingerprint(flow))
    writer.register(registration(flow, outputs, writer.path, query_id, "", prints))
    return query_id


def _require_same(flow: str, known: dict[str, Any], mode: str, now: dict[str, Any]) -> None:
    if known["capture"] != mode:
        raise RunError(
            f"flow {flow!r} was started with capture={known['capture']!r} and can't go on with "
            f"{mode!r}: its state has another shape; start with a new store and checkpoint"
        )
    before = json.loads(known["fingerprint"])
    changed = [s for s in {**before, **now} if before.get(s) != now.get(s)]
    if changed:
        raise RunError(
            f"flow {flow!r} has changed since its checkpoint was made, in {', '.join(changed)}; "
            "its state can't be carried over: start with a new store and checkpoint"
        )


def fingerprint(flow: Flow) -> dict[str, str]:
    """What a checkpoint's state depends on: the sinks and their stateful steps, each in short."""
    stateful = ("source", "aggregate", "join", "deduplicate", "watermark")
    out: dict[str, str] = {}
    for sink in flow.sinks.values():
        columns = flow._plain.lower(sink).schema.simpleString()
        out[f"sink {sink.name}"] = hashlib.sha256(columns.encode()).hexdigest()[:16]
        for node in sink.upstream():
            if node.kind in stateful:
                # A source may move; what its rows and ids are may not.
                what = repr(node.identity) if isinstance(node, Source) else node.describe()
                out[f"{node.kind} {node.step}"] = hashlib.sha256(what.encode()).hexdigest()[:16]
    return out
