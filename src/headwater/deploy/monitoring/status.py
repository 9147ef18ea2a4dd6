"""What is told of a deployment: rows of units, nodes and streams, in plain values for JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater.compose.kinds import Source
from headwater.deploy.monitoring.accounts import Passed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headwater.compose.graph import Graph
    from headwater.deploy.making import Unit
    from headwater.deploy.monitoring.accounts import Account
    from headwater.deploy.records import UnitRecord
    from headwater.sustain import Forecast, Measured

_JUDGED = ("service", "efficiency", "verdict", "reason", "slope", "expected", "limit", "exhaustion")
"""What nodes have of the unit that they are in."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version of the flow, and what is expected of it."""

    graph: Graph
    static: frozenset[str]
    forecasts: dict[str, Forecast]


def unit_row(
    record: UnitRecord,
    unit: Unit | None,
    account: Account,
    measured: Measured | None,
    ends: Mapping[str, int],
    error: str | None,
) -> dict[str, Any]:
    """A unit: how far it is, whether it keeps up."""
    state = ("failed" if error else "stopped") if unit is None else unit.state
    totals = account.totals
    return {
        "id": record.id,
        "name": record.name,
        "version": record.version,
        "runtime": record.runtime,
        "state": state,
        "error": error if unit is None else unit.error,
        "nodes": list(record.nodes),
        "passed": {name: list(passed) for name, passed in account.nodes.items()},
        "in": totals.taken,
        "done": totals.done,
        "out": totals.made,
        "in_transit": totals.length,
        "compute": shown(totals.compute),
        "framework": shown(totals.framework),
        "batch": None if account.counts.batch < 0 else account.counts.batch,
        "inputs": [
            {
                "node": each.node,
                "stream": each.stream,
                "position": _position(unit, each.stream),
                "end": ends.get(each.stream),
            }
            for each in record.inputs
        ],
        "outputs": {end: list(streams) for end, streams in record.outputs.items()},
        **_judged(state, measured),
    }


def _position(unit: Unit | None, stream: str) -> int | None:
    if unit is None:
        return None
    return unit.position if isinstance(unit.position, int) else unit.position[stream]


def _judged(state: str, measured: Measured | None) -> dict[str, Any]:
    if measured is None:
        return {**dict.fromkeys(_JUDGED), "verdict": "unknown", "reason": state}
    verdict = measured.verdict
    return {
        "service": shown(measured.service),
        "efficiency": shown(measured.efficiency),
        "verdict": verdict.state,
        "reason": verdict.reason,
        "slope": shown(verdict.slope),
        "expected": shown(verdict.expected),
        "limit": shown(verdict.limit),
        "exhaustion": shown(verdict.exhaustion),
    }


def node_rows(
    version: Version,
    units: Iterable[Mapping[str, Any]],
    totals: Mapping[str, Passed],
    rates: Mapping[str, float],
) -> list[dict[str, Any]]:
    """The nodes of a version, inputs first; those of a unit share what it can't tell apart."""
    homes = {name: unit for unit in units for name in unit["nodes"]}
    rows = []
    for name in version.graph.order:
        node, unit = version.graph.nodes[name], homes.get(name)
        counted = unit is not None or (isinstance(node, Source) and name in totals)
        passed = totals.get(name, Passed()) if counted else None
        own = Passed(*unit["passed"].get(name, ())) if unit is not None else passed
        first = unit is not None and unit["nodes"][0] == name
        rows.append(
            {
                "node": name,
                "kind": node.kind,
                "unit": None if unit is None else unit["id"],
                "runtime": "static" if name in version.static else unit and unit["runtime"],
                "in": None if passed is None else passed.came,
                "done": None if passed is None else passed.done,
                "out": None if passed is None else passed.out,
                "rate_in": None if passed is None else shown(rates.get(f">{name}", 0.0)),
                "rate_out": None if passed is None else shown(rates.get(f"{name}>", 0.0)),
                # That of the version that runs, whatever it was before.
                "cardinality": shown(own.out / own.done) if own and own.done else None,
                "in_transit": None if own is None else own.came - own.done,
                "compute": unit["compute"] if unit is not None and first else None,
                "framework": unit["framework"] if unit is not None and first else None,
                **{key: None if unit is None else unit[key] for key in _JUDGED},
                "forecast": _forecast(version.forecasts.get(name)),
            }
        )
    return rows


def _forecast(told: Forecast | None) -> dict[str, Any] | None:
    """What M/M/c expects of the rates and times that the flow file declares, if it does."""
    if told is None or told.utilisation is None:
        return None
    return {
        "outlook": told.outlook,
        "exact": told.exact,
        "arrivals": shown(told.arrivals),
        "utilisation": shown(told.utilisation),
        "in_transit": shown(told.in_transit),
        "time": shown(told.time),
    }


def stream_rows(
    records: Iterable[UnitRecord], ends: Mapping[str, int], rates: Mapping[str, float]
) -> list[dict[str, Any]]:
    """The streams that units read and publish, with their rates."""
    found: dict[str, dict[str, Any]] = {}

    def row(stream: str) -> dict[str, Any]:
        return found.setdefault(
            stream,
            {
                "stream": stream,
                "from": None,
                "to": [],
                "events": ends.get(stream),
                "rate": shown(rates.get(stream, 0.0)) if stream in ends else None,
            },
        )

    for record in records:
        for each in record.inputs:
            row(each.stream)["to"].append(record.id)
        for end, streams in record.outputs.items():
            for stream in streams:
                row(stream)["from"] = end
    return list(found.values())


def shown(value: float | None) -> float | None:
    """A number as JSON has it, without digits that mean nothing; what is endless is None."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.6g}")
