"""Flow, store and checkpoint belong together, and only as they were when their state was made."""

from __future__ import annotations

import hashlib
import json
from types import CodeType
from typing import TYPE_CHECKING, Any

from headwater.capture.register import in_short, registration
from headwater.errors import RunError
from headwater.flow.determinism import function_of
from headwater.flow.nodes import GroupFunction, Node, Ordered, Service, Source
from headwater.store.catalog import LAZY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.capture.checkpoint import Binding, Checkpoint
    from headwater.flow.flow import Flow
    from headwater.live.planning import Plan
    from headwater.lowering.outputs import Outputs
    from headwater.store.embedded import EmbeddedWriter
    from headwater.store.lake.writer import LakeWriter


def bind(
    flow: Flow,
    modes: Mapping[str, str],
    outputs: Outputs,
    writer: EmbeddedWriter | LakeWriter,
    place: Checkpoint,
    plan: Plan | None = None,
) -> Binding:
    """Make sure that flow, store and checkpoint belong together, then write it down in both."""
    known = next((row for row in writer.flows() if row["flow"] == flow.name), None)
    bound = known["query_id"] if known else None
    if known and known["finished"]:
        raise RunError(
            f"flow {flow.name!r} is finished in this store: its windows are closed and its records "
            "past; start with a new store and checkpoint"
        )
    last = writer.last_batch(bound) if bound else None
    binding = place.bind(flow.name, writer.store_id, bound, last)
    prints = fingerprint(flow, modes)
    mode = in_short(modes) + (plan.in_short if plan else "")
    if known and last is not None:
        _require_same(flow.name, known, mode, prints)
    writer.register(
        registration(
            flow,
            outputs,
            writer.path,
            binding.query_id,
            str(place.path),
            json.dumps(prints),
            plan,
        )
    )
    place.write(binding)
    place.tidy()
    return binding


def bind_once(
    flow: Flow,
    modes: Mapping[str, str],
    outputs: Outputs,
    writer: EmbeddedWriter | LakeWriter,
    plan: Plan | None = None,
) -> str:
    """Write down a flow whose sources do not stream: it runs once in a store."""
    query_id = f"once-{flow.name}"
    if writer.holds(query_id, 0):
        raise RunError(
            f"the store holds the results of flow {flow.name!r} already and its sources do not "
            "stream; start with a new store to run it again"
        )
    prints = json.dumps(fingerprint(flow, modes))
    writer.register(registration(flow, outputs, writer.path, query_id, "", prints, plan))
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


def fingerprint(flow: Flow, modes: Mapping[str, str]) -> dict[str, str]:
    """What may not change between two starts, each in short.

    A checkpoint's state depends on the sinks and their stateful steps. Where provenance is found
    by replay, earlier results depend on every step.
    """
    stateful = ("source", "aggregate", "group_function", "join", "deduplicate", "watermark")
    out: dict[str, str] = {}
    for sink in flow.sinks.values():
        out[f"sink {sink.name}"] = _short(flow._plain.lower(sink).schema.simpleString())
        replayed = modes[sink.name] in LAZY
        for node in sink.upstream():
            keeps = node.kind in stateful or isinstance(node, Ordered)
            if node is not sink and (replayed or keeps):
                out[f"{node.kind} {node.step}"] = _short(_meaning(node))
    return out


def _meaning(node: Node) -> str:
    """What a step does, in a text."""
    if isinstance(node, Source):
        # A source may move; what its rows and ids are may not.
        return repr(node.identity)
    said = node.describe()
    if isinstance(node, GroupFunction):
        # Its state has the rows themselves.
        said += node.given.simpleString()
    if isinstance(node, Service):
        # What is not JSON has no text that is the same in every process.
        said += json.dumps(dict(node.static), sort_keys=True, default=lambda v: type(v).__name__)
    if (code := getattr(function_of(node), "__code__", None)) is not None:
        return f"{said} {code.co_code!r} {_constants(code)}"
    return said


def _constants(code: CodeType) -> str:
    """The constants of a function, in the same order in every process."""

    def text(constant: object) -> str:
        match constant:
            case CodeType():
                return f"{constant.co_code!r} {_constants(constant)}"
            case frozenset():
                return str(sorted(map(repr, constant)))
        return repr(constant)

    return ", ".join(map(text, code.co_consts))


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
