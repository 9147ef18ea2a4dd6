"""Metrics of a flow's nodes in Prometheus' text format."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, get_args

from headwater.sustain.verdicts import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from headwater.sustain.queue import Measured

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Family:
    """A metric: its name, kind and meaning, and how it is read; None is left out."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    read: Callable[[Measured], float | None]


FAMILIES = (
    Family("headwater_events_in_total", "counter", "Events that came in.", lambda m: m.taken),
    Family("headwater_events_done_total", "counter", "Events finished with.", lambda m: m.done),
    Family("headwater_events_out_total", "counter", "Events that went out.", lambda m: m.made),
    Family(
        "headwater_compute_seconds_total",
        "counter",
        "Seconds of the node's own work.",
        lambda m: m.compute,
    ),
    Family(
        "headwater_framework_seconds_total",
        "counter",
        "Seconds of starting work and moving events.",
        lambda m: m.framework,
    ),
    Family("headwater_events_in_transit", "gauge", "Events that wait or run.", lambda m: m.length),
    Family(
        "headwater_events_expected",
        "gauge",
        "Events in transit by Little's law.",
        lambda m: m.expected,
    ),
    Family("headwater_arrival_rate", "gauge", "Events in a second, lately.", lambda m: m.rate),
    Family("headwater_service_seconds", "gauge", "Work for an event, lately.", lambda m: m.service),
    Family(
        "headwater_efficiency_ratio",
        "gauge",
        "Compute time over compute and framework time, lately.",
        lambda m: m.efficiency,
    ),
    Family(
        "headwater_cardinality_ratio",
        "gauge",
        "Events out for each finished with.",
        lambda m: m.cardinality,
    ),
    Family(
        "headwater_growth_rate",
        "gauge",
        "Events a second by which the queue's floor rises.",
        lambda m: m.verdict.slope,
    ),
    Family(
        "headwater_exhaustion_seconds",
        "gauge",
        "Seconds until the queue's capacity is full at this growth.",
        lambda m: m.verdict.exhaustion,
    ),
)
STATE = "headwater_queue_state"


class Told(Protocol):
    """What has nodes that are measured: a `Monitor`."""

    @property
    def flow(self) -> str:
        """Its name."""

    @property
    def version(self) -> str:
        """The flow's."""

    def measured(self) -> list[Measured]:
        """Its nodes."""


def text(monitors: Iterable[Told]) -> str:
    """The metrics of all nodes; labels are flow, node and version."""
    told = [
        ({"flow": monitor.flow, "node": each.node, "version": monitor.version}, each)
        for monitor in monitors
        for each in monitor.measured()
    ]
    return "".join(f"{line}\n" for line in _lines(told))


def _lines(told: list[tuple[dict[str, str], Measured]]) -> Iterator[str]:
    for family in FAMILIES:
        values = [(labels, family.read(each)) for labels, each in told]
        known = [(labels, value) for labels, value in values if value is not None]
        if known:
            yield from _head(family.name, family.kind, family.help)
            yield from (sample(family.name, labels, value) for labels, value in known)
    if told:
        yield from _head(STATE, "gauge", "1 for the state that the queue is in.")
    for labels, each in told:
        for state in get_args(State):
            yield sample(STATE, {**labels, "state": state}, float(each.verdict.state == state))


def _head(name: str, kind: str, help: str) -> Iterator[str]:
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {kind}"


def sample(name: str, labels: Mapping[str, str], value: float) -> str:
    r"""One line.

    >>> print(sample("up", {"node": 'a "b"\n'}, 2))
    up{node="a \"b\"\n"} 2
    """
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{inside}}} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    return str(int(value)) if value == int(value) else repr(float(value))
