"""The board: what runs, as it is from second to second, measured once for all who look."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from headwater.deploy.monitoring.seen import HISTORY, STATUS, deployed, read
from headwater.deploy.records import DeploymentFiles
from headwater.errors import HeadwaterError
from headwater.server.answers import as_json

if TYPE_CHECKING:
    from headwater.server.service import Service

EVERY = 1.0
"""Seconds between two looks while somebody follows."""
LAST = 3
"""Results of each sink that are shown."""
QUERY = "query-"
"""Before a query's name: the flow that it is."""


class Board:
    """Statuses of flows, their watermarks and last results. Looks only while somebody does."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._told: dict[str, Any] | None = None
        self._at = 0.0
        self._seq: int | None = None
        self._stored: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])

    def now(self) -> dict[str, Any]:
        """All of it; at most a second old."""
        with self._lock:
            if self._told is None or time.monotonic() - self._at >= EVERY / 2:
                self._told, self._at = self._look(), time.monotonic()
            return self._told

    def status(self, flow: str) -> dict[str, Any] | None:
        """A flow as it was measured last."""
        service = self._service
        if service.runs and (found := service.host.deployments.get(flow)) is not None:
            return found.watch.latest or found.status()
        return read(service.flows / flow / STATUS) or None

    def history(self, flow: str) -> dict[str, Any]:
        """The queue lengths of a flow."""
        service = self._service
        if service.runs and (found := service.host.deployments.get(flow)) is not None:
            return found.watch.history()
        nothing = {"flow": flow, "every": 1.0, "start": None, "nodes": {}}
        return read(service.flows / flow / HISTORY) or nothing

    def names(self) -> list[str]:
        """The flows that are deployed."""
        return deployed(self._service.flows)

    def files(self, flow: str) -> DeploymentFiles:
        """The files of a flow."""
        return DeploymentFiles(self._service.flows / flow)

    def flows(self) -> list[dict[str, Any]]:
        """A line for each flow."""
        return [self._line(name, self.status(name)) for name in self.names()]

    def _line(self, flow: str, status: dict[str, Any] | None) -> dict[str, Any]:
        state = self.files(flow).state()
        return {
            "flow": flow,
            "version": state["version"],
            "wanted": state["wanted"],
            "state": _state(state, status),
            "doing": status["doing"] if status else None,
            "units": len(status["units"]) if status else 0,
            "nodes": len(status["nodes"]) if status else 0,
            "is_query": flow.startswith(QUERY),
            "at": status["at"] if status else None,
        }

    def _look(self) -> dict[str, Any]:
        watermarks, results = self._from_store()
        flows = []
        for name in self.names():
            status = self.status(name)
            if status is None:
                continue
            line = self._line(name, status)
            mine = [w for w in watermarks if w["deployed"] == name]
            current = {unit["id"] for unit in status["units"]}
            flows.append(
                {
                    **status,
                    "state": line["state"],
                    "is_query": line["is_query"],
                    "watermarks": [w for w in mine if w["unit"] in current],
                }
            )
        return {"at": time.time(), "flows": flows, "results": results}

    def _from_store(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Watermarks and last results, read anew when a batch was committed."""
        try:
            store = self._service.store
            rows = store._reader.query("SELECT coalesce(max(seq), 0) AS seq FROM batches")
            seq = int(rows["seq"][0].as_py())
            if seq != self._seq:
                self._stored = _watermarks(self._service), _results(self._service)
                self._seq = seq
        except HeadwaterError:
            return [], []
        return self._stored


def _state(state: dict[str, Any], status: dict[str, Any] | None) -> str:
    """A flow in a word: what is being done, what it is meant to be, or the worst of its units."""
    if status is not None and status["doing"]:
        return str(status["doing"])
    if state["wanted"] == "stopped":
        return "stopped"
    units = [unit["state"] for unit in status["units"]] if status else []
    for word in ("failed", "retrying", "building up"):
        if word in units:
            return word
    return "running" if units else "starting"


def unit_of(flow: str) -> tuple[str | None, str | None, int | None]:
    """The deployed flow, the unit and its version that the store knows by a name.

    >>> unit_of("weather.storms.v3"), unit_of("traffic")
    (('weather', 'storms@3', 3), (None, None, None))
    """
    name, _, version = flow.rpartition(".v")
    deployed_flow, _, unit = name.partition(".")
    if not (deployed_flow and unit and version.isdigit()):
        return None, None, None
    return deployed_flow, f"{unit}@{version}", int(version)


def with_unit(row: dict[str, Any]) -> dict[str, Any]:
    """What is told of a flow of the store, with what it is a part of."""
    flow, unit, version = unit_of(row["flow"])
    return {**row, "deployed": flow, "unit": unit, "version": version}


def _watermarks(service: Service) -> list[dict[str, Any]]:
    rows = service.store._reader.query(
        "SELECT f.flow, max(b.watermark) AS watermark, max(b.committed_at) AS committed_at, "
        "max(b.batch) AS batch FROM flows f JOIN batches b USING (query_id) GROUP BY f.flow"
    )
    return [with_unit(row) for row in as_json(rows)["rows"]]


def _results(service: Service) -> list[dict[str, Any]]:
    """The last results of each sink that the current units have."""
    store = service.store
    store._refresh()
    newest: dict[tuple[str | None, str], Any] = {}
    for sink in store._catalog.sinks:
        if not sink.is_step:
            flow, _, version = unit_of(sink.flow)
            key = (flow or sink.flow, sink.name)
            if key not in newest or (version or 0) >= newest[key][0]:
                newest[key] = (version or 0, sink)
    found = []
    for (flow, name), (_, sink) in newest.items():
        qualified = sink.qualified
        rows, _ = store.results_page(qualified, limit=LAST)
        if rows.num_rows:
            found.append({"flow": flow, "sink": name, "qualified": qualified, **as_json(rows)})
    return found
