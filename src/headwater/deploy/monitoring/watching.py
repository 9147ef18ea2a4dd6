"""`Watch`: a deployment measured from second to second."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections import deque
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from headwater.compose.graph import Graph
from headwater.compose.kinds import Source
from headwater.deploy.monitoring.accounts import Account, Passed, account_of, is_shared, load
from headwater.deploy.monitoring.seen import HISTORY, STATUS
from headwater.deploy.monitoring.status import Version, node_rows, stream_rows, unit_row
from headwater.deploy.units.job import JobUnit
from headwater.deploy.units.query import QueryUnit
from headwater.errors import HeadwaterError
from headwater.streams.files import write_json, write_whole
from headwater.sustain import Monitor, Queue, Totals
from headwater.sustain.flows import forecast_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headwater.deploy.deployment import Deployment
    from headwater.deploy.making import Unit
    from headwater.deploy.records import UnitRecord
    from headwater.streams.log import Log
    from headwater.sustain import Measured

LATELY = 10.0
"""Seconds that rates are over."""
_SPAN = 600
"""Pieces of time in the history that is written."""
_SHARE = 20
"""The history is written again after so many times as long as writing it took."""
_SIZES = 30.0
"""Seconds for which the size of a stream's events is taken to be the same."""


class Watch:
    """What is known of a deployment's nodes: totals, rates, lengths, verdicts. Threads share it."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._files = deployment.files
        self._monitor = Monitor(deployment.name)
        self._accounts: dict[str, Account] = {}
        self._records: dict[str, UnitRecord] = {}
        self._versions: dict[int, Version] = {}
        self._logs: dict[str, Log] = {}
        self._first: dict[tuple[str, str], int] = {}
        """Where the first unit that read a stream under a name began to."""
        self._recent: deque[tuple[float, dict[str, float]]] = deque()
        self._sizes: dict[str, tuple[float, float]] = {}
        self._written = 0.0
        self._lock = threading.RLock()
        self._saved: dict[str, Account] = {}
        self.latest: dict[str, Any] | None = None
        """The status as it was measured last."""
        for record in self._files.units():
            self._know(record)
            account = load(self._files.unit_folder(record.id))
            self._accounts[record.id] = account.settled if record.ended else account

    # --- by the host --------------------------------------------------------------------------

    def tick(self, at: float | None = None) -> dict[str, Any]:
        """Measure, and write it down for others to read."""
        with self._lock:
            told = self.latest = self.status(at)
            if not self._files.exists:
                return told
            for unit, account in self._accounts.items():
                if self._saved.get(unit) != account and self._files.has_unit(unit):
                    account.save(self._files.unit_folder(unit))
                    self._saved[unit] = account
            write_json(self._files.folder / STATUS, told, sync=False)
            begun = time.monotonic()
            if begun >= self._written:
                data = json.dumps(self.history(), separators=(",", ":")).encode()
                write_whole(self._files.folder / HISTORY, data, sync=False)
                self._written = begun + _SHARE * (time.monotonic() - begun)
            return told

    def end(self, unit: Unit) -> None:
        """A unit has ended: its numbers stay, and those of what takes its place are added."""
        with self._lock:
            account = self._measured(unit, self._ends([unit.record]))
            self._accounts[unit.record.id] = account.settled
            account.settled.save(self._files.unit_folder(unit.record.id))

    # --- what can be said ---------------------------------------------------------------------

    def status(self, at: float | None = None) -> dict[str, Any]:
        """Everything, as it is now: plain values, for JSON."""
        with self._lock:
            moment = time.time() if at is None else at
            state = self._files.state()
            live = {unit.record.id: unit for unit in self._deployment.units}
            change = self._files.change(state["version"]) if state["version"] else None
            wanted = list(change.units) if change else []
            records = [self._record(each, live) for each in dict.fromkeys([*wanted, *live])]
            ends = self._ends(records)
            for unit in live.values():
                self._accounts[unit.record.id] = self._measured(unit, ends)
            version = self._version(state["version"]) if change else None
            totals = self._totals(version, records, ends)
            rates = self._rates(moment, totals, ends)
            for name in [q.node for q in self._monitor]:
                if name not in {each.name for each in records}:
                    self._monitor.drop(name)
            units = []
            for record in records:
                found = live.get(record.id)
                measured = self._judged(record, found, moment)
                error = self._deployment.broken.get(record.id)
                account = self._accounts.get(record.id, Account())
                units.append(unit_row(record, found, account, measured, ends, error))
            return {
                "flow": self._deployment.name,
                "version": state["version"],
                "wanted": state["wanted"],
                "doing": self._deployment.doing,
                "at": moment,
                "units": units,
                "nodes": [] if version is None else node_rows(version, units, totals, rates),
                "streams": stream_rows(records, ends, rates),
                "finishing": self._finishing({each.name for each in records}),
            }

    def history(self) -> dict[str, Any]:
        """The queue-length matrix: a row for the first node of each unit, a column a second."""
        with self._lock:
            matrix = self._monitor.matrix()
            times, lengths = matrix.times[-_SPAN:], matrix.lengths[:, -_SPAN:]
            every = float(times[1] - times[0]) if len(times) > 1 else 1.0
            return {
                "flow": self._deployment.name,
                "every": every,
                "start": float(times[0]) - every if len(times) else None,
                "nodes": {
                    node: [int(length) for length in row]
                    for node, row in zip(matrix.nodes, lengths, strict=True)
                },
            }

    # --- measuring ----------------------------------------------------------------------------

    def _measured(self, unit: Unit, ends: Mapping[str, int]) -> Account:
        self._know(unit.record)
        graph = self._version(unit.record.version).graph
        try:
            return account_of(unit, graph, ends)
        except HeadwaterError:  # its queue is being closed
            return self._accounts.get(unit.record.id, Account())

    def _know(self, record: UnitRecord) -> None:
        self._records[record.id] = record
        for each in record.inputs:
            key = each.node, each.stream
            self._first[key] = min(self._first.get(key, each.cut), each.cut)

    def _record(self, unit: str, live: Mapping[str, Unit]) -> UnitRecord:
        if unit in live:
            return live[unit].record
        if unit not in self._records:
            self._know(self._files.unit(unit))
        return self._records[unit]

    def _ends(self, records: Iterable[UnitRecord]) -> dict[str, int]:
        """Where streams end; those that are gone are left out."""
        names = {each.stream for record in records for each in record.inputs}
        names |= {name for record in records for out in record.outputs.values() for name in out}
        found = {}
        for name in names:
            try:
                if name not in self._logs:
                    self._logs[name] = self._deployment._host.streams.log(name)
                found[name] = int(self._logs[name].bounds()[1])
            except (HeadwaterError, OSError, ValueError):
                self._logs.pop(name, None)
        return found

    def _version(self, version: int) -> Version:
        if version not in self._versions:
            composition = self._files.composition(version)
            plan = composition.plan()
            static = frozenset(name for name, label in plan.labels.items() if label.is_static)
            told = forecast_of(composition).forecasts
            self._versions[version] = Version(
                Graph(composition), static, {each.node: each for each in told}
            )
        return self._versions[version]

    def _totals(
        self, version: Version | None, records: Iterable[UnitRecord], ends: Mapping[str, int]
    ) -> dict[str, Passed]:
        """The events of each node, over all units that it was in."""
        found: dict[str, Passed] = {}
        for unit, account in self._accounts.items():
            shared = unit in self._records and is_shared(self._records[unit])
            for node, passed in account.nodes.items():
                before = Passed() if shared else found.get(node, Passed())
                found[node] = before.plus(passed)
        for record in records:
            for each in record.inputs:
                # What a source gives is what its stream has got since it is read.
                source = version.graph.nodes.get(each.node) if version else None
                if isinstance(source, Source) and source.stream and each.stream in ends:
                    read = max(0, ends[each.stream] - self._first[each.node, each.stream])
                    found[each.node] = Passed(read, read, read)
        return found

    def _rates(
        self, at: float, totals: Mapping[str, Passed], ends: Mapping[str, int]
    ) -> dict[str, float]:
        """Events a second, lately: `>node` in, `node>` out, and of streams by their names."""
        now: dict[str, float] = dict(ends)
        for node, passed in totals.items():
            now[f">{node}"], now[f"{node}>"] = passed.came, passed.out
        while len(self._recent) > 1 and self._recent[1][0] <= at - LATELY:
            self._recent.popleft()
        rates = {}
        if self._recent and (span := at - self._recent[0][0]) > 0:
            before = self._recent[0][1]
            rates = {
                key: max(0.0, (value - before[key]) / span)
                for key, value in now.items()
                if key in before
            }
        if not self._recent or at - self._recent[-1][0] >= 0.5:
            self._recent.append((at, now))
        return rates

    def _judged(self, record: UnitRecord, unit: Unit | None, at: float) -> Measured | None:
        """Feed the history of a unit, and judge it; one that is stopped stays as it was."""
        if unit is None:
            there = record.name in self._monitor
            return self._monitor.queue(record.name).measured() if there else None
        totals = self._accounts[record.id].totals
        if not is_shared(record):
            known = self._records
            mine = [
                astuple(account.totals)
                for unit_id, account in self._accounts.items()
                if unit_id in known and known[unit_id].name == record.name
            ]
            totals = Totals(*map(sum, zip(*mine, strict=True)))
        if record.name not in self._monitor:
            if isinstance(unit, JobUnit):
                self._monitor.add(unit.line.queue.monitor())
            else:
                self._monitor.add(Queue(record.name, start=totals))
        queue = self._monitor.queue(record.name)
        if isinstance(unit, JobUnit):
            queue.slots = unit._job.slots
        elif isinstance(unit, QueryUnit):
            queue.delay = unit.counter.length
        queue.observe(totals, at=at)
        measured = queue.measured()
        if measured.verdict.state == "growing" and (room := self._room(record, at)) is not None:
            return queue.measured(measured.length + room)
        return measured

    def _finishing(self, names: set[str]) -> dict[str, float]:
        """Jobs that are no longer in the flow and still do what they had taken, with how much."""
        lines = list(self._deployment.making.lines.items())
        gone = {node: line.queue.totals().length for node, line in lines if node not in names}
        return {node: length for node, length in gone.items() if length > 0}

    def _room(self, record: UnitRecord, at: float) -> float | None:
        """How many more events of a unit's stream the disk has room for."""
        stream = record.inputs[0].stream
        log = self._logs.get(stream)
        if log is None:
            return None
        if stream not in self._sizes or at - self._sizes[stream][0] > _SIZES:
            start, end = (int(place) for place in log.bounds())
            streams = self._deployment._host.streams.folder
            free = shutil.disk_usage(self._files.folder if is_shared(record) else streams).free
            self._sizes[stream] = at, free / max(1.0, log.size() / max(1, end - start))
        return self._sizes[stream][1]
