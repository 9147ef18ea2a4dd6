"""Which capture mode each sink gets: the one that was asked for, or the cheapest that is exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.errors import RunError, UnsupportedError
from headwater.flow import nodes
from headwater.flow.determinism import why_not
from headwater.lowering.identity import can_be_read_again, has_positions
from headwater.lowering.kafka import in_topics
from headwater.lowering.outputs import MODES
from headwater.replay import shape
from headwater.replay.ancestors import Unbounded, ranges

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.flow.flow import Flow

CAPTURES = ("none", *MODES, "auto")
_SAYS = {
    "ancestors": "nothing is carried; a result's key and time lead back to its records",
    "intervals": "a row carries two positions per source; a result's slice is replayed",
    "eager": "rows carry the ids of their records",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """A sink's capture mode, and why it is that one.

    `steps` are those in terms of whose rows its provenance is captured, instead of the sources'.
    """

    mode: str
    why: str
    steps: frozenset[str] = frozenset()


def choose(
    flow: Flow, capture: str | Mapping[str, Sequence[str]], *, live: bool = False
) -> dict[str, Choice]:
    """The capture mode of each sink of a flow; what can't be done is refused by name.

    A live graph has the ids of records when results are given out: by itself it takes `eager`.
    """
    if live and capture == "auto":
        return {name: Choice("eager", "a live graph needs the ids at once") for name in flow.sinks}
    if isinstance(capture, str):
        _require_mode(capture)
        return {name: _choice(flow, sink, capture) for name, sink in flow.sinks.items()}
    chosen = {name: Choice("none", "not asked for") for name in flow.sinks}
    for mode, names in capture.items():
        _require_mode(mode)
        for name in [names] if isinstance(names, str) else names:
            if name in flow.sinks:
                chosen[name] = _choice(flow, flow.sinks[name], mode)
            else:
                chosen |= _below(flow, chosen, mode, name)
    return chosen


def _below(flow: Flow, chosen: Mapping[str, Choice], mode: str, step: str) -> dict[str, Choice]:
    """The sinks below a step, to be captured in terms of its rows."""
    sinks = [n for n, s in flow.sinks.items() if any(a.step == step for a in s.upstream())]
    if not sinks:
        known = {node.step: None for sink in flow.sinks.values() for node in sink.upstream()}
        raise RunError(
            f"capture={{{mode!r}: …}} names {step!r}, which is no sink or step of flow "
            f"{flow.name!r}; it has {', '.join(known)}"
        )
    if mode != "eager":
        raise RunError(
            f"capture={{{mode!r}: …}} names the step {step!r}: only 'eager' captures in terms of a "
            "step's rows; name sinks, or ask with backward(…, to=step)"
        )
    return {
        name: Choice("eager", f"in terms of {step}", chosen[name].steps | {step}) for name in sinks
    }


def described(flow: Flow) -> list[str]:
    """What `auto` would choose for each sink, in lines."""
    return [
        f"  {name}: {choice.mode} ({choice.why})" for name, choice in choose(flow, "auto").items()
    ]


def _require_mode(capture: str) -> None:
    if capture not in CAPTURES:
        raise RunError(f"capture={capture!r} is not one of {', '.join(CAPTURES)}")


def _choice(flow: Flow, sink: nodes.Sink, capture: str) -> Choice:
    if capture == "none":
        return Choice("none", "asked for")
    if capture != "auto":
        if (refused := refusal(flow, sink, capture)) is not None:
            raise UnsupportedError(
                f"capture={capture!r} can't trace sink {sink.name!r}: {refused}; "
                "use capture='auto' or 'eager'"
            )
        return Choice(capture, "asked for")
    reasons: list[str] = []
    for mode in MODES:
        refused = _passing(sink, mode) or refusal(flow, sink, mode)
        if refused is None:
            return Choice(mode, "; ".join([_SAYS[mode], *reasons]))
        reasons.append(f"not {mode}: {refused}")
    raise AssertionError("eager is never refused")


def _passing(sink: nodes.Sink, mode: str) -> str | None:
    """Why a mode's answers may not last, so that it is to be asked for by name."""
    for node in sink.upstream() if mode != "eager" else ():
        if isinstance(node, nodes.Source) and in_topics(node) and node.keep != "all":
            return f"the topics of source {node.name!r} may delete records that a replay needs"
    return None


def refusal(flow: Flow, sink: nodes.Sink, mode: str) -> str | None:
    """Why a mode is not exact for a sink, or None if it is."""
    if mode == "eager":
        return None
    for node in sink.upstream():
        if (why := why_not(node)) is not None:
            return f"{node.kind} step {node.step!r} at {node.site}: {why}"
        if isinstance(node, nodes.Source) and (why := _not_again(node, mode)) is not None:
            return why
    for dedup in shape.deciding(sink):
        columns = tuple(flow._plain.lower(dedup).columns)
        if not shape.holds_id(dedup, columns):
            return (
                f"deduplicate step {dedup.step!r} at {dedup.site}: which of several rows survives "
                "is not the same in a replay, unless its columns hold the record's id"
            )
    if mode == "ancestors":
        for found in ranges(sink).values():
            if isinstance(found, Unbounded):
                return f"{found}: it has no ancestor function"
    return None


def _not_again(source: nodes.Source, mode: str) -> str | None:
    """Why a source's records can't be had again."""
    if not can_be_read_again(source) and source.keep != "all" and source.streaming:
        return f"source {source.name!r} can't be read again; give it keep='all'"
    if not can_be_read_again(source) and source.keep == "none":
        return f"source {source.name!r} can't be read again and keeps nothing"
    if mode == "intervals" and source.streaming and not has_positions(source):
        return f"source {source.name!r} has no positions: neither files nor an integer id"
    return None
