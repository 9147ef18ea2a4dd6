"""The status of deployments as metrics in Prometheus' text format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from headwater.sustain import metrics
from headwater.sustain.queue import Measured
from headwater.sustain.verdicts import State, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


def text(statuses: Iterable[Mapping[str, Any]]) -> str:
    """The metrics of all nodes that run, of the units that they are in, and of streams."""
    told = list(statuses)
    extra = "".join(f"{line}\n" for line in _extra(told))
    return metrics.text([_Told(status) for status in told]) + extra


@dataclass(frozen=True, slots=True)
class _Told:
    """A status in the place of a monitor."""

    status: Mapping[str, Any]

    @property
    def flow(self) -> str:
        return str(self.status["flow"])

    @property
    def version(self) -> str:
        return str(self.status["version"])

    def measured(self) -> list[Measured]:
        return [_measured(row) for row in self.status["nodes"] if row["unit"] is not None]


def _measured(row: Mapping[str, Any]) -> Measured:
    state = cast("State", row["verdict"])
    judged = {key: row[key] for key in ("slope", "expected", "limit", "exhaustion")}
    return Measured(
        node=row["node"],
        taken=row["in"],
        done=row["done"],
        made=row["out"],
        length=row["in_transit"],
        rate=row["rate_in"],
        service=row["service"],
        efficiency=row["efficiency"],
        cardinality=row["cardinality"],
        # The nodes of a unit share its time: it is told of the first, so that sums are right.
        compute=row["compute"] or 0.0,
        framework=row["framework"] or 0.0,
        verdict=Verdict(state, row["reason"], **judged),
    )


def _extra(statuses: list[Mapping[str, Any]]) -> Iterator[str]:
    """What a queue by itself does not know of."""
    families: dict[tuple[str, str, str], list[tuple[dict[str, str], float]]] = {
        ("headwater_events_forecast", "gauge", "Events in transit that M/M/c expects."): [
            ({"flow": s["flow"], "node": row["node"]}, row["forecast"]["in_transit"])
            for s in statuses
            for row in s["nodes"]
            if row["forecast"] is not None and row["forecast"]["in_transit"] is not None
        ],
        ("headwater_unit_running", "gauge", "1 for a unit that runs, 0 for one that does not."): [
            ({"flow": s["flow"], "unit": unit["id"]}, float(unit["state"] == "running"))
            for s in statuses
            for unit in s["units"]
        ],
        ("headwater_stream_events_total", "counter", "Events of a stream."): [
            ({"flow": s["flow"], "stream": row["stream"]}, row["events"])
            for s in statuses
            for row in s["streams"]
            if row["events"] is not None
        ],
        ("headwater_measured_seconds", "gauge", "When a flow was measured, since 1970."): [
            ({"flow": s["flow"]}, s["at"]) for s in statuses
        ],
    }
    for (name, kind, meaning), samples in families.items():
        if samples:
            yield f"# HELP {name} {meaning}"
            yield f"# TYPE {name} {kind}"
            yield from (metrics.sample(name, labels, value) for labels, value in samples)
